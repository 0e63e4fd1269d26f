package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/optrace"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Bounds of a deadline, in seconds from the request.
const (
	MinDeadline = 30
	MaxDeadline = 86_400
)

// TriedAgain ends the message of a step that met an error and is tried again. The time of the next try is left out: a
// message that changed with every try would be an event each.
const TriedAgain = "; it is tried again"

// View is an operation as it is shown.
type View struct {
	*db.Operation
	// Loaded are its steps, when they were read along with it; nil when not.
	Loaded []*db.OperationStep

	waits []byte // what the adapter says it waits for
}

// TraceID is the id of the operation's whole trace, which follows from the operation's own.
func (v *View) TraceID() string { return optrace.Context(string(v.ID)).TraceID().String() }

// Failure is why something failed, and who can mend it.
type Failure struct {
	Code, Message string
	Owner         string // adapter, platform, user or node
	Retryable     bool
}

// Requester is who requested the operation.
func (v *View) Requester() *authz.Ref {
	return &authz.Ref{Kind: v.RequesterKind, ID: string(v.RequesterID), Name: v.RequesterName}
}

// Error is why the operation failed; nil when it did not.
func (v *View) Error() *Failure {
	if v.ErrorCode == "" {
		return nil
	}
	return &Failure{Code: v.ErrorCode, Message: v.ErrorMessage, Owner: v.ErrorOwner, Retryable: v.ErrorRetryable}
}

// Draft is an operation before it is accepted.
type Draft struct {
	ID                  ids.ID // minted by the verb, since its idempotency key remembers it
	Kind                lifecycle.OperationKind
	TenantID, ProjectID ids.ID
	Instance            *db.Instance // nil when it changes none
	AllocationID        ids.ID       // empty when it changes none
	AdapterName         string       // empty when no adapter takes part
	DeadlineSeconds     int
	Reason              string
	DesiredChange       any
	CorrelationID       string
	Targets             []ids.ID                  // the members it acts on; empty when it acts on all
	Force               bool                      // it may lose work and go without proof
	OnDeadline          lifecycle.DeadlineOutcome // empty for FAIL
	RetryOf             ids.ID                    // empty when it tries nothing again
	Input               json.RawMessage           // of a teardown: what a retry asks again; nil for nothing
}

// CheckDeadline refuses a deadline out of bounds, with INVALID_ARGUMENT at input.deadlineSeconds.
func CheckDeadline(seconds int) error {
	if seconds < MinDeadline || seconds > MaxDeadline {
		return fault.New(fault.InvalidArgument, "the deadline must be %d to %d seconds", MinDeadline, MaxDeadline).
			At("input.deadlineSeconds")
	}
	return nil
}

// Create accepts an operation in the verb's transaction, and wakes the workers after the commit. The caller makes the
// operation its instance's newest, if it changes one (Newest). RATE_LIMITED when a service account's limit of
// operations an hour leaves no more.
func Create(ctx context.Context, t *tx.Tx, draft Draft) (*db.Operation, error) {
	if err := withinLimit(ctx, t, draft.ProjectID); err != nil {
		return nil, err
	}
	change, err := json.Marshal(draft.DesiredChange)
	if err != nil {
		return nil, fmt.Errorf("encode the desired change: %w", err)
	}
	create := t.Operation.Create().SetID(draft.ID).SetTenantID(draft.TenantID).SetProjectID(draft.ProjectID).
		SetKind(draft.Kind).SetState(lifecycle.OperationPending).SetAdapterName(draft.AdapterName).
		SetRequesterKind(string(t.Actor.Kind)).SetRequesterID(t.Actor.ID).SetRequesterName(t.Actor.Name).
		SetReason(draft.Reason).SetCorrelationID(draft.CorrelationID).SetDesiredChange(change).
		SetNextRunAt(t.Now).SetCreatedAt(t.Now).SetDeadline(Due(t, draft.DeadlineSeconds))
	draft.optional(create)
	op, err := create.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("create an operation: %w", err)
	}
	t.Wake(event.QueueTopic, event.OperationTopic(op.ID))
	return op, nil
}

// Due returns the deadline of an operation that is accepted now.
func Due(t *tx.Tx, seconds int) time.Time { return t.Now.Add(time.Duration(seconds) * time.Second) }

// Newest makes an operation its instance's newest, and returns the column for it, to be written with its events.
func Newest(instance *db.Instance, op *db.Operation) event.Column {
	instance.LastOperationID = &op.ID
	return event.Column{Name: "last_operation_id", Value: op.ID}
}

// optional sets what an operation has only if it was given.
func (d *Draft) optional(create *db.OperationCreate) {
	create.SetForce(d.Force)
	if d.Instance != nil {
		create.SetInstanceID(d.Instance.ID).SetAppSlug(d.Instance.AppSlug)
	}
	if d.AllocationID != "" {
		create.SetAllocationID(d.AllocationID)
	}
	if len(d.Targets) > 0 {
		create.SetTargets(d.Targets)
	}
	if d.OnDeadline != "" {
		create.SetOnDeadline(d.OnDeadline)
	}
	if d.RetryOf != "" {
		create.SetRetryOf(d.RetryOf)
	}
}
