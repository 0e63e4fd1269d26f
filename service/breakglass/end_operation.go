package breakglass

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	dboperation "github.com/gpuaas/app-platform/ent/generated/db/operation"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/queue"
	"github.com/gpuaas/app-platform/service/orphan"
)

// Ended is the error code of an operation that was ended by break-glass.
const Ended = "BREAK_GLASS"

// EndOperationInput says which operation is ended, and why.
type EndOperationInput struct {
	OperationID      ids.ID
	Reason, Incident string
}

// EndOperation ends an operation that cannot end by itself: FAILED, with outcome UNVERIFIED, since nothing
// proves where it stands. Whatever worker holds it is fenced off and its tokens end. What it was making is
// FAILED, from where the usual verbs take it on; what may be left of that is listed as orphans, which are
// taken back by themselves. Key: break_glass.use on the platform.
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
		return nil, fault.New(fault.FailedPrecondition, "the operation has ended: it is %s", op.State).At("input.operationId")
	}
	e := &ending{Tx: t, op: op, instance: instance, failure: operation.Failure{Code: Ended, Owner: operation.OwnerUser,
		Message: "ended " + byWhom(t.Actor, in.Reason)}.Clipped()}
	if err := e.end(ctx); err != nil {
		return nil, err
	}
	if instance != nil {
		if err := e.settle(ctx); err != nil {
			return nil, err
		}
		if err := event.Append(ctx, t, instance, e.events(in)...); err != nil {
			return nil, err
		}
	}
	t.Wake(event.QueueTopic, event.OperationTopic(op.ID), event.WordTopic(op.ID))
	after, err := t.Operation.Get(ctx, op.ID)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", op.ID, err)
	}
	return after, audit.Write(ctx, t, audit.Entry{
		Action: action, Key: authz.BreakGlassUse, Object: e.object(), ObjectID: op.ID, Reason: in.Reason, BreakGlass: true,
		Before: map[string]any{"state": op.State, "phase": op.Phase, "claimEpoch": op.ClaimEpoch, "claimedBy": op.ClaimedBy},
		After: map[string]any{"state": after.State, "outcome": after.Outcome, "kind": op.Kind, "claimEpoch": after.ClaimEpoch,
			"incident": in.Incident, "failedMembers": len(e.failed), "orphans": e.orphans},
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

// ending is an operation on its way to its end.
type ending struct {
	*tx.Tx
	op       *db.Operation
	instance *db.Instance
	failure  operation.Failure
	failed   []*db.Member // that it was making
	orphans  int
	told     []event.Draft
}

func (e *ending) object() authz.Object {
	object := authz.Object{TenantID: e.op.TenantID, ProjectID: e.op.ProjectID}
	if e.op.InstanceID != nil {
		object.InstanceID = *e.op.InstanceID
	}
	return object
}

// end fences the workers off and ends the operation and its steps.
func (e *ending) end(ctx context.Context) error {
	batch := &pgx.Batch{}
	batch.Queue(`UPDATE operation SET claim_epoch = claim_epoch + 1, outcome = $2 WHERE id = $1`, e.op.ID,
		lifecycle.OutcomeUnverified)
	batch.Queue(`UPDATE operation_step SET state = CASE WHEN state = 'PENDING' THEN 'SKIPPED' ELSE 'FAILED' END, ended_at = $2,
		message = CASE WHEN state = 'PENDING' THEN message ELSE $3 END WHERE operation_id = $1 AND state IN ('PENDING', 'RUNNING', 'UNDOING')`,
		e.op.ID, e.Now, e.failure.Message)
	if err := e.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("fence %s: %w", e.op.ID, err)
	}
	return operation.Fail(ctx, e.Tx, e.op, e.failure)
}

// settle leaves the instance and its members where the usual verbs can take them on, and lists what may be
// left of what never came to serve.
func (e *ending) settle(ctx context.Context) error {
	found, err := e.Query(ctx, `UPDATE member SET status = 'FAILED', updated_at = $3, last_operation_id = $2, correlation_id = $4
		WHERE instance_id = $1 AND status IN ('PENDING', 'JOINING') AND (cardinality($5::text[]) = 0 OR id = ANY ($5)) RETURNING `+rows.MemberColumns,
		e.instance.ID, e.op.ID, e.Now, e.op.CorrelationID, e.targets())
	if err != nil {
		return fmt.Errorf("settle the members of %s: %w", e.instance.ID, err)
	}
	if e.failed, err = pgx.CollectRows(found, rows.Member); err != nil {
		return fmt.Errorf("settle the members of %s: %w", e.instance.ID, err)
	}
	if e.op.Kind == lifecycle.InstanceCreate && e.instance.Status.CanMove(lifecycle.InstanceFailed) == nil {
		_, err := e.Exec(ctx, `UPDATE instance SET status = 'FAILED', health = 'UNKNOWN', failure_code = $2, failure_message = $3, failure_owner = $4,
			failure_retryable = $5 WHERE id = $1`, e.instance.ID, e.failure.Code, e.failure.Message, e.failure.Owner, e.failure.Retryable)
		if err != nil {
			return fmt.Errorf("fail %s: %w", e.instance.ID, err)
		}
	}
	if err := operation.RecountRoles(ctx, e.Tx, e.instance.ID); err != nil {
		return err
	}
	if err := e.wakeReleases(ctx); err != nil {
		return err
	}
	return e.leave(ctx)
}

// targets returns the members that the operation acts on, the one that comes in another's place too; none when it acts
// on all.
func (e *ending) targets() []string {
	touched := operation.Touched(e.op)
	out := make([]string, len(touched))
	for i, id := range touched {
		out[i] = string(id)
	}
	return out
}

// leave lists orphans: what may be left on nodes of members that it was making or removing, once it was
// sent to the adapter, and allocations that it had asked for and nothing lives in. What serves stays untouched.
func (e *ending) leave(ctx context.Context) error {
	found, err := e.Query(ctx, `SELECT `+rows.MemberColumns+` FROM member WHERE instance_id = $1 AND node_id IS NOT NULL AND $2
		AND ((status = 'FAILED' AND last_operation_id = $3) OR (status = 'REMOVING' AND (cardinality($4::text[]) = 0 OR id = ANY ($4)))) ORDER BY id`,
		e.instance.ID, e.op.DispatchAttempt > 0, e.op.ID, e.targets())
	if err != nil {
		return fmt.Errorf("look for what %s leaves: %w", e.op.ID, err)
	}
	members, err := pgx.CollectRows(found, rows.Member)
	if err != nil {
		return fmt.Errorf("look for what %s leaves: %w", e.op.ID, err)
	}
	var drafts []orphan.Draft
	for _, member := range members {
		draft := orphan.Draft{Kind: lifecycle.OrphanNodeResidue, OperationID: e.op.ID, MemberID: member.ID,
			NodeID: *member.NodeID,
			Owner:  operation.OwnerNode, CorrelationID: e.op.CorrelationID,
			Message: fmt.Sprintf("something of %s %d may be left on its node: its operation was ended by break-glass",
				member.ComponentKey, member.Ordinal)}
		if member.AllocationID != nil {
			draft.AllocationID = *member.AllocationID
		}
		drafts = append(drafts, draft)
	}
	held, err := e.held(ctx)
	if err != nil {
		return err
	}
	drafts = append(drafts, held...)
	e.told, err = orphan.Open(ctx, e.Tx, e.instance, drafts...)
	e.orphans = len(drafts)
	return err
}

// held are allocations that the operation had asked for, in which nothing lives.
func (e *ending) held(ctx context.Context) ([]orphan.Draft, error) {
	found, err := e.Query(ctx, `SELECT id FROM allocation a WHERE created_by_operation_id = $1 AND status IN ('REQUESTED', 'READY')
		AND NOT EXISTS (SELECT FROM member m WHERE m.allocation_id = a.id AND m.status <> 'REMOVED') ORDER BY id`, e.op.ID)
	if err != nil {
		return nil, fmt.Errorf("look for what %s holds: %w", e.op.ID, err)
	}
	list, err := pgx.CollectRows(found, pgx.RowTo[ids.ID])
	if err != nil {
		return nil, fmt.Errorf("look for what %s holds: %w", e.op.ID, err)
	}
	drafts := make([]orphan.Draft, len(list))
	for i, id := range list {
		drafts[i] = orphan.Draft{Kind: lifecycle.OrphanAllocation, OperationID: e.op.ID, AllocationID: id,
			Owner:         operation.OwnerPlatform,
			CorrelationID: e.op.CorrelationID,
			Message:       "an operation that was ended by break-glass had asked for it, and nothing lives in it"}
	}
	return drafts, nil
}

// wakeReleases tells releases that wait for the instance's end that this will not bring it.
func (e *ending) wakeReleases(ctx context.Context) error {
	found, err := e.Query(ctx, `SELECT o.id FROM operation o JOIN allocation a ON a.id = o.allocation_id
		WHERE a.instance_id = $1 AND o.kind = 'ALLOCATION_RELEASE' AND o.ended_at IS NULL ORDER BY o.id`, e.instance.ID)
	if err != nil {
		return fmt.Errorf("look for releases that wait: %w", err)
	}
	waiting, err := pgx.CollectRows(found, pgx.RowTo[ids.ID])
	if err != nil {
		return fmt.Errorf("look for releases that wait: %w", err)
	}
	return queue.Wake(ctx, e.Tx, waiting...)
}

// events are what the instance's timeline is told, the break-glass itself first.
func (e *ending) events(in EndOperationInput) []event.Draft {
	tell := func(kind lifecycle.EventType, member ids.ID, message string, payload map[string]any) event.Draft {
		return event.Draft{Type: kind, OperationID: e.op.ID, MemberID: member, CorrelationID: e.op.CorrelationID,
			Message: message, Payload: payload}
	}
	out := []event.Draft{tell(lifecycle.EventInstanceBreakGlass, "", "operation ended "+byWhom(e.Actor, in.Reason),
		map[string]any{
			"operation": e.op.ID, "kind": e.op.Kind, "actor": e.Actor.ID, "actorName": e.Actor.Name, "reason": in.Reason,
			"incident": in.Incident})}
	for _, member := range e.failed {
		out = append(out, tell(lifecycle.EventMemberFailed, member.ID, e.failure.Message, e.failure.Payload()))
	}
	if e.op.Kind == lifecycle.InstanceCreate && e.instance.Status.CanMove(lifecycle.InstanceFailed) == nil {
		out = append(out, tell(lifecycle.EventInstanceFailed, "", e.failure.Message, e.failure.Payload()))
	}
	out = append(out, e.told...)
	return append(out, tell(lifecycle.EventOperationFailed, "", e.failure.Message, e.failure.Payload()))
}
