package reconcile

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

// Bounds of looking at tasks.
const (
	taskGrace   = "60 seconds" // what a task gets beyond its own time before it counts as lost
	onlineGrace = "10 minutes" // and what it gets when its agent is heard all the while
	maxTasks    = 500          // tasks that one look ends
)

// lost is a task that ends for want of an agent.
type lost struct {
	ID, NodeID  ids.ID
	OperationID *ids.ID
}

// lostSQL finds the tasks whose time has long passed: soon those of silent nodes, late those that the agent
// of an online node has lost.
const lostSQL = `SELECT k.id, k.node_id, k.operation_id FROM node_task k JOIN compute_node n ON n.id = k.node_id
	WHERE k.ended_at IS NULL AND coalesce(k.started_at, k.created_at) + k.timeout_seconds * interval '1 second'
		+ CASE WHEN n.status = 'ONLINE' THEN interval '` +
	onlineGrace + `' ELSE interval '` + taskGrace + `' END < now()
	ORDER BY k.id LIMIT $1`

// tasks ends those whose time has long passed, so that what waits for them can go on. An agent that comes
// back with a result for one of them is answered that it has ended.
func (r *Reconciler) tasks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	found, err := r.DB.Worker().Query(ctx, lostSQL, maxTasks)
	if err != nil {
		return fmt.Errorf("find lost tasks: %w", err)
	}
	gone, err := pgx.CollectRows(found, pgx.RowToStructByPos[lost])
	if err != nil || len(gone) == 0 {
		return err
	}
	if err := r.DB.As(ctx, r.actor, func(ctx context.Context, t *tx.Tx) error {
		return end(ctx, t, gone)
	}); err != nil {
		return err
	}
	r.Stats.TasksEnded.Add(int64(len(gone)))
	return nil
}

// end ends lost tasks. Their operations are woken first, in the order that locks are taken in.
func end(ctx context.Context, t *tx.Tx, gone []lost) error {
	var tasks, waiting []ids.ID
	for _, one := range gone {
		tasks = append(tasks, one.ID)
		if one.OperationID != nil && !slices.Contains(waiting, *one.OperationID) {
			waiting = append(waiting, *one.OperationID)
		}
		t.Wake(event.TaskTopic(one.ID), event.NodeTopic(one.NodeID))
	}
	if err := queue.Wake(ctx, t, waiting...); err != nil {
		return err
	}
	_, err := t.Exec(ctx, `UPDATE node_task SET state = 'TIMED_OUT', ended_at = $2,
		message = CASE WHEN state = 'PENDING' THEN 'no agent took it in time' ELSE 'its agent did not report again' END
		WHERE id = ANY ($1) AND ended_at IS NULL`, tasks, t.Now)
	if err != nil {
		return fmt.Errorf("end lost tasks: %w", err)
	}
	return nil
}
