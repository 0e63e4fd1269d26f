package webhook

import (
	"context"
	"fmt"

	"github.com/riverqueue/river"

	"github.com/gpuaas/app-platform/workers/chores"
)

// The bounds of one run: 20 statements of 1,000 rows.
const (
	forgetPage  = 1_000
	forgetPages = 20
)

// forget is the job that deletes old deliveries.
type forget struct{}

// Kind implements river.JobArgs.
func (forget) Kind() string { return "webhook_forget" }

// InsertOpts implements river.JobArgsWithInsertOpts: there is one at a time, and one that fails comes again by itself.
func (forget) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queue, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByState: chores.Live()}}
}

// forgetter does jobs of kind forget.
type forgetter struct {
	river.WorkerDefaults[forget]
	*Worker
}

// Work forgets deliveries that were taken or given up more than 30 days ago.
func (f *forgetter) Work(ctx context.Context, _ *river.Job[forget]) error {
	for range forgetPages {
		gone, err := f.DB.Worker().Exec(ctx, `DELETE FROM webhook_delivery WHERE id IN (SELECT id FROM webhook_delivery
			WHERE updated_at < now() - interval '`+
			keepFor+`' AND state <> 'PENDING' ORDER BY updated_at LIMIT $1 FOR UPDATE SKIP LOCKED)`, forgetPage)
		if err != nil {
			return fmt.Errorf("forget old webhook deliveries: %w", err)
		}
		if gone.RowsAffected() < forgetPage {
			return nil
		}
	}
	return nil
}
