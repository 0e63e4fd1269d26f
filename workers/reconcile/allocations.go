package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

// Bounds of looking after allocations.
const (
	requestedFor   = "10 minutes" // an allocation that was not bound within has failed
	maxAllocations = 200          // that one look changes
)

// allocations frees those whose instance is released, and fails those that no node was found for.
func (r *Reconciler) allocations(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	return errors.Join(r.freeAllocations(ctx), r.failAllocations(ctx))
}

// freeAllocations unbinds allocations from instances of which nothing is left. One that holds an orphan
// stays until that is resolved.
func (r *Reconciler) freeAllocations(ctx context.Context) error {
	freed, err := r.change(ctx, `UPDATE allocation SET instance_id = NULL WHERE id IN (
		SELECT a.id FROM allocation a JOIN instance i ON i.id = a.instance_id
		WHERE i.released_at IS NOT NULL AND a.released_at IS NULL
			AND NOT EXISTS (SELECT FROM orphan o WHERE o.allocation_id = a.id AND o.resolved_at IS NULL)
		ORDER BY a.id LIMIT $1 FOR UPDATE OF a SKIP LOCKED)
		RETURNING id, project_id, coalesce(release_operation_id, '')`)
	if err != nil {
		return fmt.Errorf("free allocations of released instances: %w", err)
	}
	if freed > 0 {
		r.Stats.AllocationsFreed.Add(freed)
		r.Log.Warn("allocations were bound to released instances; they are free now", "allocations", freed)
	}
	return nil
}

func (r *Reconciler) failAllocations(ctx context.Context) error {
	failed, err := r.change(ctx, `UPDATE allocation SET status = 'FAILED' WHERE id IN (
		SELECT a.id FROM allocation a WHERE a.status = 'REQUESTED'
		AND a.created_at < now() - interval '`+requestedFor+`'
		ORDER BY a.id LIMIT $1 FOR UPDATE SKIP LOCKED)
		RETURNING id, project_id, coalesce(created_by_operation_id, '')`)
	if err != nil {
		return fmt.Errorf("fail allocations that no node was found for: %w", err)
	}
	if failed > 0 {
		r.Stats.AllocationsFailed.Add(failed)
		r.Log.Warn("no node was found for allocations in time; they have failed", "allocations", failed)
	}
	return nil
}

// change runs a statement that returns allocations with their projects and the operations that wait for them. It wakes
// both: operations after the commit, since their rows are locked before those of allocations.
func (r *Reconciler) change(ctx context.Context, sql string) (int64, error) {
	type changed struct{ ID, ProjectID, Waiting ids.ID }
	found, err := r.DB.Worker().Query(ctx, sql, maxAllocations)
	if err != nil {
		return 0, err
	}
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[changed])
	if err != nil || len(list) == 0 {
		return 0, err
	}
	var waiting []ids.ID
	for _, one := range list {
		r.DB.Wake(event.ProjectTopic(one.ProjectID))
		if one.Waiting != "" {
			waiting = append(waiting, one.Waiting)
		}
	}
	return int64(len(list)), r.DB.As(ctx, r.actor, func(ctx context.Context, t *tx.Tx) error {
		return queue.Wake(ctx, t, waiting...)
	})
}
