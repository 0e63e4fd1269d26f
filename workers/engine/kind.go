package engine

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/roles"
)

// Kind is how one kind of operation is carried out. The last step of every operation is "finish",
// which the engine adds: it runs Complete and ends the operation in one transaction.
type Kind struct {
	Kind lifecycle.OperationKind
	// Revision is raised when a step's stored evidence or state means something else than before under the same names.
	Revision int
	Steps    []Step
	// Queues says that Complete only queues, by what Locked has of the instance: operations of the kind may end
	// together with others, in one transaction.
	Queues bool
	// Complete writes what success means, and returns the evidence for it and a message for people.
	Complete func(ctx context.Context, t *tx.Tx, c *Context, locked *Locked) (evidence any, message string, err error)
	// OnFail writes what failure means, in the transaction that ends the operation, be it as failed or
	// as canceled (Canceled says which), and after whatever Undo came to; nil for nothing.
	OnFail func(ctx context.Context, t *tx.Tx, c *Context, locked *Locked, failure operation.Failure) error
	// Undo takes back what was half done, when the operation failed or was canceled; its steps are
	// appended to the operation's own. They have a time of their own, and what they have not taken
	// back by then OnFail puts on the list of orphans.
	Undo []Step
	// Undoes reports whether there is anything to undo; nil for always.
	Undoes func(c *Context, failure operation.Failure) bool
	// Cancel asks the adapter to stop. Nil when the operation cannot be stopped.
	Cancel func(ctx context.Context, c *Context) (Answer, error)
	// CancelFails says that a cancel, too, emits the kind's events of failure.
	CancelFails bool
	// Abandon runs once the failure is written, outside of any transaction and without a promise:
	// it lets the adapter know that no one waits any more. Nil does nothing.
	Abandon func(ctx context.Context, c *Context)
}

// Step is one step of a kind.
type Step struct {
	// Name is stored, and is the operation's phase while it runs.
	Name string
	// Title says for people what it does.
	Title string
	// Percent is how far the operation is when it is done.
	Percent int
	// Owner is whom the step waits for, when its waiting says nothing else.
	Owner string
	// SkipWhenForced: under force the step is skipped once its grace period ends or it fails.
	SkipWhenForced bool
	// DoubleGrace: under force the step gets two grace periods, since it begins late, or until the deadline if that is
	// later.
	DoubleGrace bool
	// OwnDeadline: under force the step enforces its own limit.
	OwnDeadline bool
	// Run does the step. It may be run again after any crash, so it must be idempotent. An error is
	// tried again until the operation's deadline.
	Run func(ctx context.Context, c *Context) (Result, error)
}

// Result is what a run of a step came to.
type Result struct {
	evidence any
	after    time.Duration
	message  string
	blame    FailureCause
	failure  *operation.Failure
	waiting  bool
}

// FailureCause is what becomes of the operation if what it waits for does not come before the deadline.
type FailureCause struct {
	// Code is DEADLINE_EXCEEDED when empty.
	Code fault.Code
	// Owner is the step's when empty.
	Owner string
}

// Done is the result of a step that has reached its end; evidence is kept with the step.
func Done(evidence any) Result { return Result{evidence: evidence} }

// Wait is the result of a step that must be run again after a while, or sooner if the operation is
// woken. An empty message leaves the last one.
func Wait(after time.Duration, message string, blame FailureCause) Result {
	return Result{waiting: true, after: after, message: message, blame: blame}
}

// Fail is the result of a step without which the operation cannot succeed.
func Fail(failure operation.Failure) Result { return Result{failure: &failure} }

// Answer is the answer to a request to stop.
type Answer struct {
	// Outcome is canceled, too_late or unknown; only the first two are final.
	Outcome adapter.CancelOutcome
	// Message says it to a person.
	Message string
}

// RerunStep is an error of Complete, or of OnFail: a step's evidence no longer holds. Nothing is written and the step
// is run again, with the state given.
type RerunStep struct {
	Step, Message string
	State         any
}

// Error is for the log.
func (r *RerunStep) Error() string { return r.Step + " must be done again: " + r.Message }

// RetryableError is an error with a message for people; the step is run again.
type RetryableError struct {
	Message string
	Cause   FailureCause
	Err     error
}

// Error is for the log.
func (t *RetryableError) Error() string {
	if t.Err == nil {
		return t.Message
	}
	return t.Message + ": " + t.Err.Error()
}

// Unwrap is the cause.
func (t *RetryableError) Unwrap() error { return t.Err }

// Locked is what a step's transaction holds.
type Locked struct {
	// Instance is nil when the operation changes none.
	Instance *db.Instance
	// Op is the operation as it is now.
	Op *db.Operation
	// Writes go out with the commit, before the steps and events.
	Writes *pgx.Batch
	// Outcome is what the operation's success counts as: NORMAL when empty.
	Outcome lifecycle.Outcome
	// About are the members that an event of the kind is about; for an event that is left out they are
	// the targets of a member's operation.
	About map[lifecycle.EventType][]ids.ID
	// Left says that not everything could be taken back.
	Left bool
	// Members are how many of the instance's members are where, at the end of an operation whose kind Queues.
	Members *roles.Pending
	events  []event.Draft
	columns []event.Column
	first   bool
	ended   bool
}

// Set gives a column of the instance's row a value, in the one update that the transaction makes of it.
func (l *Locked) Set(column string, value any) {
	l.columns = append(l.columns, event.Column{Name: column, Value: value})
}

// Dispatches makes what follows the operation's first dispatch, unless it has one.
func (l *Locked) Dispatches() {
	if l.Op.DispatchAttempt == 0 {
		l.Op.DispatchAttempt, l.first = 1, true
	}
}

// Emit queues events for the instance's timeline; they are appended in order at the end of the
// transaction. The operation and its correlation id are filled in.
func (l *Locked) Emit(drafts ...event.Draft) {
	for _, draft := range drafts {
		draft.OperationID, draft.CorrelationID = l.Op.ID, l.Op.CorrelationID
		l.events = append(l.events, draft)
	}
}
