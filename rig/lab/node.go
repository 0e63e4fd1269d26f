package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/internal/supervise"
)

// DefaultNodeBytes bounds what may be written to a node's root when NodeConfig says nothing.
const DefaultNodeBytes = 512 << 20

const (
	setupTimeout  = 20 * time.Second
	killTimeout   = 15 * time.Second
	maxExecOutput = 1 << 20
	namespaces    = syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWPID |
		syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC
)

var hostnamePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// NodeConfig describes a node.
type NodeConfig struct {
	Name  string   // host name: lower-case letters, digits and dashes, 63 at most; required
	Bytes int64    // bound of what may be written to the root, held in memory; 0: DefaultNodeBytes
	Binds []Bind   // files and folders of the machine to show on the node
	Hide  []string // folders of the machine that the node must not see
}

func (c *NodeConfig) complete() error {
	if !hostnamePattern.MatchString(c.Name) {
		return fmt.Errorf("lab: Name %q is not a host name", c.Name)
	}
	if c.Bytes == 0 {
		c.Bytes = DefaultNodeBytes
	}
	for _, b := range c.Binds {
		if !validPath(b.Source) || !validPath(b.Target) {
			return fmt.Errorf("lab: Binds: %q on %q: both must be absolute and clean", b.Source, b.Target)
		}
	}
	for _, dir := range c.Hide {
		if !validPath(dir) {
			return fmt.Errorf("lab: Hide: %q is not absolute and clean", dir)
		}
	}
	return nil
}

// Node is a machine of the lab (or, from NewPlain, a process tree on this one).
type Node struct {
	name    string
	control *control
	network *Network // nil for a plain node
	number  int      // host number in the subnet
	kill    sync.Once
	killed  error

	mu        sync.Mutex
	listeners []net.Listener // inside the node's network, closed with the node
}

// AddNode boots a node and answers when its root and its network are ready.
func (n *Network) AddNode(ctx context.Context, cfg NodeConfig) (_ *Node, err error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	number, err := n.reserve()
	if err != nil {
		return nil, err
	}
	node := &Node{name: cfg.Name, network: n, number: number}
	if err := os.Mkdir(node.dir(), 0o755); err != nil {
		n.release(number)
		return nil, fmt.Errorf("lab: %w", err)
	}
	if node.control, err = startInit(n.dir, NodeEnv(), namespaces, syscall.SIGKILL); err != nil {
		n.release(number)
		return nil, fmt.Errorf("node %s: %w", cfg.Name, err)
	}
	n.place(number, node)
	if err := node.boot(ctx, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("node %s: %w", cfg.Name, err), node.Kill())
	}
	n.log.Info("node is up", "node", cfg.Name, "address", node.Addr(), "pid", node.PID())
	return node, nil
}

func (node *Node) dir() string { return filepath.Join(node.network.dir, strconv.Itoa(node.number)) }

// boot plugs the node into the switch and lets its init build the root.
func (node *Node) boot(ctx context.Context, cfg NodeConfig) error {
	if err := node.plugIn(ctx); err != nil {
		return err
	}
	_, err := node.control.ask(request{Setup: &setup{
		Root: node.dir(), Hostname: cfg.Name, Address: node.Addr().String(), Bytes: cfg.Bytes, Binds: cfg.Binds,
		Hide: cfg.Hide,
	}})
	return err
}

func (node *Node) plugIn(ctx context.Context) error {
	own, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", node.PID()))
	if err != nil {
		return err
	}
	defer own.Close()
	err = ip(ctx, node.network.ns,
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", node.port(), node.PID()),
		fmt.Sprintf("link set %s master %s up", node.port(), bridge))
	if err != nil {
		return err
	}
	return ip(ctx, own, "link set lo up", fmt.Sprintf("addr add %s/24 dev eth0", node.Addr()), "link set eth0 up")
}

// port is the node's end in the switch.
func (node *Node) port() string { return "node" + strconv.Itoa(node.number) }

// Name is the node's host name.
func (node *Node) Name() string { return node.name }

// Addr is the node's address on the lab's network; that of a plain node is 127.0.0.1.
func (node *Node) Addr() netip.Addr {
	if node.network == nil {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return node.network.host(node.number)
}

// PID is the process id, on the machine, of the node's init.
func (node *Node) PID() int { return node.control.cmd.Process.Pid }

// Done is closed when the node has ended.
func (node *Node) Done() <-chan struct{} { return node.control.done }

// Start keeps a program running on the node. Paths, and the process ids that it reports, are the node's own;
// spec.Spawner is set here.
func (node *Node) Start(spec supervise.Spec) (*supervise.Child, error) {
	spec.Spawner = node.control
	child, err := supervise.Start(spec)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", node.name, err)
	}
	return child, nil
}

