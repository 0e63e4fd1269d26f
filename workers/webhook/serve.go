package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	verbs "github.com/gpuaas/app-platform/service/webhook"
	"github.com/gpuaas/app-platform/workers/chores"
)

// serve is the job that sends what is due of a webhook.
type serve struct {
	WebhookID ids.ID `json:"webhook_id" river:"unique"`
}

// Kind implements river.JobArgs.
func (serve) Kind() string { return "webhook_serve" }

// serveAt are the options of a job at a time, zero for now: there is one of a webhook.
func serveAt(at time.Time) *river.InsertOpts {
	return &river.InsertOpts{Queue: queue, ScheduledAt: at,
		UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: chores.Live()}}
}

// waits reports whether a job has not begun.
func waits(state rivertype.JobState) bool {
	return state == rivertype.JobStateScheduled || state == rivertype.JobStateRetryable
}

// server does jobs of kind serve.
type server struct {
	river.WorkerDefaults[serve]
	*Worker
}

// Work sends what is due, batch by batch, for a turn at most or until the receiver has failed too often in a row, and
// leaves the rest to the webhook's next job.
func (s *server) Work(ctx context.Context, job *river.Job[serve]) error {
	turn := time.Now().Add(s.Pace.Turn)
	failures, sent := 0, 0
	for failures < maxInARow && time.Now().Before(turn) && !s.stopping() {
		batch, err := s.load(ctx, job.Args.WebhookID)
		if err != nil {
			return err
		}
		if len(batch.due) == 0 {
			break
		}
		if batch.row.FailingSince != nil { // one shows whether it answers again
			batch.due, failures = batch.due[:1], maxInARow-1
		}
		results := s.post(ctx, batch)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.settle(ctx, batch.row, results); err != nil {
			return err
		}
		failures, sent = inARow(failures, results), sent+len(results)
	}
	return s.finish(ctx, job, sent)
}

// stopping reports whether the process is about to end.
func (w *Worker) stopping() bool {
	select {
	case <-w.ending:
		return true
	default:
		return false
	}
}

// inARow is how many deliveries have failed one after the other, counted on.
func inARow(before int, results []result) int {
	for _, one := range results {
		if one.ok {
			before = 0
			continue
		}
		before++
	}
	return before
}

// finish completes the job and makes the next one if anything waits, in one transaction and with the webhook locked, so
// that a delivery that comes meanwhile finds either this job at work or a place for another.
func (s *server) finish(ctx context.Context, job *river.Job[serve], sent int) error {
	err := s.DB.As(ctx, s.actor, func(ctx context.Context, t *tx.Tx) error {
		row, err := lock(ctx, t, job.Args.WebhookID)
		if err != nil {
			return err
		}
		if _, err := river.JobCompleteTx[*chores.Driver](ctx, chores.Tx(t), job); err != nil {
			return fmt.Errorf("complete the job: %w", err)
		}
		if row == nil || row.Status != lifecycle.WebhookActive {
			return nil
		}
		if sent >= window/2 { // its window was perhaps full, and has room again
			t.Wake(verbs.Topic(row.ProjectID))
		}
		return s.plan(ctx, t, row)
	})
	if err != nil {
		return fmt.Errorf("finish serving webhook %s: %w", job.Args.WebhookID, err)
	}
	return nil
}

// lock locks a webhook; nil for one that was deleted, or whose project was.
func lock(ctx context.Context, t *tx.Tx, id ids.ID) (*db.Webhook, error) {
	found, err := t.Query(ctx, `SELECT `+rows.WebhookColumns+` FROM webhook WHERE id = $1 AND deleted_at IS NULL
		AND EXISTS (SELECT FROM project p WHERE p.id = webhook.project_id
		AND p.deleted_at IS NULL) FOR UPDATE OF webhook`, id)
	if err != nil {
		return nil, err
	}
	row, err := pgx.CollectExactlyOneRow(found, rows.Webhook)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return row, err
}
