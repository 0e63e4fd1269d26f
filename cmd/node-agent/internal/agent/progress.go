package agent

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/task"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// progressEvery is the least time between two reports of a task's progress.
const progressEvery = time.Second

// progress is how far a task is. The task's goroutines set it; one goroutine sends it.
type progress struct{ done, total atomic.Int64 }

// take notes how far it is, in bytes.
func (p *progress) take(done, total int64) {
	p.done.Store(done)
	p.total.Store(total)
}

// follow reports how far the task is until ctx ends. It skips a report that fails: the next one has a newer number. It
// waits for a report that is under way, so that none comes after the outcome.
func (r *reporter) follow(ctx context.Context, work task.Task, p *progress) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	var sent float64
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		done, total := float64(p.done.Load()), float64(p.total.Load())
		if total > 0 && done != sent {
			sent = done
			r.running(context.WithoutCancel(ctx), work, &gql.ReportNodeTaskInput{ProgressDone: &done,
				ProgressTotal: &total})
		}
	}
}
