// Package periodic repeats background work.
package periodic

import (
	"context"
	"log/slog"
	"time"

	"github.com/gpuaas/app-platform/internal/panics"
	"github.com/gpuaas/app-platform/internal/telemetry"
)

// Every works at once, and again after each pause, until ctx ends. Work that fails or panics is logged, and its next
// turn is as any other.
func Every(ctx context.Context, log *slog.Logger, what string, pause time.Duration,
	work func(context.Context) error) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		began := time.Now()
		err := panics.Caught(log, what, func() error { return work(ctx) })
		if ctx.Err() != nil {
			return nil
		}
		telemetry.Turn(ctx, what, began, err != nil)
		if err != nil {
			log.Warn("background work failed; it is tried again", "what", what, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
