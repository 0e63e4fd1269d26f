package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ending"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

// Bounds of looking for what is stuck.
const (
	deadSilence  = 30 * time.Second // a process silent for longer has lost its claims; its peers notice within 12 s
	overdueAfter = "60 seconds"     // due for longer, with live workers
	endedGrace   = "30 seconds"     // what the tasks of an operation that has ended get to end by themselves
	maxOverdue   = "10000"          // operations counted
	maxWoken     = 500              // operations woken, and tasks canceled, at once
	bareLately   = "1 day"          // for how long an operation that ended bare is counted
	failedTimes  = 10               // tries in a row after which an operation counts as failing
)

// stuck looks for operations that would not go on by themselves: claims of dead processes, sleepers past
// their deadline, a queue that is not being worked off, and tasks that outlive their operation.
func (r *Reconciler) stuck(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	return errors.Join(r.freeClaims(ctx), r.wakeSleepers(ctx), r.countOverdue(ctx), r.countRefused(ctx),
		r.cancelOutlived(ctx))
}

// freeClaims is behind what every process does for its peers; it takes at most 1,000.
func (r *Reconciler) freeClaims(ctx context.Context) error {
	freed, err := queue.ReleaseDead(ctx, r.DB.Worker(), deadSilence)
	if err != nil {
		return err
	}
	if freed > 0 {
		r.Stats.ClaimsFreed.Add(int64(freed))
		r.Log.Warn("operations were claimed by processes that had died", "operations", freed)
		r.DB.Wake(event.QueueTopic)
	}
	return nil
}

// wakeSleepers makes operations due whose deadline has passed and that nothing would look at soon. Those
// that are taken back or go on by force have times of their own.
func (r *Reconciler) wakeSleepers(ctx context.Context) error {
	tag, err := r.DB.Worker().Exec(ctx, `UPDATE operation SET next_run_at = now() WHERE id IN (
		SELECT id FROM operation WHERE ended_at IS NULL AND claimed_by IS NULL AND next_run_at > now() + interval '5 seconds'
			AND deadline < now() - interval '`+
		overdueAfter+`' AND forced_at IS NULL AND NOT force AND state <> 'COMPENSATING'
		ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)`, maxWoken)
	if err != nil {
		return fmt.Errorf("wake operations past their deadline: %w", err)
	}
	if woken := tag.RowsAffected(); woken > 0 {
		r.Stats.SleepersWoken.Add(woken)
		r.Log.Warn("operations slept past their deadline; they are woken", "operations", woken)
		r.DB.Wake(event.QueueTopic)
	}
	return nil
}

// countOverdue notes whether the queue is being worked off, and how many operations fail again and again:
// their blockers say why.
func (r *Reconciler) countOverdue(ctx context.Context) error {
	var overdue, oldest, failing int64
	err := r.DB.Worker().QueryRow(ctx, `SELECT count(*), coalesce(extract(epoch FROM now() - min(next_run_at)),
		0)::bigint
		FROM (
		SELECT next_run_at FROM operation WHERE ended_at IS NULL AND claimed_by IS NULL
		AND next_run_at < now() - interval '`+overdueAfter+`'
		ORDER BY next_run_at, id LIMIT `+maxOverdue+`) late`).Scan(&overdue, &oldest)
	if err == nil {
		err = r.DB.Worker().QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM operation
			WHERE ended_at IS NULL AND claimed_by IS NULL AND failures >= $1
			LIMIT `+maxOverdue+`) again`, failedTimes).Scan(&failing)
	}
	if err != nil {
		return fmt.Errorf("count overdue operations: %w", err)
	}
	if before := r.Stats.Overdue.Swap(overdue); overdue > 0 && before == 0 {
		r.Log.Warn("operations are overdue though workers run", "operations", overdue, "oldest_seconds", oldest)
	}
	if before := r.Stats.Failing.Swap(failing); failing > 0 && before == 0 {
		r.Log.Warn("steps of operations fail again and again", "operations", failing)
	}
	r.Stats.OldestDue.Store(oldest)
	if overdue > 0 {
		r.DB.Wake(event.QueueTopic)
	}
	return nil
}

// countRefused notes the operations whose end is refused, and those that ended lately with no more than their end. Each
// is a fault of the platform's own, or of an operator who changed its database.
func (r *Reconciler) countRefused(ctx context.Context) error {
	var open, bare int64
	err := r.DB.Worker().QueryRow(ctx, `SELECT count(*) FILTER (WHERE ended_at IS NULL),
		count(*) FILTER (WHERE error_code
		= $1
		AND ended_at > now() - interval '`+bareLately+`') FROM (SELECT ended_at, error_code FROM operation WHERE end_refusal IS NOT NULL
		ORDER BY created_at DESC LIMIT `+maxOverdue+`) refused`, ending.Refused).Scan(&open, &bare)
	if err != nil {
		return fmt.Errorf("count refused ends: %w", err)
	}
	if before := r.Stats.EndsRefused.Swap(open); open > 0 && before == 0 {
		r.Log.Warn("ends of operations are refused", "operations", open)
	}
	r.Stats.EndedBare.Store(bare)
	return nil
}

// outlivedSQL finds open tasks of operations that have ended.
const outlivedSQL = `SELECT k.id, k.node_id FROM node_task k JOIN operation o ON o.id = k.operation_id
	WHERE k.ended_at IS NULL AND NOT k.cancel_requested AND o.ended_at < now() - interval '` + endedGrace +
	`' ORDER BY k.id LIMIT $1`

// cancelOutlived asks agents to end the tasks of operations that have ended: no one waits for them, and
// they could bring back what a later operation takes away.
func (r *Reconciler) cancelOutlived(ctx context.Context) error {
	found, err := r.DB.Worker().Query(ctx, outlivedSQL, maxWoken)
	if err != nil {
		return fmt.Errorf("find tasks of ended operations: %w", err)
	}
	type task struct{ ID, NodeID ids.ID }
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[task])
	if err != nil {
		return fmt.Errorf("find tasks of ended operations: %w", err)
	}
	if len(list) == 0 {
		return nil
	}
	return r.DB.As(ctx, r.actor, func(ctx context.Context, t *tx.Tx) error {
		var wanted []ids.ID
		for _, one := range list {
			wanted = append(wanted, one.ID)
			t.Wake(event.NodeTopic(one.NodeID), event.TaskTopic(one.ID))
		}
		tag, err := t.Exec(ctx, `UPDATE node_task SET cancel_requested = true WHERE id = ANY ($1) AND ended_at IS NULL`,
			wanted)
		if err != nil {
			return fmt.Errorf("cancel tasks of ended operations: %w", err)
		}
		r.Stats.TasksOutlived.Add(tag.RowsAffected())
		r.Log.Info("tasks outlived their operations; their agents are to end them", "tasks", tag.RowsAffected())
		return nil
	})
}
