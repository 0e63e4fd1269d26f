package main

import (
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/network"
)

// wires makes this network namespace a node's, whose members are those of all rounds.
func wires(rounds int, log *slog.Logger) (*network.Fabric, error) {
	node := netip.MustParseAddr("10.89.0.1")
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "up0"}, PeerName: "up1"}
	if err := netlink.LinkAdd(pair); err != nil {
		return nil, fmt.Errorf("create a device: %w", err)
	}
	uplink, err := netlink.LinkByName("up0")
	if err != nil {
		return nil, err
	}
	address, err := netlink.ParseAddr(node.String() + "/24")
	if err == nil {
		err = netlink.AddrAdd(uplink, address)
	}
	if err == nil {
		err = netlink.LinkSetUp(uplink)
	}
	if err != nil {
		return nil, err
	}
	fabric, err := network.Open(node, nil, log)
	if err != nil {
		return nil, err
	}
	instance := network.Instance{ID: instanceID}
	at := netip.MustParseAddr("100.64.0.0")
	for round := range rounds {
		at = at.Next()
		instance.Members = append(instance.Members, network.Member{ID: memberID(round), Address: at,
			NodeID: "nod_bench", Node: node})
	}
	view := network.View{Pools: []netip.Prefix{netip.MustParsePrefix("100.64.0.0/11")}, Nodes: []netip.Addr{node}}
	if err := fabric.Apply(view); err != nil { // the members come to an agent that runs already
		return nil, err
	}
	view.Instances = []network.Instance{instance}
	return fabric, fabric.Apply(view)
}
