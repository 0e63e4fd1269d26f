package change

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/kit/idem"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Writer writes what a kind changes beside its operation, in the same transaction. It may be nil.
type Writer func(ctx context.Context, t *tx.Tx, c *Change) error

// Accepted is an accepted change.
type Accepted struct {
	Instance *db.Instance
	// Member is the one that was named; nil when none was.
	Member *db.Member
	// Members are those that come, in order of their numbers.
	Members   []*db.Member
	Operation *operation.View
}

// Accept accepts a change: every rule is asked that its plan asks, by the same code, and the first
// that refuses it is its answer. With a plan's hash the adapter is asked again, and anything that has
// moved is PLAN_STALE. A repeat under the same idempotency key answers what the first call made.
//
// Faults: INVALID_ARGUMENT, NOT_FOUND, FORBIDDEN, IDEMPOTENCY_KEY_REUSED, PLAN_STALE, and those of the
// rules: FAILED_PRECONDITION, CONFLICT naming the operation in the way, LIMIT_EXCEEDED, INCOMPATIBLE,
// CONFIG_INVALID, CAPACITY_EXHAUSTED, ADAPTER_REJECTED.
func (e *Engine) Accept(ctx context.Context, request *Request, write Writer) (*Accepted, error) {
	if err := request.check(); err != nil {
		return nil, err
	}
	if err := request.checkAsked(); err != nil {
		return nil, err
	}
	var said *adapter.PlanAnswer
	if request.Asked.PlanHash != "" {
		var err error
		if _, said, err = e.look(ctx, request, request.Action); err != nil {
			return nil, err
		}
	}
	var out *Accepted
	err := e.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		c := newChange(request)
		repeated, err := c.begin(ctx, t)
		if err == nil && !repeated {
			err = c.accept(ctx, t, said, write)
		}
		if err != nil {
			return err
		}
		out, err = c.accepted(ctx, t)
		return err
	})
	return out, err
}

// begin authorises, locks and claims the idempotency key; true when the key was used before.
func (c *Change) begin(ctx context.Context, t *tx.Tx) (bool, error) {
	if err := c.find(ctx, t, c.Action); err != nil {
		return false, err
	}
	if err := c.lock(ctx, t, true); err != nil {
		return false, err
	}
	return idem.Claim(ctx, t, idem.Key{
		Verb: c.idemVerb(), TenantID: c.Instance.TenantID, ProjectID: c.Instance.ProjectID, Value: c.Asked.IdempotencyKey, Input: c.whole(),
	}, &c.Made)
}

// whole is everything that was asked, as the idempotency key is bound to it.
func (c *Change) whole() any {
	return struct {
		Input, Labels   any
		PlanHash        string
		RetryOf         ids.ID
		Reason          string
		DeadlineSeconds int
	}{c.Asked.Input, c.Labels, c.Asked.PlanHash, c.Asked.RetryOf, c.Asked.Reason, c.Asked.DeadlineSeconds}
}

// accept asks every rule and writes everything.
func (c *Change) accept(ctx context.Context, t *tx.Tx, said *adapter.PlanAnswer, write Writer) error {
	if err := c.load(ctx, t, true); err != nil {
		return err
	}
	if err := c.judge(ctx, t); err != nil {
		return err
	}
	if err := c.permit(said); err != nil {
		return c.refusedByPolicy(t, err)
	}
	return c.carry(ctx, t, write)
}

// permit refuses what is not as the plan found it, then what a rule refuses.
func (c *Change) permit(said *adapter.PlanAnswer) error {
	if c.Asked.PlanHash != "" {
		c.hear(said)
		hash, err := c.hash(said)
		if err != nil {
			return err
		}
		if hash != c.Asked.PlanHash {
			return fault.New(fault.PlanStale, "something that the plan rested on has changed since: plan again").At("input.planHash")
		}
	}
	if refusal := c.refused(); refusal != nil {
		return refusal
	}
	if refusal := c.unseen(); refusal != nil {
		return refusal
	}
	if c.needsReason() && c.Asked.Reason == "" {
		return reasonMissing("a " + c.Rule.Noun + " needs a reason: " + c.Rule.Reason)
	}
	return nil
}

// unseen refuses what may disturb other projects by somebody who has not looked: what takes something away from a
// shared control plane that others are attached to needs its plan, which names them.
func (c *Change) unseen() error {
	if len(c.Attached) == 0 || c.Asked.PlanHash != "" || !c.Rule.Disturbs {
		return nil
	}
	message := fmt.Sprintf("%d other projects use this control plane: plan the %s first and pass the plan's hash", len(c.Attached), c.Rule.Noun)
	return fault.New(fault.FailedPrecondition, "%s", message).With(fault.Reason{Code: fault.Required, Message: message, Path: "input.planHash"})
}

// carry writes state, operation, events and audit.
func (c *Change) carry(ctx context.Context, t *tx.Tx, write Writer) error {
	before := c.snapshot()
	events, _, err := operation.SupersedeAll(ctx, t, c.superseded, c.Made.Operation, c.Kind)
	if err != nil {
		return err
	}
	if err := c.makeOperation(ctx, t); err != nil {
		return err
	}
	if write != nil {
		if err := write(ctx, t, c); err != nil {
			return err
		}
	}
	if c.Member != nil {
		if err := c.touch(ctx, t); err != nil {
			return err
		}
	}
	if err := event.Append(ctx, t, c.Instance, append(events, c.events()...)...); err != nil {
		return err
	}
	return c.audit(ctx, t, before)
}

