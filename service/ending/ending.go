// Package ending ends operations whose kinds cannot end them: by an operator's decision, or since the database refuses
// for good what the kind writes at its end. Nothing proves how far such an operation came. What it was creating is
// FAILED, from where the usual verbs take it on, and what may be left of that is listed as orphans.
package ending

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/queue"
	"github.com/gpuaas/app-platform/service/ledger/roles"
	"github.com/gpuaas/app-platform/service/orphan"
)

// Ending is a locked operation on its way to an end that proves nothing.
type Ending struct {
	*tx.Tx
	// Op and Instance are locked; Instance is nil when the operation changes none.
	Op       *db.Operation
	Instance *db.Instance
	// Failure is what the operation ends with.
	Failure operation.Failure
	// Why ends the sentences about what is left, such as "its operation was ended by break-glass".
	Why string
	// Failed are the members that the operation was making, once they are settled.
	Failed []*db.Member
	// Orphans is how many orphans were listed.
	Orphans int

	as   lifecycle.OperationState // FAILED when empty
	lost bool                     // the instance is FAILED by this
	told []event.Draft
}

// part is something of an end beside the end itself.
type part struct {
	name string
	do   func(context.Context) error
}

// parts are what an end writes beside itself, in their order.
func (e *Ending) parts() []part {
	all := []part{{"steps", e.steps}}
	if e.Instance == nil {
		return all
	}
	return append(all, part{"members", e.members}, part{"instance", e.instance}, part{"counts", e.counts},
		part{"releases", e.releases}, part{"orphans", e.leave})
}

