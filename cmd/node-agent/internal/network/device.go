package network

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	// inside is the name of a member's device in the member.
	inside = "eth0"
	// sysctls is where the settings of the calling process's network are.
	sysctls = "/proc/sys/net/"
)

// gateway is where members send everything. No device has the address: the member's neighbour entry leads to the node.
var gateway = netip.MustParseAddr("169.254.1.1")

// deviceName is the name of the node's end of a member's pair, at most 15 characters.
func deviceName(memberID string) string {
	sum := sha256.Sum256([]byte(memberID))
	return devicePrefix + hex.EncodeToString(sum[:5])
}

// plug creates a member's pair of devices, one end in the network namespace of pid, and sets both up. It first removes
// what an interrupted call left.
func plug(member Member, pid int, node netip.Addr) error {
	name := deviceName(member.ID)
	if err := unplug(name); err != nil {
		return err
	}
	pair := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: name, MTU: uplinkMTU(node), TxQLen: 1000},
		PeerName:  inside, PeerNamespace: netlink.NsPid(pid),
	}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("create the devices of %s: %w", member.ID, err)
	}
	outer, err := netlink.LinkByName(name)
	if err == nil {
		err = setUp(member, pid, node, outer)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("set the network of %s up: %w", member.ID, err), unplug(name))
	}
	return nil
}

// uplinkMTU is the MTU of the device that has the node's address; 0 means the kernel's own choice.
func uplinkMTU(node netip.Addr) int {
	device, err := deviceOf(node)
	if err != nil {
		return 0
	}
	return device.Attrs().MTU
}

// deviceOf is the device that has an address.
func deviceOf(node netip.Addr) (netlink.Link, error) {
	addresses, err := whole(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		if found, ok := netip.AddrFromSlice(address.IP); ok && found.Unmap() == node {
			return netlink.LinkByIndex(address.LinkIndex)
		}
	}
	return nil, fmt.Errorf("no device of the node has its address %s", node)
}

// setUp sets the member's end up first: the node's end needs its hardware address.
func setUp(member Member, pid int, node netip.Addr, outer netlink.Link) error {
	hardware, err := setUpInside(member, pid, outer.Attrs().HardwareAddr)
	if err != nil {
		return err
	}
	quiet(outer.Attrs().Name)
	if err := netlink.LinkSetUp(outer); err != nil {
		return err
	}
	neighbour := &netlink.Neigh{LinkIndex: outer.Attrs().Index, IP: member.Address.AsSlice(), HardwareAddr: hardware,
		State: netlink.NUD_PERMANENT}
	if err := netlink.NeighSet(neighbour); err != nil {
		return err
	}
	for _, block := range member.prefixes() {
		route := &netlink.Route{LinkIndex: outer.Attrs().Index, Dst: ipNet(block), Protocol: routeProtocol,
			Scope: netlink.SCOPE_LINK}
		if block.Addr() != member.Address { // the member is the way to its ranges
			route.Gw, route.Scope = member.Address.AsSlice(), netlink.SCOPE_UNIVERSE
			route.SetFlag(netlink.FLAG_ONLINK)
		}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("route to %s: %w", block, err)
		}
	}
	return nil
}

// quiet disables IPv6 on a device and has the kernel check senders against routes, as the rules do too. Where a setting
// cannot be written, only the rules hold.
func quiet(device string) {
	for name, value := range map[string]string{
		"ipv6/conf/" + device + "/disable_ipv6": "1", "ipv4/conf/" + device + "/rp_filter": "1",
		"ipv4/conf/" + device + "/accept_redirects": "0", "ipv4/conf/" + device + "/send_redirects": "0",
	} {
		_ = os.WriteFile(sysctls+name, []byte(value), 0o644) // #nosec G306 -- a setting of the kernel
	}
}

// setUpInside gives the member its address and its one way out, and returns its device's hardware address.
func setUpInside(member Member, pid int, outer net.HardwareAddr) (net.HardwareAddr, error) {
	handle, closeAll, err := enter(pid)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	if loopback, err := handle.LinkByName("lo"); err == nil {
		if err := handle.LinkSetUp(loopback); err != nil {
			return nil, fmt.Errorf("loopback: %w", err)
		}
	}
	device, err := handle.LinkByName(inside)
	if err != nil {
		return nil, err
	}
	index := device.Attrs().Index
	own := netip.PrefixFrom(member.Address, member.Address.BitLen())
	if err := handle.AddrReplace(device, &netlink.Addr{IPNet: ipNet(own)}); err != nil {
		return nil, fmt.Errorf("address: %w", err)
	}
	if err := handle.LinkSetUp(device); err != nil {
		return nil, err
	}
	neighbour := &netlink.Neigh{LinkIndex: index, IP: gateway.AsSlice(), HardwareAddr: outer,
		State: netlink.NUD_PERMANENT}
	if err := handle.NeighSet(neighbour); err != nil {
		return nil, fmt.Errorf("neighbour: %w", err)
	}
	for _, route := range []*netlink.Route{
		{LinkIndex: index, Dst: ipNet(netip.PrefixFrom(gateway, 32)), Scope: netlink.SCOPE_LINK},
		{LinkIndex: index, Gw: gateway.AsSlice(), Src: member.Address.AsSlice()},
	} {
		if err := handle.RouteReplace(route); err != nil {
			return nil, fmt.Errorf("route: %w", err)
		}
	}
	return device.Attrs().HardwareAddr, nil
}

// enter opens the network namespace of a process.
func enter(pid int) (*netlink.Handle, func(), error) {
	space, err := netns.GetFromPid(pid)
	if err != nil {
		return nil, nil, fmt.Errorf("network namespace of %d: %w", pid, err)
	}
	handle, err := netlink.NewHandleAt(space, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, nil, errors.Join(err, space.Close())
	}
	return handle, func() {
		handle.Close()
		_ = space.Close()
	}, nil
}

// unplug removes the node's end, and with it the member's and its routes.
func unplug(name string) error {
	device, err := netlink.LinkByName(name)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(device)
	}
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove the device %s: %w", name, err)
	}
	return nil
}

// devices are the names of the members' devices that are on the node.
func devices() ([]string, error) {
	links, err := whole(netlink.LinkList)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, link := range links {
		if strings.HasPrefix(link.Attrs().Name, devicePrefix) {
			names = append(names, link.Attrs().Name)
		}
	}
	return names, nil
}

func ipNet(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}
