package redteam

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/inject"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	wires "github.com/gpuaas/app-platform/cmd/node-agent/internal/network"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/oci"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

var one sync.Mutex

// ground is a node with two members of different instances on it: the attacker and its victim.
type ground struct {
	t        *testing.T
	dir      string
	fabric   *wires.Fabric
	manager  *sandbox.Manager
	attacker *sandbox.Client
	victim   *sandbox.Client
	log      *slog.Logger
	// shared and local are the folders of the node's storages.
	shared, local string
}

func newGround(t *testing.T, profile oci.Profile) *ground {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("members are isolated only where the agent is root")
	}
	one.Lock() // the node's network is one
	t.Cleanup(one.Unlock)
	g := &ground{t: t, dir: t.TempDir(), log: slog.New(slog.DiscardHandler)}
	g.wire()
	var err error
	g.manager, err = sandbox.NewManager(t.Context(), sandbox.Options{
		StateDir: g.dir, Root: testRoot, Network: g.fabric, Volumes: g.shelves(), Log: g.log,
	})
	require.NoError(t, err)
	require.Equal(t, memberinit.ModeContainer, g.manager.Isolation().Mode, g.manager.Isolation().Reason)
	t.Cleanup(func() {
		for _, id := range []string{attackerID, victimID} {
			left, err := g.manager.Teardown(context.Background(), id)
			require.NoError(t, err)
			require.True(t, left.Empty(), "%+v", left)
		}
	})
	g.victim = g.member(victimID, "ins_0000000000000000000000victim", sandbox.Walls{Devices: []inject.Device{gpu(1)},
		Volumes: victimsVolumes()})
	g.attacker = g.member(attackerID, "ins_00000000000000000000attacker", sandbox.Walls{
		Profile: profile, Devices: []inject.Device{gpu(0)}, MemoryMiB: 256, Pids: 128, AllocationID: "alc_attacker",
		Volumes: attackersVolumes(),
	})
	return g
}

func gpu(minor int) inject.Device {
	return inject.Device{UUID: fmt.Sprintf("GPU-%d", minor), Path: fmt.Sprintf("/dev/nvidia%d", minor), Minor: minor,
		Simulated: true}
}

// member starts one, with this very program in it.
func (g *ground) member(id, instance string, walls sandbox.Walls) *sandbox.Client {
	g.t.Helper()
	client, err := g.manager.Ensure(g.t.Context(), sandbox.Member{ID: id, InstanceID: instance, Walls: walls})
	require.NoError(g.t, err)
	program, err := os.Open("/proc/self/exe")
	require.NoError(g.t, err)
	defer program.Close()
	info, err := program.Stat()
	require.NoError(g.t, err)
	require.NoError(g.t, client.Place(g.t.Context(), wire.File{Path: "/scratch/redteam", Mode: 0o755}, info.Size(),
		program))
	return client
}

// wire makes the node's network: an address, a world with a metadata service, the members' view, and the node's
// services.
func (g *ground) wire() {
	world := newSpace(g.t)
	link, err := netlink.LinkByName("lo")
	require.NoError(g.t, err)
	require.NoError(g.t, netlink.LinkSetUp(link))
	require.NoError(g.t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "up0"}, PeerName: "w0",
		PeerNamespace: netlink.NsFd(int(world))}))
	link, err = netlink.LinkByName("up0")
	require.NoError(g.t, err)
	g.t.Cleanup(func() { _ = netlink.LinkDel(link) })
	require.NoError(g.t, netlink.LinkSetUp(link))
	address, err := netlink.ParseAddr(nodeIP + "/24")
	require.NoError(g.t, err)
	require.NoError(g.t, netlink.AddrAdd(link, address))
	// Without the rules everything link-local would be reached there.
	require.NoError(g.t, netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index,
		Gw: net.ParseIP("10.88.0.254")}))
	inside(g.t, world, func() error {
		peer, err := netlink.LinkByName("w0")
		if err != nil {
			return err
		}
		for _, address := range []string{"10.88.0.254/24", "169.254.169.254/32"} {
			own, err := netlink.ParseAddr(address)
			if err == nil {
				err = netlink.AddrAdd(peer, own)
			}
			if err != nil {
				return err
			}
		}
		if err == nil {
			err = netlink.LinkSetUp(peer)
		}
		if err != nil {
			return err
		}
		return g.listens("169.254.169.254:80")
	})
	require.NoError(g.t, g.listens(fmt.Sprintf("0.0.0.0:%d", service)))
	own := netip.MustParseAddr(nodeIP)
	g.fabric, err = wires.Open(own, nil, slog.New(slog.DiscardHandler))
	require.NoError(g.t, err)
	member := func(id string, last byte) wires.Member {
		return wires.Member{ID: id, Address: netip.AddrFrom4([4]byte{100, 64, 0, last}), NodeID: "nod_1", Node: own}
	}
	require.NoError(g.t, g.fabric.Apply(wires.View{
		Pools: []netip.Prefix{netip.MustParsePrefix("100.64.0.0/11")}, Nodes: []netip.Addr{own},
		Instances: []wires.Instance{
			{ID: "ins_a", Members: []wires.Member{member(attackerID, 1)}},
			{ID: "ins_v", Members: []wires.Member{member(victimID, 2)}},
		},
	}))
}

func (g *ground) listens(address string) error {
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		return err
	}
	g.t.Cleanup(func() { _ = listener.Close() })
	go answer(listener)
	return nil
}

// newSpace is a network namespace without a way out.
func newSpace(t *testing.T) netns.NsHandle {
	t.Helper()
	made := make(chan netns.NsHandle, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		handle, err := netns.New()
		if err != nil {
			handle = netns.None()
		}
		made <- handle
	}()
	handle := <-made
	require.True(t, handle.IsOpen())
	t.Cleanup(func() { _ = handle.Close() })
	return handle
}

func inside(t *testing.T, space netns.NsHandle, f func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := netns.Set(space); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	require.NoError(t, <-done)
}

func (g *ground) run(client *sandbox.Client, command ...string) wire.RunResult {
	g.t.Helper()
	run := wire.Run{Key: fmt.Sprint("redteam-", time.Now().UnixNano()), Fence: 1, Command: command,
		TimeoutMillis: 60_000}
	ended, err := client.Run(g.t.Context(), run, func(wire.Output) {})
	require.NoError(g.t, err)
	return ended
}
