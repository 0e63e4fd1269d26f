package stack

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/internal/filelock"
	"github.com/gpuaas/app-platform/internal/supervise"
	"github.com/gpuaas/app-platform/rig/lab"
	"github.com/gpuaas/app-platform/rig/stack/storage"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// What the local nodes declare. The GPUs do not exist, and the inventory states it.
const (
	nodeGPUs     = 4
	nodeGPUModel = "Simulated-80GB"
	nodeRegion   = "local-1"
	nodeSKU      = "lab.4x-simulated"
)

// WholeSKU is that of the nodes whose members are plain processes of a whole machine.
const WholeSKU = "lab.whole"

// startNodes boots the local nodes and waits until all of them are online.
func (s *Stack) startNodes(ctx context.Context) error {
	count := s.config.Nodes
	if s.Network() == nil {
		count = 1
		s.say("without namespaces of its own: one local node, its members are plain processes")
	}
	for i := 1; i <= count; i++ {
		if err := s.startNode(ctx, fmt.Sprintf("node-%d", i)); err != nil {
			return err
		}
	}
	if s.Network() == nil {
		return s.awaitNodes(ctx, count)
	}
	for i := 1; i <= s.config.WholeNodes; i++ {
		if err := s.startNode(ctx, fmt.Sprintf("%s%d", wholePrefix, i)); err != nil {
			return err
		}
	}
	return s.awaitNodes(ctx, count+s.config.WholeNodes)
}

func (s *Stack) startNode(ctx context.Context, name string) error {
	whole := strings.HasPrefix(name, wholePrefix)
	root, err := s.memberRoot(ctx)
	if err != nil {
		return fmt.Errorf("root of members: %w", err)
	}
	host := filepath.Join(s.config.Dir, "nodes", name)
	files, err := storage.Prepare(s.config.Dir, host)
	if err != nil {
		return err
	}
	binds := []lab.Bind{s.agentBind(), files}
	if whole && s.config.Kubernetes != "" {
		binds = append(binds, lab.Bind{Source: s.config.Kubernetes, Target: "/opt/rke2", ReadOnly: true})
	}
	if root != "" {
		binds = append(binds, lab.Bind{Source: root, Target: memberRootPath, ReadOnly: true})
	}
	node, err := s.AddNode(ctx, name, binds...)
	if err != nil {
		return err
	}
	if err := s.enrolment(ctx, name, filepath.Join(host, "enrol-token")); err != nil {
		return err
	}
	program, address := agentPath, node.Addr().String()
	if s.Network() == nil {
		program, address = s.program("node-agent"), "127.0.0.1"
	}
	command := []string{
		program, "--platform-url", s.nodeURL, "--state-dir", filepath.Join(node.State, "agent"), "--name", name,
		"--address", address,
		"--enrol-token-file", filepath.Join(node.State, "enrol-token"),
		"--gpus", strconv.Itoa(cmp.Or(s.config.NodeGPUs, nodeGPUs)), "--gpu-model", nodeGPUModel, "--simulated-gpus",
		"--region", nodeRegion, "--sku", skuOf(whole),
		"--memory-mib", strconv.Itoa(s.config.NodeMemoryMiB),
	}
	switch {
	case s.Network() == nil:
		command = append(command, "--no-namespaces", "--single-tenant") // the lab's tenants trust each other
	case whole:
		command = slices.Concat([]string{"sh", "-c", wholeScript, "sh", node.Cgroup}, command,
			[]string{"--no-namespaces"})
	default:
		command = slices.Concat(command, storage.Flags(node.State),
			[]string{"--member-root", memberRootPath, "--cgroup-parent", node.Cgroup})
	}
	command = append(command, s.config.AgentFlags...)
	agent, err := node.Program(supervise.Spec{Name: "agent-" + name, Command: command, Restart: supervise.OnFailure,
		Env: s.nodeTraces})
	if err != nil {
		return err
	}
	s.Nodes = append(s.Nodes, &Node{Node: node, Agent: agent})
	return nil
}

