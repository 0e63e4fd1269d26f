package triage

import (
	"encoding/json"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/blocker"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/runbook"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/orphan"
	"github.com/gpuaas/app-platform/service/triage/links"
)

// Evidence is one row that the report rests on.
type Evidence struct {
	Kind lifecycle.TriageEvidenceKind
	// ID reads the row by `node`; nil for a blocker, which is not stored, and for a step, which is read with its
	// operation.
	ID *ids.ID
	// At is when it happened or began.
	At time.Time
	// What names it: the blocker's code, the step, the task's kind, the event's type, the field that was called.
	What string
	// State is that of a step or a task, and ALLOWED or the refusal's code of an audit entry; empty otherwise.
	State string
	// Message is for a person.
	Message string
	// Link is where to see it: a path of the console, or for a trace and for logs the address in the installation's own
	// tools; empty for none.
	Link string
	// TraceID is the trace that it belongs to; empty where none is known.
	TraceID string
}

// Next is the action that would clear it.
type Next struct {
	// Mutation and Plan are the fields of the API that carry it out and that show it first; Plan is empty for a
	// mutation without one.
	Mutation, Plan string
	// Argument and Value are the input's field that names the object, and its id.
	Argument string
	Value    ids.ID
	// Force reports whether the action has to be chosen with force.
	Force bool
	// PermissionKey is the key that it needs, and Allowed whether the caller has it.
	PermissionKey string
	Allowed       bool
	// Document and PlanDocument are ready to be sent with Variables and PlanVariables; the plan's are empty where Plan
	// is.
	Document, PlanDocument   string
	Variables, PlanVariables json.RawMessage

	also string // a key that it needs beside the other: a retry that of the kind; empty for none
}

// Other is another operation that the same correlation id names.
type Other struct {
	OperationID ids.ID
	Kind        lifecycle.OperationKind
	State       lifecycle.OperationState
	At          time.Time
	object      authz.Object
}

// Report is what is known of one request, and what to do about it.
type Report struct {
	CorrelationID                                    string
	OperationID, InstanceID, AllocationID, ProjectID *ids.ID
	// Asked is the operation's kind, or the field that was called.
	Asked     string
	Requester *authz.Ref
	Reason    string
	At        time.Time
	Stands    lifecycle.TriageStand
	// Code and Message are the cause: the first blocker, the failure or the refusal; empty where nothing is wrong.
	Code, Message string
	// Owner is who can clear it: adapter, platform, user or node; empty where nothing is wrong.
	Owner string
	// Branch is the edge of the runbook that applies; nil where none does.
	Branch *runbook.Branch
	// Next is the action that would clear it; nil where waiting or an action outside of the platform is the only way.
	Next *Next
	// Evidence are the rows that it rests on, each kind oldest first.
	Evidence []*Evidence
	// TraceID is of the operation's whole trace; empty without an operation.
	TraceID string
	// CostSoFar is what an open operation holds has cost; nil where it holds nothing, or a price is missing.
	CostSoFar *orphan.Money
	// Others are the other operations with the same correlation id, newest first.
	Others []*Other
	// Links are pages of the installation's own tools.
	Links []links.Link
}

// Task is a node task without what the task itself printed.
type Task struct {
	ID          ids.ID
	Kind, State string
	Message     string
	// Code is the node's own code for why it failed; empty for none.
	Code               string
	ExitCode           *int
	CreatedAt          time.Time
	StartedAt, EndedAt *time.Time
	InstanceID         ids.ID
	MemberID, NodeID   ids.ID
	Tenant, InProj     ids.ID
}

// Call is what the adapter was sent, and its newest answer. Attempts are counted by the operation, and an attempt's
// answer replaces that of the one before it.
type Call struct {
	// Adapter is the adapter's name, and Attempt the newest dispatch attempt, from 1.
	Adapter string
	Attempt int
	// State and Message are its newest answer's; empty before one.
	State, Message string
}

// Member is a member as far as an action may be about it.
type Member struct {
	// NodeID and Node are the id and the name of its node; empty where it has none, or the caller may not see it.
	ID, NodeID ids.ID
	Node       string
	Status     lifecycle.MemberStatus
	Health     lifecycle.Health
}

// Instance is the instance that a report is about, for a support bundle.
type Instance struct {
	ID         ids.ID
	Status     lifecycle.InstanceStatus
	Health     lifecycle.Health
	Generation int
	CreatedAt  time.Time
}

// Audit is an entry of the audit without what it keeps of before and after.
type Audit struct {
	ID                ids.ID
	Tenant, Project   *ids.ID
	Actor             authz.Ref
	Key               string
	Action, ObjectID  string
	Repeats           int
	Allowed           bool
	Code, Correlation string
	Reason            string
	At                time.Time
}

// Rows hold everything that a report draws on. The caller may read all of it.
type Rows struct {
	// Operation is nil where the request created none.
	Operation *operation.View
	// Family is the permission family of the operation's instance; empty where it has none.
	Family string
	// System reports whether the instance is of a system app, which the platform's operator runs.
	System bool
	// Blockers are the operation's, the one to clear first at the head; empty once it has ended.
	Blockers []*blocker.Blocker
	// Unwell are the instance's, where the report was requested of the instance.
	Unwell []*blocker.Blocker
	Steps  []*db.OperationStep
	Tasks  []*Task
	Events []*event.Event
	Audits []*Audit
	// Call is nil where no adapter was called.
	Call *Call
	// Instance and Members are the instance's; Instance is nil without one, or where the caller may not read it.
	Instance *Instance
	Members  []*Member
	// Others are the other operations with the same correlation id.
	Others []*Other
	// Cost is what an open operation holds has cost.
	Cost *orphan.Money
	// Key makes a repeat of the next action harmless: another for each report.
	Key string
	// Templates are the installation's own tools.
	Templates links.Templates
	// Now is the database's time.
	Now time.Time

	hidden map[string]int // how many rows the caller may not read, by what they are
}
