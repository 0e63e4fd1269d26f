package network

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
)

const (
	// tableName is the table that is this package's own.
	tableName = "gpuaas-members"
	// devicePrefix begins the name of every member's device on the node.
	devicePrefix = "gpm-"
	// sendBuffer holds a whole table on its way to the kernel, in bytes.
	sendBuffer = 16 << 20
)

// linkLocal holds the metadata services of clouds, and every other address that belongs to one link.
var linkLocal = netip.MustParsePrefix("169.254.0.0/16")

// table is the node's rules on their way into the kernel.
type table struct {
	conn  *nftables.Conn
	table *nftables.Table
	view  View
	// platform is where the platform's public API is, which members may reach though it is on a node.
	platform []netip.AddrPort
	// senders leads from a member's address to the chain of its instance.
	senders *nftables.Set
	err     error
}

// install replaces the node's rules by those of the view, as one transaction.
func install(view View, platform []netip.AddrPort) error {
	conn, err := nftables.New(nftables.WithSockOptions(func(c *netlink.Conn) error {
		return c.SetWriteBuffer(sendBuffer)
	}))
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	t := &table{conn: conn, table: &nftables.Table{Family: nftables.TableFamilyINet, Name: tableName}, view: view,
		platform: platform}
	conn.AddTable(t.table)
	conn.DelTable(t.table) // one that was there, or the one just named: a table that is not there cannot be deleted
	conn.AddTable(t.table)
	t.source()
	t.between()
	t.forward()
	t.input()
	t.leave()
	if t.err == nil {
		t.err = conn.Flush()
	}
	if t.err != nil {
		return fmt.Errorf("replace the rules of members: %w", t.err)
	}
	return nil
}

// installed reports whether the table is there.
func installed() (bool, error) {
	conn, err := nftables.New()
	if err != nil {
		return false, fmt.Errorf("open nftables: %w", err)
	}
	tables, err := conn.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return false, fmt.Errorf("list the tables of nftables: %w", err)
	}
	return slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == tableName }), nil
}

// uninstall removes the table, if it is there.
func uninstall() error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	gone := &nftables.Table{Family: nftables.TableFamilyINet, Name: tableName}
	conn.AddTable(gone)
	conn.DelTable(gone)
	return conn.Flush()
}

func (t *table) base(name string, kind nftables.ChainType, hook *nftables.ChainHook,
	priority *nftables.ChainPriority) *nftables.Chain {
	policy := nftables.ChainPolicyAccept // what is not of members is not this table's
	return t.conn.AddChain(&nftables.Chain{Name: name, Table: t.table, Type: kind, Hooknum: hook, Priority: priority,
		Policy: &policy})
}

func (t *table) chain(name string) *nftables.Chain {
	return t.conn.AddChain(&nftables.Chain{Name: name, Table: t.table})
}

func (t *table) rule(chain *nftables.Chain, parts ...[]expr.Any) {
	t.conn.AddRule(&nftables.Rule{Table: t.table, Chain: chain, Exprs: join(parts...)})
}

// refuse ends what fits, and answers its sender.
func (t *table) refuse(chain *nftables.Chain, parts ...[]expr.Any) {
	t.rule(chain, append(slices.Clone(parts), reset())...)
	t.rule(chain, append(slices.Clone(parts), unreachable())...)
}

// set makes a set of addresses, or a map of them to chains.
func (t *table) set(name string, elements []nftables.SetElement, isMap bool) *nftables.Set {
	set := &nftables.Set{Table: t.table, Name: name, KeyType: nftables.TypeIPAddr, IsMap: isMap}
	if isMap {
		set.DataType = nftables.TypeVerdict
	}
	if err := t.conn.AddSet(set, elements); err != nil && t.err == nil {
		t.err = err
	}
	return set
}

// elements are single IPv4 addresses, each once.
func elements(addresses []netip.Addr) (out []nftables.SetElement) {
	slices.SortFunc(addresses, netip.Addr.Compare)
	for _, one := range slices.Compact(addresses) {
		if one.Is4() {
			out = append(out, nftables.SetElement{Key: one.AsSlice()})
		}
	}
	return out
}

// source drops what a member sends under an address that is not its own, and what comes from elsewhere under an
// address of members that are not there.
func (t *table) source() {
	c := t.base("source", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, nftables.ChainPriorityRaw)
	t.rule(c, from(devicePrefix), forged(), drop())
	for _, pool := range t.view.Pools {
		t.rule(c, within(offsetSaddr, pool), forged(), drop())
	}
}

