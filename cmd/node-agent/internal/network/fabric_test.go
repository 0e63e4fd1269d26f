package network

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Two members of one instance on two nodes, and a stranger beside the first.
func (r *rig) three() (a1, a2, b *member) {
	m1, m2, other := on(r.n1, "a1", 1), on(r.n2, "a2", 2), on(r.n1, "b", 3)
	r.everywhere(r.view(instance("a", m1, m2), instance("b", other)))
	return r.n1.listening(m1), r.n2.listening(m2), r.n1.listening(other)
}

func TestMembersOfAnInstanceReachEachOtherAndTheWorldAndNothingElse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a1, a2, b := r.three()
	reaches(t, a1, a2.port(7000), a1.Address.String())
	reaches(t, a2, a1.port(7000), a2.Address.String())
	reaches(t, a1, a1.port(7000), a1.Address.String())
	reaches(t, a1, worldAddress+":8080", r.n1.addr.String())
	for _, shut := range []string{
		b.port(7000), b.port(7001), // another instance's member, on the same node
		"10.88.0.1:9000", "10.88.0.2:9000", // services of its node and of another
		metadata + ":80", gateway.String() + ":9000",
	} {
		refused(t, a1, shut)
	}
	for _, shut := range []string{a1.port(7000), a2.port(7000), "100.64.0.200:1", "100.96.1.1:1"} {
		refused(t, b, shut)
	}
	_, err := a1.ask(a2.port(7001)) // its neighbour's loopback is nobody's
	require.ErrorIs(t, err, unix.ECONNREFUSED)
	_, err = a1.ask("127.0.0.1:9000") // nor is the node's
	require.ErrorIs(t, err, unix.ECONNREFUSED)
}

// The control: without the rules each of these would be reached. The namespaces have no way out.
func TestWithoutTheRulesEachOfThemWouldBeReached(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, a2, b := r.three()
	for _, n := range []*node{r.n1, r.n2} {
		require.NoError(t, n.do(uninstall))
	}
	for _, open := range []string{a2.port(7000), "10.88.0.1:9000"} {
		_, err := b.ask(open)
		require.NoError(t, err, "%s", open)
	}
	// The metadata service answers what it knows the way to.
	require.NoError(t, r.world.do(func() error {
		return netlink.RouteAdd(&netlink.Route{Dst: ipNet(pools[0]), Gw: r.n1.addr.AsSlice()})
	}))
	require.NoError(t, r.n1.do(func() error {
		return netlink.RouteAdd(&netlink.Route{Dst: ipNet(linkLocal), Gw: net.ParseIP(worldAddress)})
	}))
	_, err := b.ask(metadata + ":80")
	require.NoError(t, err)
}

func TestAMemberSpeaksUnderItsOwnAddressAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a1, a2, b := r.three()
	var heard *net.UDPConn
	require.NoError(t, a2.at.do(func() (err error) {
		heard, err = net.ListenUDP("udp4", &net.UDPAddr{Port: 7000})
		return err
	}))
	defer heard.Close()
	send := func(from *member, as netip.Addr, text string) {
		require.NoError(t, from.at.do(func() error {
			if as != from.Address {
				if err := addAddress(inside, as.String()+"/32"); err != nil {
					return err
				}
			}
			conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: as.AsSlice()},
				&net.UDPAddr{IP: a2.Address.AsSlice(), Port: 7000})
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = conn.Write([]byte(text))
			return err
		}))
	}
	send(b, a1.Address, "forged")
	send(a1, a1.Address, "true") // sent after the other, by the same node
	buffer := make([]byte, 64)
	require.NoError(t, heard.SetReadDeadline(time.Now().Add(patience)))
	n, _, err := heard.ReadFromUDP(buffer)
	require.NoError(t, err)
	require.Equal(t, "true", string(buffer[:n]))
}

func TestAcceptedSharesAndDeclaredEndpointsAreOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	plane, guest, web := on(r.n1, "plane", 1), on(r.n2, "guest", 2), on(r.n1, "web", 3)
	web.Open = []Port{{"tcp", 7000}}
	view := r.view(instance("plane", plane), Instance{ID: "ins_guest", Reaches: []string{"ins_plane"},
		Members: []Member{guest}}, instance("web", web))
	r.everywhere(view)
	p, g, w := r.n1.listening(plane), r.n2.listening(guest), r.n1.listening(web)
	w.at.serve("0.0.0.0:7002")
	reaches(t, g, p.port(7000), g.Address.String())
	refused(t, p, g.port(7000)) // who shares reaches nobody by that
	reaches(t, p, w.port(7000), p.Address.String())
	refused(t, p, w.port(7002)) // a port that is not declared
	require.NoError(t, r.world.do(func() error {
		return netlink.RouteAdd(&netlink.Route{Dst: ipNet(pools[0]), Gw: r.n1.addr.AsSlice()})
	}))
	said, err := r.world.ask(w.port(7000))
	require.NoError(t, err)
	require.Equal(t, worldAddress, said)
	_, err = r.world.ask(p.port(7000))
	require.ErrorIs(t, err, unix.ECONNREFUSED)

	var held net.Conn // a connection that the share let through
	require.NoError(t, p.at.do(func() error { return echo(t, "0.0.0.0:7005") }))
	require.NoError(t, g.at.do(func() (err error) {
		held, err = net.Dial("tcp4", p.port(7005))
		return err
	}))
	defer held.Close()
	says := func() error {
		require.NoError(t, held.SetDeadline(time.Now().Add(patience)))
		_, writeErr := held.Write([]byte("?"))
		_, err := io.ReadFull(held, make([]byte, 1))
		return errors.Join(writeErr, err)
	}
	require.NoError(t, says())
	view.Instances = slices.Clone(view.Instances) // what agents compare with stays
	view.Instances[1].Reaches = nil
	r.everywhere(view)
	require.ErrorIs(t, says(), unix.ECONNRESET, "what was open is ended too")
	refused(t, g, p.port(7000))
}