// End fences the workers off and ends the operation as FAILED with all that belongs to it. Its caller writes what
// Events returns to the timeline.
func (e *Ending) End(ctx context.Context) error {
	if err := e.fence(ctx); err != nil {
		return err
	}
	if err := operation.Fail(ctx, e.Tx, e.Op, e.Failure); err != nil {
		return err
	}
	for _, one := range e.parts() {
		if err := one.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fence takes the operation from the worker that holds it.
func (e *Ending) fence(ctx context.Context) error {
	_, err := e.Exec(ctx, `UPDATE operation SET claim_epoch = claim_epoch + 1, outcome = $2 WHERE id = $1`, e.Op.ID,
		lifecycle.OutcomeUnverified)
	if err != nil {
		return fmt.Errorf("fence %s: %w", e.Op.ID, err)
	}
	return nil
}

// steps leaves no step open.
func (e *Ending) steps(ctx context.Context) error {
	_, err := e.Exec(ctx, `UPDATE operation_step SET state = CASE WHEN state = 'PENDING' THEN 'SKIPPED'
		ELSE 'FAILED' END, ended_at = $2,
		message = CASE WHEN state = 'PENDING' THEN message ELSE $3 END WHERE operation_id = $1
		AND state IN ('PENDING', 'RUNNING', 'UNDOING')`,
		e.Op.ID, e.Now, e.Failure.Message)
	if err != nil {
		return fmt.Errorf("end the steps of %s: %w", e.Op.ID, err)
	}
	return nil
}

// members leaves those that the operation was making where the usual verbs can take them on.
func (e *Ending) members(ctx context.Context) error {
	found, err := e.Query(ctx, `UPDATE member SET status = 'FAILED', updated_at = $3, last_operation_id = $2,
		correlation_id = $4
		WHERE instance_id = $1 AND status IN ('PENDING', 'JOINING') AND (cardinality($5::text[]) = 0 OR id = ANY ($5))
		RETURNING `+rows.MemberColumns,
		e.Instance.ID, e.Op.ID, e.Now, e.Op.CorrelationID, e.targets())
	if err == nil {
		e.Failed, err = pgx.CollectRows(found, rows.Member)
	}
	if err != nil {
		return fmt.Errorf("settle the members of %s: %w", e.Instance.ID, err)
	}
	return nil
}

// instance loses an instance for service that was being launched.
func (e *Ending) instance(ctx context.Context) error {
	if e.Op.Kind != lifecycle.InstanceCreate || e.Instance.Status.CanMove(lifecycle.InstanceFailed) != nil {
		return nil
	}
	_, err := e.Exec(ctx, `UPDATE instance SET status = 'FAILED', health = 'UNKNOWN', failure_code = $2, failure_message
		= $3, failure_owner = $4,
		failure_retryable = $5 WHERE id = $1`, e.Instance.ID, e.Failure.Code, e.Failure.Message, e.Failure.Owner,
		e.Failure.Retryable)
	if err != nil {
		return fmt.Errorf("fail %s: %w", e.Instance.ID, err)
	}
	e.lost = true
	return nil
}

// releases wakes those that wait for the instance's end: this will not bring it.
func (e *Ending) releases(ctx context.Context) error {
	return queue.WakeReleases(ctx, e.Tx, e.Instance.ID)
}

func (e *Ending) counts(ctx context.Context) error {
	return roles.Recount(ctx, e.Tx, e.Instance.ID)
}

// targets returns the members that the operation acts on, the one that comes in another's place too; none when it acts
// on all.
func (e *Ending) targets() []string {
	touched := operation.Touched(e.Op)
	out := make([]string, len(touched))
	for i, id := range touched {
		out[i] = string(id)
	}
	return out
}

// leave lists orphans: what may be left on nodes of members that the operation was creating or removing, once it was
// sent to the adapter, and allocations that it had requested and nothing lives in. What serves stays untouched.
func (e *Ending) leave(ctx context.Context) error {
	residue, err := e.residue(ctx)
	if err != nil {
		return err
	}
	held, err := e.held(ctx)
	if err != nil {
		return err
	}
	drafts := append(residue, held...)
	if e.told, err = orphan.Open(ctx, e.Tx, e.Instance, drafts...); err != nil {
		return err
	}
	e.Orphans = len(drafts)
	return nil
}

// residue are what members may have left on their nodes.
func (e *Ending) residue(ctx context.Context) (drafts []orphan.Draft, err error) {
	found, err := e.Query(ctx, `SELECT `+rows.MemberColumns+` FROM member WHERE instance_id = $1 AND node_id IS NOT NULL
		AND $2
		AND ((status = 'FAILED' AND last_operation_id = $3)
			OR (status IN ('PENDING', 'JOINING', 'REMOVING') AND (cardinality($4::text[]) = 0 OR id = ANY ($4))))
			ORDER BY id`,
		e.Instance.ID, e.Op.DispatchAttempt > 0, e.Op.ID, e.targets())
	if err != nil {
		return nil, fmt.Errorf("find what %s leaves: %w", e.Op.ID, err)
	}
	members, err := pgx.CollectRows(found, rows.Member)
	if err != nil {
		return nil, fmt.Errorf("find what %s leaves: %w", e.Op.ID, err)
	}
	for _, member := range members {
		draft := orphan.Draft{Kind: lifecycle.OrphanNodeResidue, OperationID: e.Op.ID, MemberID: member.ID,
			NodeID: *member.NodeID, Owner: operation.OwnerNode, CorrelationID: e.Op.CorrelationID,
			Message: fmt.Sprintf("something of %s %d may be left on its node: %s", member.ComponentKey,
				member.Ordinal, e.Why)}
		if member.AllocationID != nil {
			draft.AllocationID = *member.AllocationID
		}
		drafts = append(drafts, draft)
	}
	return drafts, nil
}

// held returns allocations that the operation had requested, in which nothing lives.
func (e *Ending) held(ctx context.Context) (drafts []orphan.Draft, err error) {
	found, err := e.Query(ctx, `SELECT id FROM allocation a WHERE created_by_operation_id = $1
		AND status IN ('REQUESTED', 'READY')
		AND NOT EXISTS (SELECT FROM member m WHERE m.allocation_id = a.id AND m.status <> 'REMOVED')
		ORDER BY id`, e.Op.ID)
	if err != nil {
		return nil, fmt.Errorf("find the allocations that %s requested: %w", e.Op.ID, err)
	}
	list, err := pgx.CollectRows(found, pgx.RowTo[ids.ID])
	if err != nil {
		return nil, fmt.Errorf("find the allocations that %s requested: %w", e.Op.ID, err)
	}
	for _, id := range list {
		drafts = append(drafts, orphan.Draft{Kind: lifecycle.OrphanAllocation, OperationID: e.Op.ID, AllocationID: id,
			Owner: operation.OwnerPlatform, CorrelationID: e.Op.CorrelationID,
			Message: "an operation requested it, and no member uses it: " + e.Why})
	}
	return drafts, nil
}

// Events returns the events for the instance's timeline, the operation's end last.
func (e *Ending) Events() []event.Draft {
	tell := func(kind lifecycle.EventType, member ids.ID) event.Draft {
		return event.Draft{Type: kind, OperationID: e.Op.ID, MemberID: member, CorrelationID: e.Op.CorrelationID,
			Message: e.Failure.Message, Payload: e.Failure.Payload()}
	}
	var out []event.Draft
	for _, member := range e.Failed {
		out = append(out, tell(lifecycle.EventMemberFailed, member.ID))
	}
	if e.lost {
		out = append(out, tell(lifecycle.EventInstanceFailed, ""))
	}
	out = append(out, e.told...)
	if e.as == lifecycle.OperationCanceled {
		return append(out, tell(lifecycle.EventOperationCanceled, ""))
	}
	return append(out, tell(lifecycle.EventOperationFailed, ""))
}
