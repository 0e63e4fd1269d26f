package steps

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	dballocation "github.com/gpuaas/app-platform/ent/generated/db/allocation"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/queue"
	"github.com/gpuaas/app-platform/service/ledger/roles"
	"github.com/gpuaas/app-platform/service/orphan"
	"github.com/gpuaas/app-platform/workers/engine"
	"github.com/gpuaas/app-platform/workers/parts"
)

// decommission tears an instance down and ends only when the agents find nothing of it left. If it
// fails, the instance stays as it is and another decommission may be requested.
func (w *work) decommission() engine.Kind {
	return engine.Kind{
		Kind: lifecycle.InstanceDecommission,
		Steps: []engine.Step{w.asPlanned(w.prepareDecommission()), yields(w.dispatch()), yields(w.Await()),
			w.residueOfAll()},
		Complete: w.torndown,
		OnFail: func(ctx context.Context, t *tx.Tx, _ *engine.Context, locked *engine.Locked,
			_ operation.Failure) error {
			return errors.Join(unheard(ctx, t, locked), queue.WakeReleases(ctx, t, locked.Instance.ID))
		},
		Abandon: w.Abandon,
	}
}

func (w *work) prepareDecommission() engine.Step {
	return engine.Step{
		Name: "prepare", Title: "stopping the instance", Percent: 5, Owner: operation.OwnerPlatform,
		Run: func(ctx context.Context, c *engine.Context) (engine.Result, error) {
			err := c.Write(ctx, func(ctx context.Context, t *tx.Tx, locked *engine.Locked) error {
				return stop(ctx, t, locked)
			})
			return engine.Done(nil), err
		},
	}
}

// stop takes the instance and its members out of service. An instance that is lost for service
// stays FAILED.
func stop(ctx context.Context, t *tx.Tx, locked *engine.Locked) error {
	batch := &pgx.Batch{}
	if locked.Instance.Status.CanMove(lifecycle.InstanceStopping) == nil {
		batch.Queue(`UPDATE instance SET status = 'STOPPING' WHERE id = $1`, locked.Instance.ID)
		locked.Instance.Status = lifecycle.InstanceStopping
	}
	batch.Queue(`UPDATE member SET status = 'REMOVING', updated_at = $2, last_operation_id = $3, correlation_id = $4
		WHERE instance_id = $1 AND status NOT IN ('REMOVING',
		'REMOVED')`, locked.Instance.ID, t.Now, locked.Op.ID, locked.Op.CorrelationID)
	batch.Queue(`UPDATE operation SET dispatch_attempt = 1 WHERE id = $1 AND dispatch_attempt = 0`, locked.Op.ID)
	locked.Op.DispatchAttempt = max(locked.Op.DispatchAttempt, 1)
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("stop %s: %w", locked.Instance.ID, err)
	}
	return roles.Recount(ctx, t, locked.Instance.ID)
}

// residueOfAll sweeps all members, and waits for what earlier operations have left of others: unless
// force is used, nothing of the instance is left at the end.
func (w *work) residueOfAll() engine.Step {
	step := w.Residue(nil)
	sweepAll := step.Run
	step.Run = func(ctx context.Context, c *engine.Context) (engine.Result, error) {
		if _, forced := c.ForcedSince(); forced {
			return sweepAll(ctx, c)
		}
		var open int
		var message *string
		err := c.DB().Worker().QueryRow(ctx,
			`SELECT count(*), min(message) FROM orphan WHERE instance_id = $1
				AND resolved_at IS NULL`, c.Op.InstanceID).
			Scan(&open, &message)
		if err != nil {
			return engine.Result{}, fmt.Errorf("find orphans: %w", err)
		}
		if open > 0 {
			return engine.Wait(w.Pace.Poll, fmt.Sprintf("waits for what earlier operations have left (%d): %s",
				open, *message),
				parts.ResidueCause), nil
		}
		return sweepAll(ctx, c)
	}
	return step
}

// torndown records that nothing is left: members REMOVED, the instance released, its allocations free.
// By force it may be that something is left: then the instance, and the allocations where it is, are not
// released before that is removed.
func (w *work) torndown(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked) (any, string, error) {
	instance := locked.Instance.ID
	members, err := t.Member.Query().Where(dbmember.InstanceID(instance),
		dbmember.StatusNEQ(lifecycle.MemberRemoved)).IDs(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("list the members of %s: %w", instance, err)
	}
	bound, err := t.Allocation.Query().Where(dballocation.InstanceID(instance)).IDs(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("list the allocations of %s: %w", instance, err)
	}
	gone, err := w.leave(ctx, t, c, locked, departure{about: members, step: "residue", also: bound})
	if err != nil {
		return nil, "", err
	}
	var word parts.Answered
	if err := c.Evidence("await", &word); err != nil {
		return nil, "", err
	}
	var left int
	err = t.QueryRow(ctx, `WITH open AS (SELECT count(*)::int AS n FROM orphan WHERE instance_id = $1
		AND resolved_at IS NULL)
		UPDATE instance SET status = CASE WHEN status = 'STOPPING' THEN 'STOPPED'
		ELSE status END, health = 'UNKNOWN', health_message = '',
		released_at = CASE WHEN open.n = 0 THEN $2::timestamptz END FROM open WHERE id = $1
		RETURNING open.n`, instance, t.Now).Scan(&left)
	if err != nil {
		return nil, "", fmt.Errorf("release %s: %w", instance, err)
	}
	t.Wake(event.ProjectTopic(locked.Instance.ProjectID))
	locked.Outcome = outcomeOf(c, left)
	return removal{Cleaned: gone.Cleaned, departed: *gone, Adapter: word.Evidence}, removedWords(left),
		roles.Recount(ctx, t, instance)
}

// unheard lists what a teardown that failed may have left on silent nodes: it is torn down there as soon as they are
// back, whether or not another teardown is requested.
func unheard(ctx context.Context, t *tx.Tx, locked *engine.Locked) error {
	if locked.Op.DispatchAttempt == 0 {
		return nil
	}
	found, err := t.Query(ctx, `SELECT m.id, m.component_key, m.ordinal, m.node_id, coalesce(m.allocation_id, ''),
		n.name
		FROM member m JOIN compute_node n ON n.id = m.node_id
		WHERE m.instance_id = $1 AND NOT m.removed AND n.status = 'OFFLINE' ORDER BY m.id`, locked.Instance.ID)
	if err != nil {
		return fmt.Errorf("find members of %s on silent nodes: %w", locked.Instance.ID, err)
	}
	drafts, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (orphan.Draft, error) {
		d := orphan.Draft{Kind: lifecycle.OrphanNodeResidue, OperationID: locked.Op.ID, Owner: operation.OwnerNode,
			CorrelationID: locked.Op.CorrelationID}
		var key, node string
		var ordinal int
		err := row.Scan(&d.MemberID, &key, &ordinal, &d.NodeID, &d.AllocationID, &node)
		d.Message = fmt.Sprintf("%s %d may be left on node %s, whose agent was silent at the deadline", key,
			ordinal, node)
		return d, err
	})
	if err != nil {
		return fmt.Errorf("find members of %s on silent nodes: %w", locked.Instance.ID, err)
	}
	told, err := orphan.Open(ctx, t, locked.Instance, drafts...)
	locked.Emit(told...)
	return err
}
