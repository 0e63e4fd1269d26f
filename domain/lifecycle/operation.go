package lifecycle

// OperationState is the state of a requested change.
type OperationState string

// The states of an operation.
const (
	OperationPending      OperationState = "PENDING"
	OperationRunning      OperationState = "RUNNING"
	OperationCanceling    OperationState = "CANCELING"
	OperationCompensating OperationState = "COMPENSATING"
	OperationSucceeded    OperationState = "SUCCEEDED"
	OperationFailed       OperationState = "FAILED"
	OperationCanceled     OperationState = "CANCELED"
)

// Values lists every OperationState as it is stored and published.
func (OperationState) Values() []string {
	return names(
		OperationPending, OperationRunning, OperationCanceling, OperationCompensating, OperationSucceeded,
		OperationFailed, OperationCanceled,
	)
}

var operationMachine = table[OperationState]{"operation", OperationPending, []Move[OperationState]{
	{OperationPending, OperationRunning, "a worker claimed it"},
	{OperationPending, OperationFailed, "its deadline passed before a claim"},
	{OperationPending, OperationCanceled, "canceled before a claim"},
	{OperationRunning, OperationSucceeded, "done, with evidence"},
	{OperationRunning, OperationFailed, "failed with nothing to undo, or by its deadline"},
	{OperationRunning, OperationCanceling, "a cancel was requested"},
	{OperationRunning, OperationCompensating, "failed, effects are being undone"},
	{OperationCanceling, OperationCanceled, "canceled with nothing to undo"},
	{OperationCanceling, OperationCompensating, "canceled, effects are being undone"},
	{OperationCanceling, OperationRunning, "the adapter reports that it is too late to cancel"},
	{OperationCanceling, OperationSucceeded, "it was done before the cancel arrived"},
	{OperationCanceling, OperationFailed, "it failed before the cancel arrived"},
	{OperationCompensating, OperationFailed, "undone after a failure, or what is left is in the orphan list"},
	{OperationCompensating, OperationCanceled, "undone after a cancel"},
}}

// CanMove refuses a step that the table does not hold, with FAILED_PRECONDITION naming both states.
func (s OperationState) CanMove(to OperationState) error { return operationMachine.check(s, to) }

// Terminal reports whether no state follows: SUCCEEDED, FAILED and CANCELED.
func (s OperationState) Terminal() bool { return operationMachine.terminal(s) }

// StepState is the state of one step of an operation.
type StepState string

// The states of a step.
const (
	StepPending   StepState = "PENDING"
	StepRunning   StepState = "RUNNING"
	StepSucceeded StepState = "SUCCEEDED"
	StepFailed    StepState = "FAILED"
	StepSkipped   StepState = "SKIPPED"
	StepUndoing   StepState = "UNDOING"
	StepUndone    StepState = "UNDONE"
)

// Values lists every StepState as it is stored and published.
func (StepState) Values() []string {
	return names(StepPending, StepRunning, StepSucceeded, StepFailed, StepSkipped, StepUndoing, StepUndone)
}

var stepMachine = table[StepState]{"operation_step", StepPending, []Move[StepState]{
	{StepPending, StepRunning, "its turn"},
	{StepPending, StepSucceeded, "started and done before either was stored"},
	{StepPending, StepSkipped, "nothing to do, or the operation ended before"},
	{StepRunning, StepSucceeded, "done"},
	{StepRunning, StepFailed, "tried and failed"},
	{StepRunning, StepSkipped, "nothing to do"},
	{StepRunning, StepUndoing, "done, and undone before that was stored"},
	{StepFailed, StepRunning, "its evidence is not valid any more: run again"},
	{StepSucceeded, StepUndoing, "compensation"},
	{StepUndoing, StepUndone, "undone"},
	{StepUndoing, StepFailed, "could not be undone: a row in the orphan list"},
}}

// CanMove refuses a step that the table does not hold, with FAILED_PRECONDITION naming both states.
func (s StepState) CanMove(to StepState) error { return stepMachine.check(s, to) }

// Terminal reports whether no state follows: SKIPPED and UNDONE.
func (s StepState) Terminal() bool { return stepMachine.terminal(s) }

// Outcome says how well a success is proved.
type Outcome string

// The outcomes of an operation that SUCCEEDED. FORCED and UNVERIFIED exist only where the caller requested force.
const (
	OutcomeNormal     Outcome = "NORMAL"
	OutcomeForced     Outcome = "FORCED"
	OutcomeUnverified Outcome = "UNVERIFIED"
)

// Values lists every Outcome as it is stored and published.
func (Outcome) Values() []string { return names(OutcomeNormal, OutcomeForced, OutcomeUnverified) }

// Owner says who must act on an error or a blocker.
type Owner string

// The owners.
const (
	OwnerAdapter  Owner = "ADAPTER"
	OwnerPlatform Owner = "PLATFORM"
	OwnerUser     Owner = "USER"
	OwnerNode     Owner = "NODE"
)

// Values lists every Owner as it is stored and published.
func (Owner) Values() []string { return names(OwnerAdapter, OwnerPlatform, OwnerUser, OwnerNode) }

// ActionRisk is how risky an app action is; its adapter contract spelling is in lower case.
type ActionRisk string

// The risks: nothing changes, something changes, work can be lost.
const (
	RiskRead        ActionRisk = "READ"
	RiskWrite       ActionRisk = "WRITE"
	RiskDestructive ActionRisk = "DESTRUCTIVE"
)

// Values lists every ActionRisk as it is stored and published.
func (ActionRisk) Values() []string { return names(RiskRead, RiskWrite, RiskDestructive) }

// AccountLimit names a limit of a service account.
type AccountLimit string

// The limits: which objects it may touch, the highest risk of its actions, its operations an hour.
const (
	LimitObjectIDs         AccountLimit = "OBJECT_IDS"
	LimitMaxRisk           AccountLimit = "MAX_RISK"
	LimitOperationsPerHour AccountLimit = "OPERATIONS_PER_HOUR"
)

// Values lists every AccountLimit as it is published.
func (AccountLimit) Values() []string {
	return names(LimitObjectIDs, LimitMaxRisk, LimitOperationsPerHour)
}

// DeadlineOutcome is what the caller wants when an operation's deadline passes.
type DeadlineOutcome string

// The choices: give up, or go on with force, losing work and proof.
const (
	DeadlineFail  DeadlineOutcome = "FAIL"
	DeadlineForce DeadlineOutcome = "FORCE"
)

// Values lists every DeadlineOutcome as it is stored and published.
func (DeadlineOutcome) Values() []string { return names(DeadlineFail, DeadlineForce) }

// OrphanKind is what an operation has left behind.
type OrphanKind string

// The kinds: something of a member may be left on a node, or an allocation is held that no one requested to keep.
const (
	OrphanNodeResidue OrphanKind = "NODE_RESIDUE"
	OrphanAllocation  OrphanKind = "ALLOCATION"
)

// Values lists every OrphanKind as it is stored and published.
func (OrphanKind) Values() []string { return names(OrphanNodeResidue, OrphanAllocation) }