// between says which members reach which: a chain for each instance, found by the sender's address.
func (t *table) between() {
	open := t.chain("open")
	c := t.chain("between")
	var senders []nftables.SetElement
	var blocks [][]expr.Any
	for i, instance := range t.view.Instances {
		name := fmt.Sprintf("instance-%d", i)
		t.reach(t.chain(name), name, instance)
		for _, member := range instance.Members {
			senders = append(senders, nftables.SetElement{
				Key: member.Address.AsSlice(), VerdictData: &expr.Verdict{Kind: expr.VerdictJump, Chain: name},
			})
			for _, block := range member.Ranges {
				blocks = append(blocks, join(within(offsetSaddr, block), jump(name)))
			}
			for _, endpoint := range member.Open {
				t.rule(open, within(offsetDaddr, netip.PrefixFrom(member.Address, 32)), port(endpoint), accept())
			}
		}
	}
	senders = slices.CompactFunc(sorted(senders), sameKey) // members that have their node's address share it
	t.senders = t.set("senders", senders, true)
	t.rule(c, inSet(offsetSaddr, t.senders))
	for _, block := range blocks {
		t.rule(c, block)
	}
	t.rule(c, jump(open.Name))
}

func sorted(elements []nftables.SetElement) []nftables.SetElement {
	slices.SortStableFunc(elements, func(a, b nftables.SetElement) int { return slices.Compare(a.Key, b.Key) })
	return elements
}

func sameKey(a, b nftables.SetElement) bool { return slices.Equal(a.Key, b.Key) }

// reach accepts what goes to members of the instance, and of those that it reaches.
func (t *table) reach(c *nftables.Chain, name string, instance Instance) {
	var addresses []netip.Addr
	for _, other := range t.view.Instances {
		if other.ID != instance.ID && !slices.Contains(instance.Reaches, other.ID) {
			continue
		}
		for _, member := range other.Members {
			addresses = append(addresses, member.Address)
			for _, block := range member.Ranges {
				t.rule(c, within(offsetDaddr, block), accept())
			}
		}
	}
	t.rule(c, inSet(offsetDaddr, t.set("of-"+name, elements(addresses), false)), accept())
}

// forward judges what goes from members and to them.
func (t *table) forward() {
	c := t.base("forward", nftables.ChainTypeFilter, nftables.ChainHookForward, nftables.ChainPriorityFilter)
	member := from(devicePrefix)
	t.rule(c, member, ipv6(), drop())
	t.rule(c, to(devicePrefix), ipv6(), drop())
	t.refuse(c, member, within(offsetDaddr, linkLocal))
	t.rule(c, member, replies(), accept())
	t.rule(c, to(devicePrefix), replies(), accept())
	if len(t.view.Pools) == 0 { // nothing is known of members yet, so that nothing is told apart
		t.refuse(c, member)
	}
	for _, pool := range t.view.Pools {
		t.rule(c, member, within(offsetDaddr, pool), jump("between"))
		t.refuse(c, member, within(offsetDaddr, pool))
	}
	t.toPlatform(c)
	t.rule(c, member, inSet(offsetSaddr, t.senders)) // members of their instance that have a node's address
	t.refuse(c, member, inSet(offsetDaddr, t.set("nodes", elements(slices.Clone(t.view.Nodes)), false)))
	t.refuse(c, member, to(devicePrefix))
	t.rule(c, member, accept())
	t.rule(c, to(devicePrefix), jump("between"))
	t.refuse(c, to(devicePrefix))
}

// input shuts the node itself to its members and to those of other nodes.
func (t *table) input() {
	c := t.base("input", nftables.ChainTypeFilter, nftables.ChainHookInput, nftables.ChainPriorityFilter)
	t.rule(c, from(devicePrefix), replies(), accept())
	t.toPlatform(c)
	t.refuse(c, from(devicePrefix))
	for _, pool := range t.view.Pools {
		t.rule(c, within(offsetSaddr, pool), replies(), accept())
		t.refuse(c, within(offsetSaddr, pool))
	}
	t.rule(c, port(Port{"udp", vxlanPort}), notFromNodes(t), drop())
}

// notFromNodes fits senders that are not nodes: only a node may send for the members of other nodes.
func notFromNodes(t *table) []expr.Any {
	set := t.set("speakers", elements(slices.Clone(t.view.Nodes)), false)
	return append(ipv4(), address(offsetSaddr), &expr.Lookup{SourceRegister: register, SetName: set.Name, SetID: set.ID,
		Invert: true})
}

// toPlatform lets members reach the platform's public API, wherever it is.
func (t *table) toPlatform(c *nftables.Chain) {
	for _, at := range t.platform {
		if at.Addr().Is4() {
			t.rule(c, from(devicePrefix), within(offsetDaddr, netip.PrefixFrom(at.Addr(), 32)),
				port(Port{"tcp", at.Port()}), accept())
		}
	}
}

// leave gives what goes to the world the node's address: the world has no route to a member.
func (t *table) leave() {
	c := t.base("leave", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource)
	for _, pool := range t.view.Pools {
		parts := [][]expr.Any{within(offsetSaddr, pool), notTo(devicePrefix)}
		for _, inner := range t.view.Pools {
			parts = append(parts, outside(offsetDaddr, inner))
		}
		t.rule(c, append(parts, masquerade())...)
	}
}
