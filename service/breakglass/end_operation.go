package breakglass

import (
	"context"
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	dboperation "github.com/gpuaas/app-platform/ent/generated/db/operation"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ending"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Ended is the error code of an operation that was ended by break-glass.
const Ended = "BREAK_GLASS"

// EndOperationInput says which operation is ended, and why.
type EndOperationInput struct {
	OperationID      ids.ID
	Reason, Incident string
}

// EndOperation ends an operation that cannot end by itself: FAILED, with outcome UNVERIFIED, since nothing proves how
// far it came. Any worker that holds it is fenced off and its tokens end. What it was creating is FAILED, from where
// the usual verbs take it on; what may be left of that is listed as orphans, which are taken back automatically. Key:
// break_glass.use on the platform.
//
// Faults: INVALID_ARGUMENT at input.reason and input.incident, FORBIDDEN, NOT_FOUND, FAILED_PRECONDITION at
// input.operationId when it has ended.
func (s *Service) EndOperation(ctx context.Context, in EndOperationInput) (*operation.View, error) {
	var input check.Input
	why(&input, in.Reason, in.Incident)
	if err := input.Err(); err != nil {
		return nil, err
	}
	in.Reason = strings.TrimSpace(in.Reason)
	var out *db.Operation
	var actor *authz.Actor
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		actor = t.Actor
		out, err = endOperation(ctx, t, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.flag(ctx, "breakGlassEndOperation", actor, in.OperationID, in.Reason, in.Incident)
	return &operation.View{Operation: out}, nil
}

func endOperation(ctx context.Context, t *tx.Tx, in EndOperationInput) (*db.Operation, error) {
	const action = "breakGlassEndOperation"
	if err := allowed(t, action, in.OperationID); err != nil {
		return nil, err
	}
	instance, op, err := lock(ctx, t, action, in.OperationID)
	if err != nil {
		return nil, err
	}
	if op.EndedAt != nil {
		return nil, fault.New(fault.FailedPrecondition, "the operation has ended: it is %s", op.State).
			At("input.operationId")
	}
	e := &ending.Ending{Tx: t, Op: op, Instance: instance, Why: "its operation was ended by break-glass",
		Failure: operation.Failure{Code: Ended, Owner: operation.OwnerUser,
			Message: "ended " + byWhom(t.Actor, in.Reason)}.Clipped()}
	if err := e.End(ctx); err != nil {
		return nil, err
	}
	if instance != nil {
		if err := event.Append(ctx, t, instance, append([]event.Draft{flagged(t.Actor, op, in)},
			e.Events()...)...); err != nil {
			return nil, err
		}
	}
	t.Wake(event.QueueTopic, event.OperationTopic(op.ID), event.WordTopic(op.ID))
	after, err := t.Operation.Get(ctx, op.ID)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", op.ID, err)
	}
	return after, audit.Write(ctx, t, audit.Entry{
		Action: action, Key: authz.BreakGlassUse, Object: objectOf(op), ObjectID: op.ID, Reason: in.Reason,
		BreakGlass: true,
		Before: map[string]any{"state": op.State, "phase": op.Phase, "claimEpoch": op.ClaimEpoch,
			"claimedBy": op.ClaimedBy},
		After: map[string]any{"state": after.State, "outcome": after.Outcome, "kind": op.Kind,
			"claimEpoch": after.ClaimEpoch,
			"incident":   in.Incident, "failedMembers": len(e.Failed), "orphans": e.Orphans},
	})
}

// lock locks the instance and the operation, in this order.
func lock(ctx context.Context, t *tx.Tx, action string, id ids.ID) (*db.Instance, *db.Operation, error) {
	seen, err := t.Operation.Query().Where(dboperation.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, nil, audit.Missing(t, action, authz.BreakGlassUse, id)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("load operation %s: %w", id, err)
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

// flagged is the break-glass itself on the instance's timeline.
func flagged(actor *authz.Actor, op *db.Operation, in EndOperationInput) event.Draft {
	return event.Draft{Type: lifecycle.EventInstanceBreakGlass, OperationID: op.ID, CorrelationID: op.CorrelationID,
		Message: "operation ended " + byWhom(actor, in.Reason), Payload: map[string]any{"operation": op.ID,
			"kind": op.Kind, "actor": actor.ID, "actorName": actor.Name, "reason": in.Reason, "incident": in.Incident}}
}

// objectOf is what authorisation and audit look at of an operation.
func objectOf(op *db.Operation) authz.Object {
	object := authz.Object{TenantID: op.TenantID, ProjectID: op.ProjectID}
	if op.InstanceID != nil {
		object.InstanceID = *op.InstanceID
	}
	return object
}
