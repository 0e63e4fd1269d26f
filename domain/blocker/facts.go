package blocker

import (
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/nodehealth"
)

// Facts is the input of the rules: one open operation, or one instance without its operations, and
// everything that they depend on. The lists leave out what is well, as their comments say.
type Facts struct {
	// Now is the moment that everything is judged at.
	Now time.Time
	// Workers is whether any worker process lives.
	Workers Pulse
	// Backlog is how many operations of the tenant are due, its own among them; counted up to 10,000.
	Backlog int
	// Operation is the open operation; nil when the facts are an instance's.
	Operation *Operation
	// Instance is nil when the operation changes none.
	Instance *Instance
	// Family is the family of permission keys of the instance's verbs; empty without an instance.
	Family string
	// AdapterName is the adapter that takes part; empty when none does.
	AdapterName string
	// Adapter is what is known of it; nil when none is registered by that name.
	Adapter *Adapter
	// Members are those that are failed, drift from their place, or whose node is not well.
	Members []Member
	// Allocations are those that are not READY.
	Allocations []Allocation
	// Open are node tasks that have not ended, oldest first.
	Open []Task
	// Ended are the operation's newest node tasks that have ended, newest first.
	Ended []Task
	// Orphans are what the instance's operations have left behind, oldest first.
	Orphans []Orphan
	// Behind is what the operation waits for, with that one's own blockers; nil when it waits for none.
	Behind *Behind
}

// Pulse is a sign of life.
type Pulse struct {
	// Alive says that its last heartbeat is not older than a lease lasts.
	Alive bool
	// Heard is the last heartbeat; nil before the first, and after it has signed off.
	Heard *time.Time
}

// Operation is an open operation.
type Operation struct {
	ID             ids.ID
	Kind           lifecycle.OperationKind
	State          lifecycle.OperationState
	Message        string
	Targets        []ids.ID
	Force          bool
	ForcedAt       *time.Time
	CancelAskedAt  *time.Time
	Created        time.Time
	Due            time.Time // when a worker looks at it next
	Deadline       time.Time
	Failures       int      // failed tries of the running step in a row
	Refusal        *Refusal // its end is refused; nil while it is not
	Unknown        bool     // no worker that lives begins its kind, or carries on the steps that it was begun with
	Claimed        bool     // a worker process holds it
	Holder         Pulse    // that process
	Dispatches     int      // 0 before the adapter was asked
	Step           *Step    // the step under way; nil before the first
	Works          []Work   // what the adapter says that it waits for
	AdapterState   string   // the adapter's newest word: accepted, running …; empty before one
	AdapterMessage string
}

// Refusal is an end that could not be recorded.
type Refusal struct {
	// State is what the operation was to become, Why what refused that.
	State lifecycle.OperationState `json:"state"`
	Why   string                   `json:"why"`
	// Times is how often it was tried in a row, and Since since when.
	Times int       `json:"times"`
	Since time.Time `json:"since"`
}

// Step is a step under way.
type Step struct {
	Name, Message string
	State         lifecycle.StepState
	Started       time.Time
	// WaitCode and WaitOwner are what it noted that it waits for; empty when it noted nothing.
	WaitCode  fault.Code
	WaitOwner string
	// Troubled says that its last try failed; the message says why.
	Troubled bool
	// Unauthenticated says that the adapter refused the platform's signature.
	Unauthenticated bool
}

// Work is something that an operation waits for.
type Work struct {
	ID, Name, MemberID string
	// Message is what the adapter reports of it, such as why it does not end.
	Message string
	Since   *time.Time
}

// Instance is an instance that is not released.
type Instance struct {
	ID            ids.ID
	Status        lifecycle.InstanceStatus
	Health        lifecycle.Health
	HealthMessage string
	HealthSince   time.Time // since when it is as it is
	Observed      bool      // its adapter was asked at least once
	Failure       string    // why it is FAILED
	FailureOwner  string
	FailedAt      time.Time
	RepairStopped string // why the platform's repair has stopped; empty while it has not
	Drift         []Drift
	AppSlug       string
	AppVersion    string
	ManifestStage lifecycle.Stage
	// Inspects says that its manifest names the commands that the adapter may run in calls that change nothing.
	Inspects bool
	// EntitlementEnded is when the project lost the right to the app; nil while it has it.
	EntitlementEnded *time.Time
	// Open says that an operation on it has not ended.
	Open bool
	// Last is its newest operation; nil before the first.
	Last *Last
	// Created is when it was launched.
	Created time.Time
}

// Last is the newest operation of an instance.
type Last struct {
	ID        ids.ID
	Kind      lifecycle.OperationKind
	State     lifecycle.OperationState
	Code      string
	Message   string
	Owner     string
	Ended     time.Time
	Retryable bool
}

// Drift is a difference between what is meant and what the adapter sees.
type Drift struct {
	Code, Message string
	MemberID      string
	Since         time.Time
}

// Adapter is what the platform knows of an adapter.
type Adapter struct {
	Name string
	// Problem is why its feed cannot be read; empty while it can.
	Problem string
	// DialRefused says that the problem is the operator's dial policy.
	DialRefused bool
	// Unauthenticated says that the problem is that it refuses the platform's signature.
	Unauthenticated bool
	// Seen is when its feed last answered; nil when never.
	Seen *time.Time
	// Narrow says that its calls that change nothing may run what manifests name, and nothing else.
	Narrow bool
	// Busy says that workers make no further calls to it now: it has the most that one adapter may have, or does not
	// answer.
	Busy bool
	// Registered is when it was registered.
	Registered time.Time
}

// Member is a member that is not well, or whose node is not.
type Member struct {
	ID         ids.ID
	Name       string // component and number
	Reason     string // what is said of its health; empty for nothing
	Status     lifecycle.MemberStatus
	Allocation *ids.ID
	Changed    time.Time
	Node       *Node // nil when it is bound to none
}

// Node is a node.
type Node struct {
	ID, Name string
	Status   lifecycle.NodeStatus
	Seen     time.Time // when its agent was last heard, or it was enrolled
	// Startless is why it can start no member now; empty when it can.
	Startless string
	// Barring are the conditions that its agent's checks found and that keep new members away, the worst first.
	Barring []nodehealth.Condition
	// Drain is the request that no work is left there; nil without one.
	Drain *nodehealth.Drain
}

// Allocation is an allocation that is not READY.
type Allocation struct {
	ID      ids.ID
	Status  lifecycle.AllocationStatus
	Release ids.ID // the operation that releases it; empty when none does
	Since   time.Time
}

// Task is a node task.
type Task struct {
	ID, MemberID ids.ID
	Node         Node
	Kind         lifecycle.NodeTaskKind
	State        lifecycle.NodeTaskState
	// Platform says that the platform itself requested it, and no adapter.
	Platform bool
	// Name is a probe's name.
	Name                    string
	Created, Started, Ended time.Time // zero while not
	Timeout                 time.Duration
	// Good says that it ended with what was hoped for: a probe passed, nothing was left.
	Good bool
	// Detail is what it found, for a person.
	Detail string
	// Code is what it failed with, of the node agent's codes; empty for none.
	Code fault.Code
}

// Orphan is something left behind.
type Orphan struct {
	ID             ids.ID
	Kind           lifecycle.OrphanKind
	Owner, Message string
	LastError      string
	Created, Next  time.Time
}

// Behind is the operation that another one waits for.
type Behind struct {
	ID       ids.ID
	Kind     lifecycle.OperationKind
	Instance ids.ID
	Since    time.Time
	Blockers []*Blocker
}
