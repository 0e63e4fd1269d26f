package install

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/gpuaas/app-platform/internal/supervise"
	"github.com/gpuaas/app-platform/rig/lab"
)

// Program starts one of the platform's programs on this machine. Its output goes to DIR/logs/NAME.log. A program that
// ends by itself for good fails the rig (see Wait).
func (r *Rig) Program(spec supervise.Spec) (*supervise.Child, error) {
	return r.keep(spec, supervise.Start)
}

func (r *Rig) keep(spec supervise.Spec, start func(supervise.Spec) (*supervise.Child, error)) (*supervise.Child,
	error) {
	log, err := supervise.OpenLog(r.path("logs"), spec.Name)
	if err != nil {
		return nil, err
	}
	spec.Log = log
	child, err := start(spec)
	if err != nil {
		_ = log.Close()
		return nil, err
	}
	stopping := make(chan struct{})
	go r.watch(child, log, stopping)
	r.stack.Push(spec.Name, func() error {
		close(stopping)
		defer log.Close()
		return child.Stop()
	})
	return child, nil
}

// watch reports a program that ended without being stopped.
func (r *Rig) watch(child *supervise.Child, log *supervise.Log, stopping <-chan struct{}) {
	<-child.Done()
	select {
	case <-stopping:
		return
	default:
	}
	how := "exit status 0"
	if err := child.Err(); err != nil {
		how = err.Error()
	}
	select {
	case r.failed <- fmt.Errorf("%s ended: %s (see %s)\n%s", child.Name(), how, log.Path(), log.Tail()):
	default: // the first failure is the one to read
	}
}

// Node is a local node with the folder its agent keeps things in.
type Node struct {
	*lab.Node
	// State is the folder's path as the agent sees it. It survives the node.
	State string
	// Cgroup is for the limits of what runs on the node; it ends with it.
	Cgroup string
	rig    *Rig
}

// nodeState is where a node of the lab sees its state folder.
const nodeState = "/var/lib/app-platform-node"

// AddNode boots a node. Further binds show files of the machine on it; a plain node sees them anyway. The data folder
// and the home folder of root are hidden from nodes of the lab, and the registry answers on their loopback as it does
// here.
func (r *Rig) AddNode(ctx context.Context, name string, binds ...lab.Bind) (*Node, error) {
	state := r.path("nodes", name)
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	if r.network == nil {
		return r.addPlain(name, state)
	}
	node, err := r.network.AddNode(ctx, lab.NodeConfig{
		Name: name, Hide: r.hidden(),
		Binds: append([]lab.Bind{{Source: state, Target: nodeState}}, binds...),
	})
	if err != nil {
		return nil, err
	}
	cgroup := r.cgroup() + "/" + name
	r.stack.Push("node "+name, func() error { return errors.Join(node.Kill(), removeCgroups(cgroup)) })
	listener, err := node.Listen(r.address)
	if err != nil {
		return nil, err
	}
	r.serveRegistry(listener)
	return &Node{Node: node, State: nodeState, Cgroup: cgroup, rig: r}, nil
}

func (r *Rig) addPlain(name, state string) (*Node, error) {
	node, err := lab.NewPlain(name)
	if err != nil {
		return nil, err
	}
	cgroup := r.cgroup() + "/" + name
	r.stack.Push("node "+name, func() error { return errors.Join(node.Kill(), removeCgroups(cgroup)) })
	return &Node{Node: node, State: state, Cgroup: cgroup, rig: r}, nil
}

func (r *Rig) hidden() []string {
	dirs := []string{r.cfg.Dir}
	if home, err := os.UserHomeDir(); err == nil && filepath.Clean(home) != "/" {
		dirs = append(dirs, filepath.Clean(home))
	}
	return dirs
}

// Program starts a program on the node, with its output in the machine's DIR/logs/NAME.log. One that ends by itself for
// good fails the rig.
func (n *Node) Program(spec supervise.Spec) (*supervise.Child, error) {
	return n.rig.keep(spec, n.Start)
}

// AwaitHTTP asks url until it answers 200, or ctx ends.
func AwaitHTTP(ctx context.Context, client *http.Client, url string) error {
	last := error(nil)
	for {
		if last = probe(ctx, client, url); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w", url, ctx.Err(), last)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func probe(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", answer.Status)
	}
	return nil
}
