package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"github.com/gpuaas/app-platform/internal/filelock"
)

// DefaultSubnet is used when Config names none. Labs do not see each other, so that all may use the same one.
const DefaultSubnet = "10.77.0.0/24"

const (
	bridge       = "br0"
	switchHost   = 254 // the switch's own address in the subnet
	maxNodes     = 200
	stateRoot    = "/run/app-platform-lab" // one folder per lab, see Sweep
	lockFileName = "lock"
)

// Config describes a lab.
type Config struct {
	Subnet netip.Prefix // an IPv4 /24; zero: DefaultSubnet
	Log    *slog.Logger // nil: dropped
}

// Network is a lab: a switch and the nodes on it. Its methods are safe for concurrent use.
type Network struct {
	subnet netip.Prefix
	ns     *os.File // the switch's network namespace
	dir    string   // mount points of the nodes' roots; empty outside the nodes
	lock   *filelock.Lock
	log    *slog.Logger

	mu     sync.Mutex
	nodes  map[int]*Node // by host number in the subnet
	closed bool
}

// New makes an empty lab. It needs root, namespaces and ip(8); Supported says whether they are there.
func New(ctx context.Context, cfg Config) (_ *Network, err error) {
	if !cfg.Subnet.IsValid() {
		cfg.Subnet = netip.MustParsePrefix(DefaultSubnet)
	}
	if !cfg.Subnet.Addr().Is4() || cfg.Subnet.Bits() != 24 {
		return nil, fmt.Errorf("lab: Subnet %s is not an IPv4 /24", cfg.Subnet)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	n := &Network{subnet: cfg.Subnet.Masked(), log: cfg.Log, nodes: map[int]*Node{}}
	if n.dir, n.lock, err = makeStateDir(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	if n.ns, err = newNetNS(); err != nil {
		return nil, err
	}
	return n, ip(ctx, n.ns,
		"link set lo up",
		"link add "+bridge+" type bridge",
		fmt.Sprintf("addr add %s/24 dev %s", n.Addr(), bridge),
		"link set "+bridge+" up")
}

// makeStateDir makes the lab's folder, locked as long as the lab lives.
func makeStateDir() (string, *filelock.Lock, error) {
	making, err := lockState()
	if err != nil {
		return "", nil, fmt.Errorf("lab: %w", err)
	}
	defer making.Release()
	dir, err := os.MkdirTemp(stateRoot, "")
	if err != nil {
		return "", nil, fmt.Errorf("lab: %w", err)
	}
	lock, err := filelock.Try(filepath.Join(dir, lockFileName), filelock.Exclusive)
	if err != nil {
		return "", nil, fmt.Errorf("lab: %w", err)
	}
	return dir, lock, nil
}

// lockState keeps Sweep from running while folders are created or removed.
func lockState() (*filelock.Lock, error) {
	if err := os.MkdirAll(stateRoot, 0o755); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	return filelock.Acquire(ctx, stateRoot+".lock", filelock.Exclusive)
}

// Addr is the switch's own address: where the lab process listens for the nodes.
func (n *Network) Addr() netip.Addr { return n.host(switchHost) }

func (n *Network) host(number int) netip.Addr {
	b := n.subnet.Addr().As4()
	b[3] = byte(number)
	return netip.AddrFrom4(b)
}

// Listen opens a TCP listener inside the switch. addr is "IP:port" or ":port" (then on Addr); port 0 takes a free one.
func (n *Network) Listen(addr string) (net.Listener, error) {
	ip, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("lab: listen: %w", err)
	}
	if ip == "" {
		ip = n.Addr().String()
	}
	var listener net.Listener
	err = inNetNS(n.ns, func() (err error) {
		listener, err = net.Listen("tcp4", net.JoinHostPort(ip, port))
		return err
	})
	return listener, err
}

// ListenFile is Listen for a child process to inherit. It returns the address too, which the file does not hold.
func (n *Network) ListenFile(addr string) (*os.File, net.Addr, error) {
	listener, err := n.Listen(addr)
	if err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	file, err := listener.(*net.TCPListener).File()
	return file, listener.Addr(), err
}

// DialContext connects from inside the switch, for http.Transport. Names are not resolved: addr is "IP:port".
func (n *Network) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	// The dialer resolves names on goroutines of its own, which are on other threads and so outside the switch.
	if _, err := netip.ParseAddrPort(addr); err != nil {
		return nil, fmt.Errorf("lab: dial %s: %w", addr, err)
	}
	var conn net.Conn
	err := inNetNS(n.ns, func() (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, addr)
		return err
	})
	return conn, err
}

// Nodes are the live nodes, in no order.
func (n *Network) Nodes() []*Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	nodes := make([]*Node, 0, len(n.nodes))
	for _, node := range n.nodes {
		if node != nil {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// reserve takes the lowest free host number.
func (n *Network) reserve() (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return 0, errors.New("lab: closed")
	}
	for number := 1; number <= maxNodes; number++ {
		if _, taken := n.nodes[number]; !taken {
			n.nodes[number] = nil
			return number, nil
		}
	}
	return 0, fmt.Errorf("lab: more than %d nodes", maxNodes)
}

func (n *Network) place(number int, node *Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes[number] = node
}

func (n *Network) release(number int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.nodes, number)
}

// Close kills all nodes and takes the switch down. Open listeners and connections of Listen and DialContext keep the
// switch's namespace alive until they are closed. Safe to call twice.
func (n *Network) Close() error {
	n.mu.Lock()
	first := !n.closed
	n.closed = true
	n.mu.Unlock()
	if !first {
		return nil
	}
	var failed []error
	for _, node := range n.Nodes() {
		failed = append(failed, node.Kill())
	}
	if n.ns != nil {
		failed = append(failed, n.ns.Close())
	}
	failed = append(failed, n.removeDir())
	return errors.Join(failed...)
}

// removeDir keeps Sweep from meeting a folder that is half removed.
func (n *Network) removeDir() error {
	state, err := lockState()
	if err != nil {
		return err
	}
	defer state.Release()
	defer n.lock.Release()
	return os.RemoveAll(n.dir)
}
