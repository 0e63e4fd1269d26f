package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// space is a network namespace of the test, a machine or a switch: it has no way out of the test.
type space struct {
	t  *testing.T
	ns netns.NsHandle
}

func newSpace(t *testing.T) *space {
	t.Helper()
	made := make(chan netns.NsHandle, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		handle, err := netns.New()
		if err != nil {
			handle = netns.None()
		}
		made <- handle
	}()
	s := &space{t, <-made}
	require.True(t, s.ns.IsOpen(), "a network namespace cannot be made")
	t.Cleanup(func() { _ = s.ns.Close() })
	require.NoError(t, s.do(func() error { return up("lo") }))
	return s
}

// do runs f inside. What f opens stays there.
func (s *space) do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := netns.Set(s.ns); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

func addAddress(device, address string) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	parsed, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	return netlink.AddrAdd(link, parsed)
}

// cable connects two spaces, each end with an address.
func cable(t *testing.T, a *space, nameA, addressA string, b *space, nameB, addressB string) {
	t.Helper()
	require.NoError(t, a.do(func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: nameA}, PeerName: nameB,
			PeerNamespace: netlink.NsFd(int(b.ns))})
	}))
	for _, end := range []struct {
		at            *space
		name, address string
	}{{a, nameA, addressA}, {b, nameB, addressB}} {
		require.NoError(t, end.at.do(func() error {
			if err := up(end.name); err != nil || end.address == "" {
				return err
			}
			return addAddress(end.name, end.address)
		}))
	}
}

// serve accepts connections in a space and sends each the address that it came from.
func (s *space) serve(address string) {
	s.t.Helper()
	require.NoError(s.t, s.do(func() error { return serve(s.t, address) }))
}

func serve(t *testing.T, address string) error {
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
			_, _ = io.WriteString(conn, host)
			_ = conn.Close()
		}
	}()
	return nil
}

// member is one that is on a node.
type member struct {
	Member
	node *node
	pid  int
	at   *space
}

// node is a machine with a fabric.
type node struct {
	*space
	addr   netip.Addr
	fabric *Fabric
}

func (n *node) open() {
	n.t.Helper()
	require.NoError(n.t, n.do(func() (err error) {
		n.fabric, err = Open(n.addr, nil, slog.New(slog.DiscardHandler))
		return err
	}))
}

func (n *node) apply(view View) {
	n.t.Helper()
	require.NoError(n.t, n.do(func() error { return n.fabric.Apply(view) }))
}

// start makes a process with user and network namespaces of its own, and plugs it in.
func (n *node) start(m Member) *member {
	n.t.Helper()
	m.Node = n.addr
	cmd := exec.Command("sleep", "3600")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 1 << 20, Size: 1000}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 1 << 20, Size: 1000}},
	}
	started := make(chan error)
	ended := make(chan struct{})
	go func() {
		runtime.LockOSThread() // the parent-death signal follows the thread
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(ended)
	}()
	require.NoError(n.t, <-started)
	n.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	handle, err := netns.GetFromPid(cmd.Process.Pid)
	require.NoError(n.t, err)
	n.t.Cleanup(func() { _ = handle.Close() })
	require.NoError(n.t, n.do(func() error { return n.fabric.Attach(context.Background(), m.ID, cmd.Process.Pid) }))
	return &member{Member: m, node: n, pid: cmd.Process.Pid, at: &space{n.t, handle}}
}

const patience = 3 * time.Second

// ask connects from a member, and returns who the other side says it came from.
func (m *member) ask(address string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := Dial(ctx, m.pid, "tcp", address)
	return answerOf(conn, err)
}

// askFrom connects from a space.
func (s *space) ask(address string) (said string, err error) {
	var conn net.Conn
	err = s.do(func() (err error) {
		conn, err = net.DialTimeout("tcp4", address, patience)
		return err
	})
	return answerOf(conn, err)
}

func answerOf(conn net.Conn, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	said, err := io.ReadAll(conn)
	return string(said), err
}

func reaches(t *testing.T, from *member, address, as string) {
	t.Helper()
	said, err := from.ask(address)
	require.NoError(t, err, "%s to %s", from.ID, address)
	require.Equal(t, as, said, "%s is seen as another", from.ID)
}

func refused(t *testing.T, from *member, address string) {
	t.Helper()
	_, err := from.ask(address)
	require.Error(t, err, "%s reached %s", from.ID, address)
	require.True(t, errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EHOSTUNREACH), "%s to %s: %v", from.ID,
		address, err)
}

// rig is two nodes and the world, on one segment or with a router between them.
type rig struct {
	t      *testing.T
	world  *space
	n1, n2 *node
}

const (
	worldAddress = "10.88.0.254"
	metadata     = "169.254.169.254"
)

func needsRoot(t *testing.T) {
	t.Helper()
	if unix.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	probe := exec.Command("true")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET}
	if err := probe.Run(); err != nil {
		t.Skipf("namespaces cannot be made here: %v", err)
	}
}

// newRig puts two nodes on one segment, with the world and a metadata service on it.
func newRig(t *testing.T) *rig {
	t.Helper()
	needsRoot(t)
	r := &rig{t: t, world: newSpace(t)}
	require.NoError(t, r.world.do(func() error {
		return errors.Join(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}), up("br0"),
			addAddress("br0", worldAddress+"/24"), addAddress("br0", metadata+"/32"))
	}))
	r.n1, r.n2 = r.onSegment(1), r.onSegment(2)
	r.world.serve(worldAddress + ":8080")
	r.world.serve(metadata + ":80")
	return r
}

func (r *rig) onSegment(number int) *node {
	r.t.Helper()
	n := &node{space: newSpace(r.t), addr: netip.AddrFrom4([4]byte{10, 88, 0, byte(number)})}
	port := fmt.Sprintf("p%d", number)
	cable(r.t, r.world, port, "", n.space, "eth0", n.addr.String()+"/24")
	require.NoError(r.t, r.world.do(func() error {
		bridge, err := netlink.LinkByName("br0")
		if err != nil {
			return err
		}
		link, err := netlink.LinkByName(port)
		if err != nil {
			return err
		}
		return netlink.LinkSetMaster(link, bridge)
	}))
	require.NoError(r.t, n.do(func() error {
		return netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(worldAddress)})
	}))
	n.serve("0.0.0.0:9000") // a service of the node
	n.open()
	return n
}

// everywhere applies a view on both nodes.
func (r *rig) everywhere(view View) {
	r.t.Helper()
	r.n1.apply(view)
	r.n2.apply(view)
}

var pools = []netip.Prefix{netip.MustParsePrefix("100.64.0.0/11"), netip.MustParsePrefix("100.96.0.0/11")}

// on names a member of the pool's number on a node.
func on(n *node, id string, number byte) Member {
	return Member{ID: "mem_" + id, Address: netip.AddrFrom4([4]byte{100, 64, 0, number}), NodeID: n.addr.String(),
		Node: n.addr}
}

func (r *rig) view(instances ...Instance) View {
	return View{Version: fmt.Sprint(instances), Pools: pools, Nodes: []netip.Addr{r.n1.addr, r.n2.addr},
		Instances: instances}
}

func instance(id string, members ...Member) Instance {
	return Instance{ID: "ins_" + id, Members: members}
}

// listening starts a member that serves port 7000 on all its addresses, its loopback too.
func (n *node) listening(m Member) *member {
	n.t.Helper()
	started := n.start(m)
	started.at.serve("0.0.0.0:7000")
	started.at.serve("127.0.0.1:7001")
	return started
}

func (m *member) port(number int) string { return fmt.Sprintf("%s:%d", m.Address, number) }
