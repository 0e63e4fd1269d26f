package network

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// View is what the platform says of the network, as one node needs it.
type View struct {
	// Version changes with everything else.
	Version string
	// Pools hold every member's address and range.
	Pools []netip.Prefix
	// Nodes are the addresses of the installation's nodes.
	Nodes     []netip.Addr
	Instances []Instance
}

// Instance is a group of members that reach each other.
type Instance struct {
	ID string
	// Reaches are instances whose members these may reach too.
	Reaches []string
	Members []Member
}

// Member is one member on the network.
type Member struct {
	ID      string
	Address netip.Addr
	// Ranges are blocks that are routed to it.
	Ranges []netip.Prefix
	NodeID string
	// Node is where its node is reached. It is Address where members have the node's network.
	Node netip.Addr
	// Open are its declared endpoints.
	Open []Port
}

// Port is a port of a member.
type Port struct {
	// Protocol is "tcp" or "udp".
	Protocol string
	Number   uint16
}

// own reports whether the member has a network of its own.
func (m Member) own() bool { return m.Address != m.Node }

// prefixes are all addresses of the member.
func (m Member) prefixes() []netip.Prefix {
	return append([]netip.Prefix{netip.PrefixFrom(m.Address, m.Address.BitLen())}, m.Ranges...)
}

// find returns a member by its id.
func (v View) find(id string) (Member, bool) {
	for _, instance := range v.Instances {
		for _, member := range instance.Members {
			if member.ID == id {
				return member, true
			}
		}
	}
	return Member{}, false
}

// Read translates the platform's answer. It refuses what is not an address: nothing half-understood becomes a rule.
func Read(from gql.NodeNetwork) (View, error) {
	view := View{Version: from.Version}
	r := &reader{}
	for _, text := range from.Pools {
		view.Pools = append(view.Pools, r.prefix(text))
	}
	for _, text := range from.Nodes {
		view.Nodes = append(view.Nodes, r.addr(text))
	}
	for _, instance := range from.Instances {
		read := Instance{ID: instance.Id, Reaches: instance.Reaches}
		for _, member := range instance.Members {
			read.Members = append(read.Members, r.member(member))
		}
		view.Instances = append(view.Instances, read)
	}
	slices.SortFunc(view.Instances, func(a, b Instance) int { return cmp.Compare(a.ID, b.ID) })
	return view, r.err
}

// reader keeps the first thing that cannot be read.
type reader struct{ err error }

func (r *reader) prefix(text string) netip.Prefix {
	prefix, err := netip.ParsePrefix(text)
	if err == nil && !prefix.Addr().Is4() {
		err = fmt.Errorf("%s is not a block of IPv4 addresses", text)
	}
	r.noteText(text, err)
	return prefix.Masked()
}

func (r *reader) addr(text string) netip.Addr {
	addr, err := netip.ParseAddr(text)
	r.noteText(text, err)
	return addr.Unmap()
}

func (r *reader) noteText(text string, err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("the platform's network has the address %q: %w", text, err)
	}
}

func (r *reader) member(from gql.NetworkMember) Member {
	member := Member{ID: from.Id, Address: r.addr(from.Address), NodeID: from.NodeId, Node: r.addr(from.NodeAddress)}
	for _, block := range from.Ranges {
		member.Ranges = append(member.Ranges, r.prefix(block.Cidr))
	}
	for _, port := range from.Open {
		if port.Protocol != "tcp" && port.Protocol != "udp" || port.Number < 1 || port.Number > 65535 {
			r.noteText(from.Address, fmt.Errorf("%s/%d is not a port", port.Protocol, port.Number))
			continue
		}
		member.Open = append(member.Open, Port{port.Protocol, uint16(port.Number)}) // #nosec G115 -- checked above
	}
	return member
}
