package lifecycle

// MemberStatus is the state of one realised member of an instance. Cordoned is a flag beside it.
type MemberStatus string

// The states of a member.
const (
	MemberPending  MemberStatus = "PENDING"
	MemberJoining  MemberStatus = "JOINING"
	MemberActive   MemberStatus = "ACTIVE"
	MemberDraining MemberStatus = "DRAINING"
	MemberDrained  MemberStatus = "DRAINED"
	MemberRemoving MemberStatus = "REMOVING"
	MemberRemoved  MemberStatus = "REMOVED"
	MemberFailed   MemberStatus = "FAILED"
)

// Values lists every MemberStatus as it is stored and published.
func (MemberStatus) Values() []string {
	return names(
		MemberPending, MemberJoining, MemberActive, MemberDraining, MemberDrained, MemberRemoving,
		MemberRemoved, MemberFailed,
	)
}

var memberMachine = table[MemberStatus]{"member", MemberPending, []Move[MemberStatus]{
	{MemberPending, MemberJoining, "its operation was dispatched"},
	{MemberPending, MemberRemoving, "decommissioned before it joined"},
	{MemberPending, MemberFailed, "no node could be bound, or the create failed"},
	{MemberJoining, MemberActive, "the adapter reports it active and its probes pass"},
	{MemberJoining, MemberRemoving, "decommissioned while it joined"},
	{MemberJoining, MemberFailed, "bootstrap failed"},
	{MemberActive, MemberDraining, "drain"},
	{MemberActive, MemberRemoving, "decommission, or removal by force"},
	{MemberActive, MemberFailed, "runtime error"},
	{MemberDraining, MemberDrained, "the adapter reports that nothing runs"},
	{MemberDraining, MemberActive, "the drain was canceled"},
	{MemberDraining, MemberRemoving, "decommission, or removal by force"},
	{MemberDraining, MemberFailed, "runtime error"},
	{MemberDrained, MemberActive, "uncordon"},
	{MemberDrained, MemberRemoving, "remove or decommission"},
	{MemberDrained, MemberFailed, "runtime error"},
	{MemberRemoving, MemberRemoved, "the agents prove no residue"},
	{MemberRemoving, MemberFailed, "teardown could not be finished"},
	{MemberFailed, MemberJoining, "recover: bootstrap again"},
	{MemberFailed, MemberRemoving, "remove, replace or decommission"},
}}

// CanMove refuses a step that the table does not hold, with FAILED_PRECONDITION naming both states.
func (s MemberStatus) CanMove(to MemberStatus) error { return memberMachine.check(s, to) }

// Terminal reports whether no state follows: REMOVED.
func (s MemberStatus) Terminal() bool { return memberMachine.terminal(s) }

// Live reports whether the member is part of its instance: everything but REMOVED and FAILED.
func (s MemberStatus) Live() bool { return s != MemberRemoved && s != MemberFailed }
