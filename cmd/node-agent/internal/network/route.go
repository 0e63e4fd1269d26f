package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// routeProtocol marks the routes that are this package's.
	routeProtocol = 187
	// tunnel is the device to nodes that share no segment with this one.
	tunnel     = "gpuaas-vx"
	tunnelID   = 0x6770
	vxlanPort  = 4789
	vxlanBytes = 50 // what VXLAN adds to a packet
	// lastResort comes behind every other route: what has no way to a member goes nowhere.
	lastResort = 1 << 20
)

// wanted is a route that must be there.
type wanted struct {
	to netip.Prefix
	// node is the next node; invalid for a block that leads nowhere.
	node netip.Addr
	// far says that the node shares no segment with this one.
	far bool
}

// wantedRoutes are the ways to members on other nodes, by their nodes, and the pools' ends.
func wantedRoutes(view View, node netip.Addr, far func(netip.Addr) (bool, error)) (routes []wanted, failed error) {
	for _, pool := range view.Pools {
		routes = append(routes, wanted{to: pool})
	}
	for _, instance := range view.Instances {
		for _, member := range instance.Members {
			if member.Node == node || !member.own() {
				continue
			}
			away, err := far(member.Node)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("find the route to node %s: %w", member.Node, err))
				continue
			}
			for _, block := range member.prefixes() {
				routes = append(routes, wanted{block, member.Node, away})
			}
		}
	}
	return routes, failed
}

// isFar reports whether a node is reached through a router.
func isFar(node netip.Addr) (bool, error) {
	found, err := netlink.RouteGet(node.AsSlice())
	if err != nil || len(found) == 0 {
		return false, cmpErr(err, errors.New("no route exists"))
	}
	return found[0].Gw != nil, nil
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// route makes the routes that are wanted and removes those that are not any more.
func route(view View, node netip.Addr) error {
	routes, failed := wantedRoutes(view, node, isFar)
	uplink, err := deviceOf(node)
	if err != nil {
		return errors.Join(failed, err)
	}
	var through netlink.Link
	keep := make(map[string]bool)
	for _, one := range routes {
		if one.far && through == nil {
			if through, err = tunnelDevice(node, uplink); err != nil {
				return errors.Join(failed, err)
			}
		}
		keep[one.to.String()] = true
		failed = errors.Join(failed, one.install(uplink, through))
	}
	return errors.Join(failed, prune(keep))
}

// install makes the one route, in place of any other to the same block.
func (w wanted) install(uplink, through netlink.Link) error {
	route := &netlink.Route{Dst: ipNet(w.to), Protocol: routeProtocol}
	switch {
	case !w.node.IsValid():
		route.Type, route.Priority = unix.RTN_PROHIBIT, lastResort
	case w.far:
		if err := neighbour(w.node, through); err != nil {
			return err
		}
		route.LinkIndex, route.Gw = through.Attrs().Index, w.node.AsSlice()
		route.SetFlag(netlink.FLAG_ONLINK)
	default:
		route.LinkIndex, route.Gw = uplink.Attrs().Index, w.node.AsSlice()
		route.SetFlag(netlink.FLAG_ONLINK)
	}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("route to %s: %w", w.to, err)
	}
	return nil
}

// prune removes this package's routes to other nodes that are not kept. Those of devices go with their devices.
func prune(keep map[string]bool) (failed error) {
	routes, err := whole(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: routeProtocol},
			netlink.RT_FILTER_PROTOCOL)
	})
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	mine, err := memberDevices()
	if err != nil {
		return err
	}
	for _, route := range routes {
		if !mine[route.LinkIndex] && route.Dst != nil && !keep[route.Dst.String()] {
			failed = errors.Join(failed, ignoreGone(netlink.RouteDel(&route)))
		}
	}
	return failed
}

func ignoreGone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// memberDevices are the numbers of the members' devices on this node.
func memberDevices() (map[int]bool, error) {
	names, err := devices()
	if err != nil {
		return nil, err
	}
	found := make(map[int]bool, len(names))
	for _, name := range names {
		if device, err := netlink.LinkByName(name); err == nil {
			found[device.Attrs().Index] = true
		}
	}
	return found, nil
}

// tunnelDevice returns the VXLAN device, which it creates when it is missing or has another address. The device learns
// nothing: every node has a hardware address that follows from its address.
func tunnelDevice(node netip.Addr, uplink netlink.Link) (netlink.Link, error) {
	wanted := &netlink.Vxlan{
		LinkAttrs: netlink.LinkAttrs{Name: tunnel, MTU: uplink.Attrs().MTU - vxlanBytes, HardwareAddr: hardware(node)},
		VxlanId:   tunnelID, VtepDevIndex: uplink.Attrs().Index, SrcAddr: node.AsSlice(), Port: vxlanPort,
		Learning: false,
	}
	if found, err := netlink.LinkByName(tunnel); err == nil {
		same, ok := found.(*netlink.Vxlan)
		if ok && same.SrcAddr.Equal(wanted.SrcAddr) && same.HardwareAddr.String() == wanted.HardwareAddr.String() {
			return found, netlink.LinkSetUp(found)
		}
		if err := unplug(tunnel); err != nil {
			return nil, err
		}
	}
	if err := netlink.LinkAdd(wanted); err != nil {
		return nil, fmt.Errorf("create the tunnel device: %w", err)
	}
	quiet(tunnel)
	made, err := netlink.LinkByName(tunnel)
	if err != nil {
		return nil, err
	}
	return made, netlink.LinkSetUp(made)
}

// hardware is the hardware address of a node's end of the tunnel: a local one.
func hardware(node netip.Addr) net.HardwareAddr {
	four := node.As4()
	return net.HardwareAddr{0x02, 0x67, four[0], four[1], four[2], four[3]}
}

// neighbour enters another node's address into the tunnel's tables.
func neighbour(node netip.Addr, through netlink.Link) error {
	index, at := through.Attrs().Index, hardware(node)
	for _, entry := range []*netlink.Neigh{
		{LinkIndex: index, IP: node.AsSlice(), HardwareAddr: at, State: netlink.NUD_PERMANENT},
		{LinkIndex: index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_SELF, IP: node.AsSlice(), HardwareAddr: at,
			State: netlink.NUD_PERMANENT},
	} {
		if err := netlink.NeighSet(entry); err != nil {
			return fmt.Errorf("the tunnel to node %s: %w", node, err)
		}
	}
	return nil
}
