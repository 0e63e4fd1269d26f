package network

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
)

func TestConnectionsAreEndedOfAddressesThatSomebodyMayHaveHad(t *testing.T) {
	t.Parallel()
	here, there := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	at := func(address string, node netip.Addr, ranges ...string) Member {
		member := Member{ID: address, Address: netip.MustParseAddr(address), Node: node}
		for _, block := range ranges {
			member.Ranges = append(member.Ranges, netip.MustParsePrefix(block))
		}
		return member
	}
	view := func(members ...Member) View {
		return View{Pools: pools, Instances: []Instance{{ID: "i", Members: members}}}
	}
	kernel := func() ([]*netlink.ConntrackFlow, error) {
		flow := &netlink.ConntrackFlow{}
		flow.Forward.SrcIP, flow.Forward.DstIP = net.ParseIP("192.0.2.1"), net.ParseIP("100.64.0.9")
		return []*netlink.ConntrackFlow{flow}, nil
	}
	first, later, remote := at("100.64.0.1", here), at("100.64.0.2", here, "100.96.1.0/24"), at("100.64.0.3", there)

	var u used
	require.True(t, u.has(later), "nothing is known before the first view")
	u.learn(view(first), here, func() ([]*netlink.ConntrackFlow, error) { return nil, errors.New("no right") })
	require.True(t, u.has(later), "nor where the kernel does not tell")
	u.learn(view(first), here, kernel)
	require.True(t, u.has(first), "a member of the first view was there before the agent")
	require.True(t, u.has(at("100.64.0.9", here)), "the kernel knows a connection")
	u.learn(view(first, later, remote), here, kernel)
	require.False(t, u.has(later), "nobody had it")
	require.True(t, u.has(remote), "members here may have connections to it, which another must not take over")
	u.add(later)
	require.True(t, u.has(later), "it has been here")
	require.True(t, u.has(at("100.64.0.8", here, "100.96.1.128/25")), "a part of its range")
	require.False(t, u.has(at("192.0.2.1", here)), "addresses out of the pools are not noted")
}
