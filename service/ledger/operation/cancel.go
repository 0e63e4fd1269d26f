package operation

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	dboperation "github.com/gpuaas/app-platform/ent/generated/db/operation"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// marked are the kinds that change something as soon as they are accepted: members, or the wanted numbers of members. A
// worker undoes it, even if the operation was never sent.
var marked = map[lifecycle.OperationKind]bool{
	lifecycle.InstanceCreate: true, lifecycle.MembersAdd: true, lifecycle.MemberReplace: true,
	lifecycle.MemberRemove: true,
}

// instead is what to do about an operation that cannot be stopped.
var instead = map[lifecycle.OperationKind]string{
	lifecycle.InstanceDecommission: "a teardown cannot be stopped: let it end and launch again",
	lifecycle.AllocationRelease:    "a release cannot be stopped: let it end and request capacity again",
}

// Cancel requests an operation to stop, if that is still safe. One that was never claimed and has left nothing behind
// is CANCELED at once; any other is CANCELING until the adapter has reported whether it is too late. Requested again,
// it stays as it is. Cancel requires operation.cancel.
//
// Faults: INVALID_ARGUMENT at input.reason, NOT_FOUND, FORBIDDEN, FAILED_PRECONDITION when it has ended
// or cannot be stopped, with what to do instead.
func Cancel(ctx context.Context, database *tx.DB, id ids.ID, reason string) (*View, error) {
	wrong := &check.Input{}
	wrong.Reason("input.reason", reason)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	var out *db.Operation
	err := database.Write(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		out, err = CancelIn(ctx, t, id, reason)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &View{Operation: out}, nil
}

// CancelIn is Cancel in a transaction of the caller's, for a cancel by the platform itself.
func CancelIn(ctx context.Context, t *tx.Tx, id ids.ID, reason string) (*db.Operation, error) {
	instance, op, err := lockToCancel(ctx, t, id)
	if err != nil || op.State == lifecycle.OperationCanceling || op.State == lifecycle.OperationCompensating {
		return op, err
	}
	if err := cancelable(op); err != nil {
		return nil, err
	}
	return op, cancel(ctx, t, instance, op, reason)
}

// lockToCancel authorises, and locks the instance and the operation, in this order.
func lockToCancel(ctx context.Context, t *tx.Tx, id ids.ID) (*db.Instance, *db.Operation, error) {
	const action = "cancelOperation"
	seen, err := t.Operation.Query().Where(dboperation.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, nil, audit.Missing(t, action, authz.OperationCancel, id)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("load operation %s: %w", id, err)
	}
	if err := audit.Require(t, action, authz.OperationCancel, (&View{Operation: seen}).object(), id); err != nil {
		return nil, nil, err
	}
	var instance *db.Instance
	if seen.InstanceID != nil {
		if instance, err = t.Instance.Query().Where(dbinstance.ID(*seen.InstanceID)).ForUpdate().Only(ctx); err != nil {
			return nil, nil, fmt.Errorf("lock instance %s: %w", *seen.InstanceID, err)
		}
	}
	op, err := t.Operation.Query().Where(dboperation.ID(id)).ForUpdate().Only(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("lock operation %s: %w", id, err)
	}
	return instance, op, nil
}

func cancelable(op *db.Operation) error {
	switch {
	case op.EndedAt != nil:
		return fault.New(fault.FailedPrecondition, "the operation has ended: it is %s", op.State).
			At("input.operationId")
	case !op.Kind.Effects().Cancelable:
		return fault.New(fault.FailedPrecondition, "%s", instead[op.Kind]).At("input.operationId")
	}
	return nil
}

// cancel writes the request, and the end where nothing else is to be done.
func cancel(ctx context.Context, t *tx.Tx, instance *db.Instance, op *db.Operation, reason string) error {
	before := op.State
	draft := event.Draft{Type: lifecycle.EventOperationCanceling, OperationID: op.ID,
		Message:       "stop requested by " + t.Actor.Name,
		CorrelationID: op.CorrelationID, Payload: map[string]any{"kind": op.Kind, "reason": reason}}
	write := ask
	if op.State == lifecycle.OperationPending && op.ClaimedBy == nil && op.DispatchAttempt == 0 && !marked[op.Kind] {
		write = endUnbegun
		draft.Type, draft.Message = lifecycle.EventOperationCanceled, "canceled by "+t.Actor.Name+" before it began"
	}
	if err := note(ctx, t, op, reason); err != nil {
		return err
	}
	if err := write(ctx, t, op); err != nil {
		return fmt.Errorf("cancel %s: %w", op.ID, err)
	}
	t.Wake(event.OperationTopic(op.ID), event.WordTopic(op.ID), event.QueueTopic)
	if instance != nil {
		if err := event.Append(ctx, t, instance, draft); err != nil {
			return err
		}
	}
	return audit.Write(ctx, t, audit.Entry{
		Action: "cancelOperation", Key: authz.OperationCancel, Object: (&View{Operation: op}).object(), ObjectID: op.ID,
		Reason: reason,
		Before: map[string]any{"state": before}, After: map[string]any{"state": op.State, "kind": op.Kind},
	})
}

// note keeps who requested the cancel, and makes the operation due.
func note(ctx context.Context, t *tx.Tx, op *db.Operation, reason string) error {
	_, err := t.Exec(ctx, `UPDATE operation SET cancel_requested_at = $2, cancel_requester = $3, cancel_reason = $4,
		cancel_message = '',
		next_run_at = LEAST(next_run_at, $2) WHERE id = $1`, op.ID, t.Now, t.Actor.Name, reason)
	if err != nil {
		return fmt.Errorf("note the cancel of %s: %w", op.ID, err)
	}
	op.CancelRequestedAt, op.CancelRequester, op.CancelReason, op.CancelMessage = &t.Now, t.Actor.Name, reason, ""
	return nil
}

// ask moves the operation to CANCELING: a worker cancels it.
func ask(ctx context.Context, t *tx.Tx, op *db.Operation) error {
	for _, state := range []lifecycle.OperationState{lifecycle.OperationRunning, lifecycle.OperationCanceling} {
		if op.State == state {
			continue
		}
		if err := op.State.CanMove(state); err != nil {
			return err
		}
		_, err := t.Exec(ctx, `UPDATE operation SET state = $2, started_at = coalesce(started_at, $3)
			WHERE id = $1`, op.ID, state, t.Now)
		if err != nil {
			return err
		}
		op.State = state
	}
	return nil
}

// endUnbegun ends what never began.
func endUnbegun(ctx context.Context, t *tx.Tx, op *db.Operation) error {
	failure := Failure{Code: string(fault.Canceled), Message: "canceled by " + t.Actor.Name + " before it began",
		Owner: OwnerUser, Retryable: true}
	if err := Canceled(ctx, t, op, failure); err != nil {
		return err
	}
	_, err := t.Exec(ctx, `UPDATE operation SET cancel_message = $2, claim_epoch = claim_epoch + 1
		WHERE id = $1`, op.ID, failure.Message)
	op.State, op.EndedAt, op.Message, op.CancelMessage = lifecycle.OperationCanceled, &t.Now, failure.Message,
		failure.Message
	op.ErrorCode, op.ErrorMessage, op.ErrorOwner, op.ErrorRetryable = failure.Code, failure.Message, failure.Owner,
		failure.Retryable
	return err
}

// TargetIds are the members that the operation acts on.
func (v *View) TargetIds() []ids.ID {
	if v.Targets == nil {
		return []ids.ID{}
	}
	return v.Targets
}
