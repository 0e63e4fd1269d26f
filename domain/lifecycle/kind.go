package lifecycle

import "slices"

// OperationKind is a durable change that can be requested.
type OperationKind string

// The kinds of operation.
const (
	InstanceCreate       OperationKind = "INSTANCE_CREATE"
	InstanceDecommission OperationKind = "INSTANCE_DECOMMISSION"
	InstanceUpgrade      OperationKind = "INSTANCE_UPGRADE"
	InstanceRollback     OperationKind = "INSTANCE_ROLLBACK"
	MembersAdd           OperationKind = "MEMBERS_ADD"
	MemberDrain          OperationKind = "MEMBER_DRAIN"
	MemberCordon         OperationKind = "MEMBER_CORDON"
	MemberUncordon       OperationKind = "MEMBER_UNCORDON"
	MemberLabel          OperationKind = "MEMBER_LABEL"
	MemberRemove         OperationKind = "MEMBER_REMOVE"
	MemberReplace        OperationKind = "MEMBER_REPLACE"
	MemberRecover        OperationKind = "MEMBER_RECOVER"
	AllocationRelease    OperationKind = "ALLOCATION_RELEASE"
)

// Values lists every OperationKind as it is stored and published.
func (OperationKind) Values() []string {
	return names(
		InstanceCreate, InstanceDecommission, InstanceUpgrade, InstanceRollback, MembersAdd, MemberDrain,
		MemberCordon, MemberUncordon, MemberLabel, MemberRemove, MemberReplace, MemberRecover,
		AllocationRelease,
	)
}

// OperationScope is what an operation excludes while it is open.
type OperationScope string

// The scopes: an instance-wide operation excludes every other on the instance, one of a member only those on the
// same member, one of an allocation only those on the same allocation.
const (
	ScopeInstance   OperationScope = "INSTANCE"
	ScopeMember     OperationScope = "MEMBER"
	ScopeAllocation OperationScope = "ALLOCATION"
)

// Values lists every OperationScope as it is stored and published.
func (OperationScope) Values() []string {
	return names(ScopeInstance, ScopeMember, ScopeAllocation)
}

// Effects is what is true of every operation of one kind.
type Effects struct {
	// Kind is the operation's kind.
	Kind OperationKind
	// Wire is its name in the adapter contract; empty for the platform's own, which no adapter sees.
	Wire string
	// Scope is what it excludes.
	Scope OperationScope
	// Permission is the suffix of the key that it needs, below the manifest's permission family; for the platform's
	// own kinds it is the whole key.
	Permission string
	// Cancelable says whether it can still be canceled after it was sent to the adapter.
	Cancelable bool
	// Forcible says whether the caller may choose force, at once or at the deadline.
	Forcible bool
	// Accepted, Succeeded and Failed are the events written when it is accepted and when it ends so.
	Accepted, Succeeded, Failed []EventType
}

// effects is the table of kinds, in the order of the adapter contract.
var effects = []Effects{
	{InstanceCreate, "instance.create", ScopeInstance, "instance.create", true, false,
		events(EventInstanceRequested), events(EventInstanceStartCompleted, EventInstanceRunning),
		events(EventInstanceFailed)},
	{InstanceDecommission, "instance.decommission", ScopeInstance, "instance.delete", false, true,
		events(EventInstanceDeleting), events(EventInstanceDeleted), nil},
	{InstanceUpgrade, "instance.upgrade", ScopeInstance, "instance.update", true, false, nil,
		events(EventInstanceUpgraded), nil},
	{InstanceRollback, "instance.rollback", ScopeInstance, "instance.update", true, false, nil,
		events(EventInstanceRolledBack), nil},
	{MembersAdd, "members.add", ScopeMember, "member.add", true, false, nil, events(EventMemberAdded),
		events(EventMemberFailed)},
	{MemberDrain, "member.drain", ScopeMember, "node.operate", true, true, nil, events(EventMemberDrained), nil},
	{MemberCordon, "member.cordon", ScopeMember, "node.operate", true, false, nil, events(EventMemberChanged), nil},
	{MemberUncordon, "member.uncordon", ScopeMember, "node.operate", true, false, nil, events(EventMemberChanged), nil},
	{MemberLabel, "member.label", ScopeMember, "node.operate", true, false, nil, events(EventMemberChanged), nil},
	{MemberRemove, "member.remove", ScopeMember, "member.remove", true, true, nil, events(EventMemberRemoved), nil},
	{MemberReplace, "member.replace", ScopeMember, "member.replace", true, true, nil,
		events(EventMemberAdded, EventMemberRemoved), events(EventMemberFailed)},
	{MemberRecover, "member.recover", ScopeMember, "member.recover", true, false, nil, events(EventMemberAdded),
		events(EventMemberFailed)},
	{AllocationRelease, "", ScopeAllocation, "allocation.release", false, false,
		events(EventAllocationReleasing), events(EventAllocationReleased), nil},
}

// Kinds lists what is true of every kind, in the order of the adapter contract.
func Kinds() []Effects { return append([]Effects(nil), effects...) }

// superseding is which open operations make way for a new one: what they were for is moot then.
var superseding = map[OperationKind][]OperationKind{
	InstanceDecommission: {InstanceCreate, MembersAdd, MemberDrain, MemberCordon, MemberUncordon, MemberLabel,
		MemberRemove, MemberReplace, MemberRecover},
	MemberRemove:  {MemberDrain, MemberCordon, MemberUncordon, MemberLabel},
	MemberReplace: {MemberDrain, MemberCordon, MemberUncordon, MemberLabel},
}

// Supersedes reports whether an open operation of the other kind, on the same instance or member, makes way for one
// of this kind instead of standing in its way.
func (k OperationKind) Supersedes(other OperationKind) bool {
	return slices.Contains(superseding[k], other)
}

// Effects is what is true of the kind; of an unknown kind, nothing.
func (k OperationKind) Effects() Effects {
	for _, effect := range effects {
		if effect.Kind == k {
			return effect
		}
	}
	return Effects{Kind: k}
}

// WireName is the kind in the adapter contract, such as "instance.create"; empty for a kind no adapter sees.
func (k OperationKind) WireName() string { return k.Effects().Wire }

// events spells a list in the table.
func events(types ...EventType) []EventType { return types }
