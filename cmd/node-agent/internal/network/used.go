package network

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// used are the blocks of addresses that the kernel may remember connections of. To delete connections, the kernel walks
// through its whole table, which takes longer than all else of a member's network; a block without connections skips
// that. The zero value knows nothing, so that every block counts as used.
type used struct {
	known  bool
	blocks map[netip.Prefix]bool
}

// learn notes the members of a view that may have connections already: those of other nodes, and of the first view all,
// with whatever the kernel knows in the pools. Until the first view nothing in the pools has a way through the node.
func (u *used) learn(view View, node netip.Addr, flows func() ([]*netlink.ConntrackFlow, error)) {
	first := !u.known
	if first && len(view.Pools) > 0 {
		found, err := flows()
		if err != nil {
			return
		}
		u.blocks, u.known = map[netip.Prefix]bool{}, true
		u.of(found, view.Pools)
	}
	for _, instance := range view.Instances {
		for _, member := range instance.Members {
			if u.known && (first || member.Node != node) {
				u.add(member)
			}
		}
	}
}

func (u *used) of(flows []*netlink.ConntrackFlow, pools []netip.Prefix) {
	for _, flow := range flows {
		for _, pool := range pools {
			for _, end := range [][]byte{flow.Forward.SrcIP, flow.Forward.DstIP} {
				if address, ok := netip.AddrFromSlice(end); ok && pool.Contains(address.Unmap()) {
					u.blocks[netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen())] = true
				}
			}
		}
	}
}

// add notes a member's addresses, which are used from now on.
func (u *used) add(member Member) {
	if !u.known {
		return
	}
	for _, block := range member.prefixes() {
		u.blocks[block] = true
	}
}

// has reports whether any of a member's addresses may have connections.
func (u *used) has(member Member) bool {
	if !u.known {
		return true
	}
	for _, block := range member.prefixes() {
		for other := range u.blocks {
			if block.Overlaps(other) {
				return true
			}
		}
	}
	return false
}

// flows lists the connections that the kernel remembers.
func flows() ([]*netlink.ConntrackFlow, error) {
	return whole(func() ([]*netlink.ConntrackFlow, error) {
		return netlink.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
	})
}