// echo accepts one connection and sends back what it receives, until the other side closes.
func echo(t *testing.T, address string) error {
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	}()
	return nil
}

func TestRangesAreRoutedToTheirMemberForItsInstance(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m1, m2, other := on(r.n1, "a1", 1), on(r.n2, "a2", 2), on(r.n2, "b", 3)
	m1.Ranges = []netip.Prefix{netip.MustParsePrefix("100.96.4.0/24")}
	r.everywhere(r.view(instance("a", m1, m2), instance("b", other)))
	a1, a2, b := r.n1.listening(m1), r.n2.listening(m2), r.n2.listening(other)
	require.NoError(t, a1.at.do(func() error { return addAddress("lo", "100.96.4.9/32") })) // a pod
	reaches(t, a2, "100.96.4.9:7000", a2.Address.String())
	refused(t, b, "100.96.4.9:7000")
}

func TestARestartedAgentPutsRightWhatItFinds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a1, a2, b := r.three()
	require.NoError(t, r.n1.do(func() error { // what a killed agent may leave
		return errors.Join(uninstall(),
			netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: deviceName("mem_stray")},
				PeerName: "stray"}))
	}))
	r.n1.open()
	refused(t, a1, a2.port(7000)) // until the platform's view is there nothing is open
	view := r.view(instance("a", a1.Member, a2.Member), instance("b", b.Member))
	r.n1.apply(view)
	r.n1.open() // once more: what is there stays, and nothing is asked of the platform
	reaches(t, a1, a2.port(7000), a1.Address.String())
	refused(t, b, a1.port(7000))
	r.n1.apply(view)
	require.NoError(t, r.n1.do(func() error { return r.n1.fabric.Keep([]string{a1.ID, b.ID}) }))
	reaches(t, a1, a2.port(7000), a1.Address.String())
	refused(t, b, a1.port(7000))

	require.NoError(t, r.n1.do(func() error {
		names, err := devices()
		require.ElementsMatch(t, []string{deviceName(a1.ID), deviceName(b.ID)}, names)
		require.NoError(t, r.n1.fabric.Detach(b.ID))
		require.NoError(t, r.n1.fabric.Detach(b.ID), "twice")
		left, leftErr := r.n1.fabric.Left(b.ID)
		require.Empty(t, left)
		return errors.Join(err, leftErr)
	}))
	r.n2.apply(r.view(instance("a", a1.Member), instance("b", b.Member))) // a2 is removed
	r.n1.apply(r.view(instance("a", a1.Member)))
	require.NoError(t, r.n1.do(func() error {
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: routeProtocol},
			netlink.RT_FILTER_PROTOCOL)
		for _, route := range routes {
			require.NotContains(t, route.Dst.String(), a2.Address.String())
		}
		return err
	}))
}

func TestNodesWithoutACommonSegmentUseATunnel(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	router := newSpace(t)
	r := &rig{t: t, world: router}
	for i, at := range []**node{&r.n1, &r.n2} {
		number := byte(i + 1)
		n := &node{space: newSpace(t), addr: netip.AddrFrom4([4]byte{10, 88, number, 1})}
		gw := netip.AddrFrom4([4]byte{10, 88, number, 254})
		cable(t, router, "p"+string('0'+number), gw.String()+"/24", n.space, "eth0", n.addr.String()+"/24")
		require.NoError(t, n.do(func() error { return netlink.RouteAdd(&netlink.Route{Gw: gw.AsSlice()}) }))
		n.serve("0.0.0.0:9000")
		n.open()
		*at = n
	}
	require.NoError(t, router.do(forwardHere))
	a1, a2, b := r.three()
	reaches(t, a1, a2.port(7000), a1.Address.String())
	reaches(t, a2, a1.port(7000), a2.Address.String())
	refused(t, b, a2.port(7000))
	refused(t, b, "10.88.2.1:9000")
}

func TestAnAddressThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	for _, bad := range []netip.Addr{{}, netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("fd00::1")} {
		_, err := Open(bad, nil, slog.New(slog.DiscardHandler))
		require.Error(t, err, "%s", bad)
	}
}
