package kubernetes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/lab"
	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// folderVar names the environment variable with the folder of the compiled stand-in.
const folderVar = "RKE2_STANDIN"

// patience bounds what the test waits for outside of an operation, on a machine that does other things meanwhile.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	lab.MaybeRunInit()
	os.Exit(m.Run())
}

// alone keeps one installation at a time: each is as much as a small machine bears.
var alone sync.Mutex

// cluster is one instance under test.
type cluster struct {
	t        *testing.T
	ctx      context.Context
	c        *client.Client
	s        *stack.Stack
	bin      string
	instance string
}

// begin brings an installation up whose nodes are whole nodes with the stand-in on them.
func begin(t *testing.T, nodes int) *cluster {
	t.Helper()
	folder := os.Getenv(folderVar)
	if folder == "" {
		t.Skip("it needs a compiled Kubernetes: run make test-kubernetes")
	}
	bin, err := filepath.Abs("../../bin")
	require.NoError(t, err)
	alone.Lock()
	t.Cleanup(alone.Unlock)
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute)
	t.Cleanup(cancel)
	dir := filepath.Join(t.TempDir(), "data")
	s, err := stack.Up(ctx, stack.Config{Dir: dir, Bin: bin, Listen: "127.0.0.1:0", WholeNodes: nodes,
		NodeMemoryMiB: 4096, Throwaway: true, Kubernetes: folder, Apps: []stack.App{stack.Kubernetes()},
		Out: t.Output()})
	if err != nil {
		showLogs(t, filepath.Join(dir, "logs"))
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			showLogs(t, s.LogDir())
		}
		require.NoError(t, s.Close())
	})
	c, err := s.Automation()
	require.NoError(t, err)
	return &cluster{t: t, ctx: ctx, c: c, s: s, bin: bin}
}

// showLogs shows the end of what every program logged that is not ordinary progress.
func showLogs(t *testing.T, dir string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, file := range files {
		content, _ := os.ReadFile(file)
		var shown strings.Builder
		for line := range strings.Lines(string(content)) {
			if !strings.Contains(line, `"level":"INFO"`) {
				shown.WriteString(line)
			}
		}
		t.Logf("---- %s\n%s", filepath.Base(file), shown.String()[max(0, shown.Len()-4_000):])
	}
}

// rent takes whole nodes and gives them back at the end, with proof.
func (k *cluster) rent(count int) (allocations []string) {
	k.t.Helper()
	got, err := gql.RequestAllocation(k.ctx, k.c, gql.RequestAllocationInput{
		ProjectId: k.s.Demo.ProjectID, Shape: gql.CapacityShapeBaremetal, Count: count, Sku: stack.WholeSKU,
		IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	for _, allocation := range got.RequestAllocation.Allocations {
		allocations = append(allocations, allocation.Id)
		k.t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			release, err := gql.ReleaseAllocation(ctx, k.c, gql.ReleaseAllocationInput{AllocationId: allocation.Id,
				IdempotencyKey: client.NewKey()})
			require.NoError(k.t, err)
			ended, err := k.c.WaitOperation(ctx, release.ReleaseAllocation.Operation.Id, nil)
			require.NoError(k.t, err)
			require.Equal(k.t, gql.OperationStateSucceeded, ended.State, "%s: %+v", ended.Message, ended.Error)
		})
	}
	require.Len(k.t, allocations, count)
	return allocations
}

// succeeds waits for the end of an operation, and requires that it did what it was to do.
func (k *cluster) succeeds(operation gql.Operation) *gql.OperationDetail {
	k.t.Helper()
	ended, err := k.c.WaitOperation(k.ctx, operation.Id, nil)
	require.NoError(k.t, err)
	require.Equal(k.t, gql.OperationStateSucceeded, ended.State, "%s: %s: %+v", ended.Kind, ended.Message, ended.Error)
	k.t.Logf("%s: %s after %s", ended.Kind, ended.State, ended.EndedAt.Sub(ended.CreatedAt).Round(time.Second/10))
	return ended
}

