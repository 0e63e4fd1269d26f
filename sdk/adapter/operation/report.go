package operation

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/api"
	"github.com/gpuaas/app-platform/sdk/adapter/internal/wire"
)

const (
	// reportPause is the shortest time between two pushed reports of one run.
	reportPause = 500 * time.Millisecond
	// reportTimeout bounds one pushed report.
	reportTimeout = 5 * time.Second
)

// report pushes the status after changes. A push that fails is not repeated: the platform reads
// the feed as well, and an adapter that cannot push must still complete.
func (r *Run) report(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.poke:
		}
		r.reportOnce(ctx)
		if wire.Pause(ctx, reportPause) != nil {
			return
		}
	}
}

func (r *Run) reportOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	r.op.mu.Lock()
	status := r.op.status
	r.op.mu.Unlock()
	err := r.client.Report(ctx, api.Report{
		OperationID: status.OperationID, Attempt: status.Attempt, Phase: status.Phase,
		Percent: status.Percent, Message: status.Message, Members: status.Members,
	})
	if err != nil && ctx.Err() == nil {
		r.log.Debug("the platform did not accept the report", "error", err)
	}
}