func (c *Change) makeOperation(ctx context.Context, t *tx.Tx) error {
	desired, err := c.desired()
	if err != nil {
		return err
	}
	c.Operation, err = operation.Create(ctx, t, operation.Draft{
		ID: c.Made.Operation, Kind: c.Kind, TenantID: c.Instance.TenantID, ProjectID: c.Instance.ProjectID, Instance: c.Instance,
		AdapterName: c.Instance.RuntimeBackend, DeadlineSeconds: c.Asked.DeadlineSeconds, Reason: c.Asked.Reason, DesiredChange: desired,
		CorrelationID: t.Request.CorrelationID, Targets: c.targets(), Force: c.Force, OnDeadline: c.Asked.OnDeadline, RetryOf: c.Asked.RetryOf,
	})
	return err
}

// touch makes the operation the member's last. Its state moves once the operation is carried out.
func (c *Change) touch(ctx context.Context, t *tx.Tx) error {
	_, err := t.Exec(ctx, `UPDATE member SET last_operation_id = $2, correlation_id = $3, updated_at = $4 WHERE id = $1`,
		c.Member.ID, c.Operation.ID, c.Operation.CorrelationID, t.Now)
	if err != nil {
		return fmt.Errorf("touch member %s: %w", c.Member.ID, err)
	}
	c.Member.LastOperationID, c.Member.CorrelationID, c.Member.UpdatedAt = &c.Operation.ID, c.Operation.CorrelationID, t.Now
	return nil
}

// events are what the timeline is told of the accepted change.
func (c *Change) events() []event.Draft {
	id, correlation := c.Operation.ID, c.Operation.CorrelationID
	var drafts []event.Draft
	for _, allocation := range c.created {
		drafts = append(drafts, event.Draft{Type: lifecycle.EventAllocationReady, OperationID: id, CorrelationID: correlation,
			Message: "allocation " + allocation.Name + " is ready", Payload: map[string]any{"allocation": allocation.ID, "createdBy": id}})
	}
	for _, kind := range c.Kind.Effects().Accepted {
		drafts = append(drafts, event.Draft{Type: kind, OperationID: id, CorrelationID: correlation, Message: c.Rule.Noun + " requested",
			Payload: map[string]any{"reason": c.Asked.Reason}})
	}
	return append(drafts, event.Draft{Type: lifecycle.EventOperationAccepted, OperationID: id, MemberID: c.MemberID, CorrelationID: correlation,
		Message: c.Rule.Noun + " accepted", Payload: map[string]any{"kind": c.Kind, "deadline": c.Operation.Deadline, "force": c.Force, "targets": c.targets()}})
}

// snapshot is what the audit shows of the state before or after.
func (c *Change) snapshot() map[string]any {
	shown := map[string]any{"status": c.Instance.Status, "desired": c.Wanted}
	if c.Member != nil {
		shown["member"] = map[string]any{"id": c.Member.ID, "status": c.Member.Status, "cordoned": c.Member.Cordoned}
	}
	return shown
}

func (c *Change) audit(ctx context.Context, t *tx.Tx, before map[string]any) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	after := c.snapshot()
	after["operation"], after["kind"], after["force"], after["desired"] = c.Operation.ID, c.Kind, c.Force, c.wantedAfter()
	if c.Asked.RetryOf != "" {
		after["retryOf"] = c.Asked.RetryOf
	}
	if len(c.Attached) > 0 {
		after["attachedProjects"] = c.Attached
	}
	err = audit.Write(ctx, t, audit.Entry{Action: c.idemVerb(), Key: key, Object: object(c.Instance), ObjectID: c.subjectID(),
		Reason: c.Asked.Reason, Before: before, After: after})
	if err != nil || len(c.created) == 0 {
		return err
	}
	made := make([]ids.ID, len(c.created))
	for i, allocation := range c.created {
		made[i] = allocation.ID
	}
	where := authz.Object{TenantID: c.Instance.TenantID, ProjectID: c.Instance.ProjectID}
	return audit.Write(ctx, t, audit.Entry{Action: c.idemVerb(), Key: authz.AllocationCreate, Object: where, ObjectID: c.Instance.ProjectID,
		Reason: c.Asked.Reason, After: map[string]any{"allocations": made, "operation": c.Operation.ID}})
}

// accepted reads back what the change made, now or under an earlier use of its key.
func (c *Change) accepted(ctx context.Context, t *tx.Tx) (*Accepted, error) {
	out := &Accepted{Instance: c.Instance, Member: c.Member}
	if c.Operation == nil {
		op, err := t.Operation.Get(ctx, c.Made.Operation)
		if err != nil {
			return nil, fmt.Errorf("load operation %s: %w", c.Made.Operation, err)
		}
		c.Operation = op
	}
	out.Operation = &operation.View{Operation: c.Operation}
	if len(c.Made.Members) == 0 {
		return out, nil
	}
	members, err := t.Member.Query().Where(dbmember.IDIn(c.Made.Members...)).Order(db.Asc(dbmember.FieldOrdinal, dbmember.FieldID)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the new members of %s: %w", c.Instance.ID, err)
	}
	out.Members = members
	return out, nil
}