const (
	// memberRoots is where this machine keeps the roots of members; all installations share them.
	memberRoots = "/var/cache/app-platform/member-roots"
	// memberRootPath is where a node sees the one for its members.
	memberRootPath = "/var/lib/app-platform-root"
)

// memberRoot is the root of members of local nodes; empty without local nodes.
func (s *Stack) memberRoot(ctx context.Context) (string, error) {
	if s.Network() == nil {
		return "", nil
	}
	return s.MemberRoot(ctx)
}

// MemberRoot builds the root of members from this machine, once for all nodes, and keeps it from being deleted until
// the stack is closed.
func (s *Stack) MemberRoot(ctx context.Context) (string, error) {
	if s.root != "" {
		return s.root, nil
	}
	printed, err := output(ctx, s.program("node-agent"), "root", "--dir", memberRoots, "--link", "--prune")
	if err != nil {
		return "", err
	}
	root := strings.TrimSpace(string(printed))
	lock, err := filelock.Acquire(ctx, root+".lock", filelock.Shared)
	if err != nil {
		return "", err
	}
	s.Rig.Keep("root of members", lock.Release)
	if _, err := os.Stat(root); err != nil {
		return "", err // deleted by another installation before it was locked
	}
	s.root = root
	return root, nil
}

// BootNode boots and enrols one more node, of a name that no node has, and waits until it is online. Not for concurrent
// use.
func (s *Stack) BootNode(ctx context.Context, name string) (*Node, error) {
	if err := s.startNode(ctx, name); err != nil {
		return nil, err
	}
	return s.Nodes[len(s.Nodes)-1], s.awaitNodes(ctx, len(s.Nodes))
}

// ForgetNode drops a node that was killed for good. Not for concurrent use.
func (s *Stack) ForgetNode(name string) {
	s.Nodes = slices.DeleteFunc(s.Nodes, func(node *Node) bool { return node.Name() == name })
}

// ReviveNode boots a killed node again, as a machine after a power cut: it has its name and its state folder, and
// nothing that ran. It waits until the node is online. Not for concurrent use.
func (s *Stack) ReviveNode(ctx context.Context, name string) error {
	count := len(s.Nodes)
	s.Nodes = slices.DeleteFunc(s.Nodes, func(node *Node) bool { return node.Name() == name })
	if len(s.Nodes) == count {
		return fmt.Errorf("there is no node %s", name)
	}
	if err := s.startNode(ctx, name); err != nil {
		return err
	}
	return s.awaitNodes(ctx, count)
}

// enrolment mints a one-time token for a node that has no credential yet.
func (s *Stack) enrolment(ctx context.Context, name, file string) error {
	if _, err := os.Stat(file); err == nil {
		return nil // enrolled in an earlier run
	}
	minted, err := gql.CreateNodeEnrolment(ctx, s.Operator, gql.CreateNodeEnrolmentInput{Name: name, TtlMinutes: 60})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(minted.CreateNodeEnrolment.Token), 0o600)
}

// awaitNodes waits until the platform lists so many nodes as online.
func (s *Stack) awaitNodes(ctx context.Context, count int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		online, err := s.onlineNodes(ctx)
		if err != nil {
			return err
		}
		if online >= count {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d nodes are online; see the agents' logs in %s: %w", online, count,
				filepath.Join(s.config.Dir, "logs"), ctx.Err())
		case <-tick.C:
		}
	}
}

func (s *Stack) onlineNodes(ctx context.Context) (int, error) {
	page, err := gql.ListNodes(ctx, s.Operator, 100, "")
	if err != nil {
		return 0, err
	}
	online := 0
	for _, edge := range page.Nodes.Edges {
		if edge.Node.Status == gql.NodeStatusOnline {
			online++
		}
	}
	return online, nil
}