// members are those of a component that have not left, by their Node's name.
func (k *cluster) members(component string) map[string]gql.Member {
	k.t.Helper()
	page, err := gql.ListMembers(k.ctx, k.c, k.instance, 50, "")
	require.NoError(k.t, err)
	list := map[string]gql.Member{}
	for _, edge := range page.Instance.Members.Edges {
		if edge.Node.ComponentKey == component && edge.Node.Status != gql.MemberStatusRemoved {
			list[nodeName(edge.Node.Id)] = edge.Node
		}
	}
	return list
}

// nodeName is the Node of a member.
func nodeName(member string) string { return strings.ReplaceAll(strings.ToLower(member), "_", "-") }

// one is any of the members.
func one(members map[string]gql.Member) (name string, member gql.Member) {
	for name, member = range members {
		break
	}
	return name, member
}

// node is the lab's node of a member.
func (k *cluster) node(member gql.Member) *stack.Node {
	k.t.Helper()
	for _, node := range k.s.Nodes {
		if node.Name() == member.Node.Name {
			return node
		}
	}
	k.t.Fatalf("there is no node %s", member.Node.Name)
	return nil
}

// root is where a member's files are on its node.
func (k *cluster) root(member gql.Member) string {
	k.t.Helper()
	return k.node(member).State + "/agent/members/" + member.Id + "/root"
}

// on runs a command on the node of a member.
func (k *cluster) on(member gql.Member, script string) (string, error) {
	ctx, cancel := context.WithTimeout(k.ctx, patience)
	defer cancel()
	return k.node(member).Exec(ctx, "/bin/sh", "-c", script)
}

// kubectl runs kubectl as the administrator on the first server that answers: the test's check beside the platform's.
func (k *cluster) kubectl(args ...string) string {
	k.t.Helper()
	out, err := k.tryKubectl("", args...)
	require.NoError(k.t, err)
	return out
}

func (k *cluster) tryKubectl(stdin string, args ...string) (out string, err error) {
	k.t.Helper()
	words := []string{}
	for _, arg := range args {
		words = append(words, "'"+strings.ReplaceAll(arg, "'", `'\''`)+"'")
	}
	err = fmt.Errorf("there is no server")
	for _, member := range k.members("server") {
		if member.Status != gql.MemberStatusActive {
			continue
		}
		root := k.root(member)
		out, err = k.on(member, "cat << 'END' | "+root+"/var/lib/rancher/rke2/bin/kubectl --kubeconfig "+root+
			"/etc/rancher/rke2/rke2.yaml --request-timeout=20s "+strings.Join(words, " ")+"\n"+stdin+"\nEND\n")
		if err == nil {
			return out, nil
		}
	}
	return out, err
}

// apply gives the cluster objects.
func (k *cluster) apply(objects ...any) {
	k.t.Helper()
	for _, object := range objects {
		raw, err := json.Marshal(object)
		require.NoError(k.t, err)
		_, err = k.tryKubectl(string(raw), "apply", "-f", "-")
		require.NoError(k.t, err)
	}
}

// eventually waits for a state of the cluster.
func (k *cluster) eventually(what string, holds func() bool) {
	k.t.Helper()
	began := time.Now()
	require.Eventually(k.t, holds, patience, 200*time.Millisecond, what)
	k.t.Logf("%s: after %s", what, time.Since(began).Round(time.Second/10))
}

// nodesReady requires so many Nodes, all of them Ready.
func (k *cluster) nodesReady(count int) {
	k.t.Helper()
	k.eventually(fmt.Sprintf("%d Nodes, all Ready", count), func() bool {
		out, err := k.tryKubectl("", "get", "nodes", "--no-headers")
		return err == nil && strings.Count(out, " Ready ") == count && strings.Count(out, "\n") == count
	})
}
