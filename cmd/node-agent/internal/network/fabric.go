package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ErrUnknown says that the platform's view has no address for a member.
var ErrUnknown = errors.New("the platform has given the member no address yet")

// Fabric is the node's network of members. Its methods may be called by many goroutines.
type Fabric struct {
	node     netip.Addr
	platform []netip.AddrPort
	log      *slog.Logger

	mu      sync.Mutex
	view    View
	used    used
	changed chan struct{} // closed with each new view
}

// Open finds out whether the node can have a network of members, and prepares it: forwarding, and rules that refuse
// everything until the first view comes. Rules of an earlier agent stay until then, as its members do. node is the
// address by which other nodes reach this one, platform where its members reach the platform.
func Open(node netip.Addr, platform []netip.AddrPort, log *slog.Logger) (*Fabric, error) {
	if !node.Is4() || node.IsLoopback() {
		return nil, fmt.Errorf("the node's address %s is not an IPv4 address that other nodes reach", node)
	}
	if _, err := deviceOf(node); err != nil {
		return nil, err
	}
	f := &Fabric{node: node, platform: platform, log: log, changed: make(chan struct{})}
	there, err := installed()
	if err == nil && !there {
		err = install(View{Nodes: []netip.Addr{node}}, platform)
	}
	if err != nil {
		return nil, err
	}
	if err := forwardHere(); err != nil {
		return nil, fmt.Errorf("forward packets of members: %w", err)
	}
	return f, nil
}

func forwardHere() error {
	return os.WriteFile(sysctls+"ipv4/ip_forward", []byte("1"), 0o644) // #nosec G306 -- a setting of the kernel
}

// Apply makes the network be as the view says. After an error what could be done is done; the same view may be applied
// again.
func (f *Fabric) Apply(view View) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(view.Nodes, f.node) {
		view.Nodes = append(view.Nodes, f.node)
	}
	before := f.view
	failed := errors.Join(install(view, f.platform), route(view, f.node))
	f.view = view
	f.used.learn(view, f.node, flows)
	f.forget(before, view)
	close(f.changed)
	f.changed = make(chan struct{})
	return failed
}

// forget ends the connections of members that may reach less than before: the rules pass replies by conntrack.
func (f *Fabric) forget(before, now View) {
	var gone []netip.Prefix
	for _, instance := range before.Instances {
		i := slices.IndexFunc(now.Instances, func(other Instance) bool { return other.ID == instance.ID })
		for _, member := range instance.Members {
			left := i < 0 || !slices.ContainsFunc(now.Instances[i].Members, func(other Member) bool {
				return other.ID == member.ID
			})
			if left || !subset(instance.Reaches, now.Instances[i].Reaches) {
				gone = append(gone, member.prefixes()...)
			}
		}
	}
	f.cut(gone)
}

func subset(all, of []string) bool {
	return !slices.ContainsFunc(all, func(one string) bool { return !slices.Contains(of, one) })
}

// cut makes the kernel forget the connections from and to addresses.
func (f *Fabric) cut(blocks []netip.Prefix) {
	if len(blocks) == 0 {
		return
	}
	if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, ofBlocks(blocks)); err != nil {
		f.log.Warn("connections of deleted members are not closed", "error", err)
	}
}

// ofBlocks fits connections with an end in one of the blocks.
type ofBlocks []netip.Prefix

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (b ofBlocks) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	for _, end := range [][]byte{flow.Forward.SrcIP, flow.Forward.DstIP} {
		address, ok := netip.AddrFromSlice(end)
		if ok && slices.ContainsFunc(b, func(block netip.Prefix) bool { return block.Contains(address.Unmap()) }) {
			return true
		}
	}
	return false
}

// viewPatience bounds how long the platform may take to say what a member's address is.
const viewPatience = 15 * time.Second

// Await returns a member's own address as soon as the platform has given it one.
func (f *Fabric) Await(ctx context.Context, memberID string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, viewPatience)
	defer cancel()
	member, err := f.await(ctx, memberID)
	if err != nil {
		return "", err
	}
	return member.Address.String(), nil
}

// await returns what the platform says of a member with an address of its own, and ErrUnknown when ctx ends before.
func (f *Fabric) await(ctx context.Context, memberID string) (Member, error) {
	for {
		f.mu.Lock()
		member, ok := f.view.find(memberID)
		changed := f.changed
		f.mu.Unlock()
		if ok && member.own() {
			return member, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Member{}, fmt.Errorf("member %s: %w", memberID, ErrUnknown)
		}
	}
}

// Attach gives the network namespace of a process, which is new and the member's, the member's devices, address and
// routes. It waits for a view that has the member.
func (f *Fabric) Attach(ctx context.Context, memberID string, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, viewPatience)
	defer cancel()
	member, err := f.await(ctx, memberID)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.used.has(member) {
		f.cut(member.prefixes()) // whoever had the address before
	}
	f.used.add(member)
	return plug(member, pid, f.node)
}

// Dial connects from inside the network of a process; see the function of this name.
func (f *Fabric) Dial(ctx context.Context, pid int, network, address string) (net.Conn, error) {
	return Dial(ctx, pid, network, address)
}

// Address returns the member's own address, and "" when the platform has given it none.
func (f *Fabric) Address(memberID string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if member, ok := f.view.find(memberID); ok && member.own() {
		return member.Address.String()
	}
	return ""
}

// Detach removes what is left of a member's network on the node: nothing, once its namespace has ended.
func (f *Fabric) Detach(memberID string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := unplug(deviceName(memberID)); err != nil {
		return err
	}
	if member, ok := f.view.find(memberID); ok && member.own() {
		f.cut(member.prefixes())
	}
	return nil
}

// Left returns the names of the member's devices that are on the node.
func (f *Fabric) Left(memberID string) ([]string, error) {
	names, err := devices()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool { return name != deviceName(memberID) }), nil
}

// Keep removes the devices of all members but these: what an agent that was killed left half done.
func (f *Fabric) Keep(memberIDs []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	names, err := devices()
	for _, id := range memberIDs {
		names = slices.DeleteFunc(names, func(name string) bool { return name == deviceName(id) })
	}
	for _, name := range names {
		err = errors.Join(err, unplug(name))
	}
	return err
}
