package reconcile

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/event"
	"github.com/gpuaas/app-platform/service/operation"
)

const (
	silence   = "15 seconds" // a node not heard for that long is OFFLINE
	taskGrace = "60 seconds" // what a task gets beyond its own time before it counts as lost
	maxTasks  = 500          // tasks that one look ends
)

// nodes marks those whose agents fell silent; an agent's heartbeat brings its node back.
func (r *Reconciler) nodes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	found, err := r.DB.Worker().Query(ctx, `UPDATE compute_node SET status = 'OFFLINE'
		WHERE status = 'ONLINE' AND coalesce(last_seen_at, created_at) < now() - interval '`+silence+`' RETURNING id, name`)
	if err != nil {
		return fmt.Errorf("look for silent nodes: %w", err)
	}
	type node struct {
		ID   ids.ID
		Name string
	}
	silent, err := pgx.CollectRows(found, pgx.RowToStructByPos[node])
	if err != nil {
		return fmt.Errorf("look for silent nodes: %w", err)
	}
	for _, one := range silent {
		r.Log.Warn("a node's agent is not heard any more", "node", one.ID, "name", one.Name)
		r.DB.Wake(event.NodeTopic(one.ID))
	}
	return nil
}

// lost is a task that ends for want of an agent.
type lost struct {
	ID, NodeID  ids.ID
	OperationID *ids.ID
}

// lostSQL finds the tasks of silent nodes whose time is long over.
const lostSQL = `SELECT k.id, k.node_id, k.operation_id FROM node_task k JOIN compute_node n ON n.id = k.node_id
	WHERE k.ended_at IS NULL AND n.status <> 'ONLINE'
	AND coalesce(k.started_at, k.created_at) + k.timeout_seconds * interval '1 second' + interval '` + taskGrace + `' < now()
	ORDER BY k.id LIMIT $1`

// tasks ends those of silent nodes whose time is long over, so that whoever waits can go on. An agent
// that comes back with a result for one of them is told that it ended.
func (r *Reconciler) tasks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	found, err := r.DB.Worker().Query(ctx, lostSQL, maxTasks)
	if err != nil {
		return fmt.Errorf("look for lost tasks: %w", err)
	}
	gone, err := pgx.CollectRows(found, pgx.RowToStructByPos[lost])
	if err != nil || len(gone) == 0 {
		return err
	}
	return r.DB.As(ctx, r.actor, func(ctx context.Context, t *tx.Tx) error { return end(ctx, t, gone) })
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
	if err := operation.Wake(ctx, t, waiting...); err != nil {
		return err
	}
	_, err := t.Exec(ctx, `UPDATE node_task SET state = 'TIMED_OUT', ended_at = $2,
		message = CASE WHEN state = 'PENDING' THEN 'no agent took it in time' ELSE 'its agent was not heard again' END
		WHERE id = ANY ($1) AND ended_at IS NULL`, tasks, t.Now)
	if err != nil {
		return fmt.Errorf("end lost tasks: %w", err)
	}
	return nil
}
