package contract

import "slices"

// Kind is what an operation does.
type Kind string

// The operation kinds of contract v1.
const (
	InstanceCreate       Kind = "instance.create"
	InstanceDecommission Kind = "instance.decommission"
	InstanceUpgrade      Kind = "instance.upgrade"
	InstanceRollback     Kind = "instance.rollback"
	MembersAdd           Kind = "members.add"
	MemberDrain          Kind = "member.drain"
	MemberCordon         Kind = "member.cordon"
	MemberUncordon       Kind = "member.uncordon"
	MemberLabel          Kind = "member.label"
	MemberRemove         Kind = "member.remove"
	MemberReplace        Kind = "member.replace"
	MemberRecover        Kind = "member.recover"
)

// Kinds returns every operation kind of contract v1.
func Kinds() []Kind {
	return []Kind{
		InstanceCreate, InstanceDecommission, InstanceUpgrade, InstanceRollback,
		MembersAdd, MemberDrain, MemberCordon, MemberUncordon, MemberLabel,
		MemberRemove, MemberReplace, MemberRecover,
	}
}

// Valid says whether k is a kind of contract v1.
func (k Kind) Valid() bool { return slices.Contains(Kinds(), k) }

// TakesAway says whether an operation of the kind only takes something away: it is carried out whatever the instance's
// config is.
func (k Kind) TakesAway() bool { return k == InstanceDecommission || k == MemberRemove }

// State is where an operation is at the adapter.
type State string

// The states: accepted → running → succeeded | failed | canceled.
const (
	StateAccepted  State = "accepted"
	StateRunning   State = "running"
	StateSucceeded State = "succeeded"
	StateFailed    State = "failed"
	StateCanceled  State = "canceled"
)

// States returns every state.
func States() []State {
	return []State{StateAccepted, StateRunning, StateSucceeded, StateFailed, StateCanceled}
}

// Terminal says whether nothing more will happen in state s without a new dispatch.
func (s State) Terminal() bool {
	return s == StateSucceeded || s == StateFailed || s == StateCanceled
}

// Valid says whether s is a state of contract v1.
func (s State) Valid() bool { return slices.Contains(States(), s) }

// MemberStatus is the state of a member an adapter may report.
type MemberStatus string

// The member states an adapter may report.
const (
	MemberJoining  MemberStatus = "joining"
	MemberActive   MemberStatus = "active"
	MemberDraining MemberStatus = "draining"
	MemberDrained  MemberStatus = "drained"
	MemberRemoved  MemberStatus = "removed"
	MemberFailed   MemberStatus = "failed"
)

// MemberStatuses returns every member state an adapter may report.
func MemberStatuses() []MemberStatus {
	return []MemberStatus{MemberJoining, MemberActive, MemberDraining, MemberDrained, MemberRemoved, MemberFailed}
}

// Valid says whether s is a member state of contract v1.
func (s MemberStatus) Valid() bool { return slices.Contains(MemberStatuses(), s) }

// Health is the adapter's judgement of an instance or member.
type Health string

// The judgements. Unknown is never read as good.
const (
	Healthy       Health = "healthy"
	Degraded      Health = "degraded"
	Unhealthy     Health = "unhealthy"
	HealthUnknown Health = "unknown"
)

// Healths returns every judgement.
func Healths() []Health { return []Health{Healthy, Degraded, Unhealthy, HealthUnknown} }

// Valid says whether h is a judgement of contract v1.
func (h Health) Valid() bool { return slices.Contains(Healths(), h) }

// Owner is whose a failure is to mend.
type Owner string

// The owners of a failure.
const (
	OwnerAdapter  Owner = "adapter"
	OwnerPlatform Owner = "platform"
	OwnerUser     Owner = "user"
	OwnerNode     Owner = "node"
)

// Owners returns every owner.
func Owners() []Owner { return []Owner{OwnerAdapter, OwnerPlatform, OwnerUser, OwnerNode} }

// Valid says whether o is an owner of contract v1.
func (o Owner) Valid() bool { return slices.Contains(Owners(), o) }

// Risk tells a console how carefully to ask before it runs an action.
type Risk string

// The risks of an action.
const (
	RiskRead        Risk = "read"
	RiskWrite       Risk = "write"
	RiskDestructive Risk = "destructive"
)

// Risks returns every risk.
func Risks() []Risk { return []Risk{RiskRead, RiskWrite, RiskDestructive} }

// Valid says whether r is a risk of contract v1.
func (r Risk) Valid() bool { return slices.Contains(Risks(), r) }

// CancelOutcome is what a request to cancel came to.
type CancelOutcome string

// The outcomes: stopped, past the point where stopping is safe, or not known (yet).
const (
	CancelDone    CancelOutcome = "canceled"
	CancelTooLate CancelOutcome = "too_late"
	CancelUnknown CancelOutcome = "unknown"
)

// CancelOutcomes returns every outcome.
func CancelOutcomes() []CancelOutcome {
	return []CancelOutcome{CancelDone, CancelTooLate, CancelUnknown}
}

// Valid says whether o is an outcome of contract v1.
func (o CancelOutcome) Valid() bool { return slices.Contains(CancelOutcomes(), o) }

// Verdict is what an adapter thinks of an operation before it is begun.
type Verdict string

// The verdicts. Unknown is never read as safe.
const (
	VerdictSafe    Verdict = "safe"
	VerdictUnsafe  Verdict = "unsafe"
	VerdictUnknown Verdict = "unknown"
)

// Verdicts returns every verdict.
func Verdicts() []Verdict { return []Verdict{VerdictSafe, VerdictUnsafe, VerdictUnknown} }

// Valid says whether v is a verdict of contract v1.
func (v Verdict) Valid() bool { return slices.Contains(Verdicts(), v) }