// Exec runs a program on the node to its end and answers its output, 1 MiB at most. The error of a failed one holds the
// output's end.
func (node *Node) Exec(ctx context.Context, command ...string) (string, error) {
	var out boundedBuffer
	child, err := node.Start(supervise.Spec{Name: "exec", Command: command, Log: &out, StopSignal: syscall.SIGKILL})
	if err != nil {
		return "", err
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		_ = child.Stop()
		return out.String(), fmt.Errorf("node %s: %v: %w", node.name, command, ctx.Err())
	}
	if err := child.Err(); err != nil {
		text := bytes.TrimSpace(out.data)
		return out.String(), fmt.Errorf("node %s: %v: %w: %s", node.name, command, err, text[max(0, len(text)-500):])
	}
	return out.String(), nil
}

// Listen opens a TCP listener of the lab process inside the node's network, for example on the node's loopback, so that
// one address means the same service on every node and on the machine. It is closed when the node is killed.
func (node *Node) Listen(addr string) (net.Listener, error) {
	if node.network == nil {
		return nil, fmt.Errorf("lab: plain node %s has no network of its own", node.name)
	}
	own, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", node.PID()))
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", node.name, err)
	}
	defer own.Close()
	var listener net.Listener
	err = inNetNS(own, func() (err error) {
		listener, err = net.Listen("tcp4", addr)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", node.name, err)
	}
	node.mu.Lock()
	defer node.mu.Unlock()
	node.listeners = append(node.listeners, listener)
	return listener, nil
}

// DialContext connects from inside the node's network. Names are not resolved: addr is "IP:port".
func (node *Node) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if _, err := netip.ParseAddrPort(addr); err != nil {
		return nil, fmt.Errorf("node %s: dial %s: %w", node.name, addr, err)
	}
	own, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", node.PID()))
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", node.name, err)
	}
	defer own.Close()
	var conn net.Conn
	err = inNetNS(own, func() (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, addr)
		return err
	})
	return conn, err
}

// hangUp closes the listeners: an open one would keep the node's network in being.
func (node *Node) hangUp() {
	node.mu.Lock()
	defer node.mu.Unlock()
	for _, listener := range node.listeners {
		_ = listener.Close()
	}
}

// boundedBuffer keeps the first maxExecOutput bytes.
type boundedBuffer struct{ data []byte }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	b.data = append(b.data, p[:min(len(p), maxExecOutput-len(b.data))]...)
	return len(p), nil
}

func (b *boundedBuffer) String() string { return string(b.data) }

// CutNetwork pulls the node's cable: its connections hang, as with a broken switch port.
func (node *Node) CutNetwork(ctx context.Context) error { return node.setPort(ctx, "down") }

// RestoreNetwork plugs the cable in again.
func (node *Node) RestoreNetwork(ctx context.Context) error { return node.setPort(ctx, "up") }

func (node *Node) setPort(ctx context.Context, state string) error {
	if node.network == nil {
		return fmt.Errorf("lab: plain node %s has no network of its own", node.name)
	}
	return ip(ctx, node.network.ns, "link set "+node.port()+" "+state)
}

// Kill ends the node and everything on it at once, like a power cut, and waits for its end. Safe to call twice.
func (node *Node) Kill() error {
	node.kill.Do(func() { node.killed = node.end() })
	return node.killed
}

func (node *Node) end() error {
	node.hangUp()
	if node.network == nil {
		_ = node.control.conn.Close() // the init ends its descendants, then itself
	} else {
		_ = node.control.cmd.Process.Kill()
	}
	select {
	case <-node.control.done:
	case <-time.After(killTimeout):
		return fmt.Errorf("node %s: its init %d does not end", node.name, node.PID())
	}
	_ = node.control.conn.Close()
	if node.network == nil {
		return nil
	}
	defer node.network.release(node.number)
	node.unplug()
	return os.Remove(node.dir())
}

// unplug takes the node's port out of the switch. The kernel does that too, but some time after the last process of the
// node, and the next node may want the same port. So an error only says that the kernel was first.
func (node *Node) unplug() {
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	_ = ip(ctx, node.network.ns, "link del "+node.port())
}
