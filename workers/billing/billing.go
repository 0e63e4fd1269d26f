// Package billing books usage, period by period, for as long as a process has the billing role. Any number of processes may
// do so at once: a period is in one hand at a time, and what a killed process has not committed is not booked.
package billing

import (
	"context"
	"log/slog"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/periodic"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/billing"
)

// Worker books usage.
type Worker struct {
	DB  *tx.DB
	Log *slog.Logger
	// Every is how often it looks.
	Every time.Duration
	// Standard is how tenants without an account are billed.
	Standard billing.Standard
}

// Run works until ctx ends.
func (w *Worker) Run(ctx context.Context) error {
	return periodic.Every(ctx, w.Log, "billing", w.Every, func(ctx context.Context) error {
		_, err := w.Once(ctx)
		return err
	})
}

// Once brings all periods as far as they can go now, and returns how many runs that took. A period that fails keeps no
// other from its turn.
func (w *Worker) Once(ctx context.Context) (runs int, err error) {
	if err := w.open(ctx); err != nil {
		return 0, err
	}
	var due []ids.ID
	err = w.as(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		due, err = billing.Due(ctx, t)
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, period := range due {
		made, failed := w.step(ctx, period)
		if failed != nil {
			err = failed
			w.Log.Warn("billing: a period could not be booked", "period", period, "error", failed)
		}
		if made {
			runs++
		}
	}
	return runs, err
}

func (w *Worker) as(ctx context.Context, do func(context.Context, *tx.Tx) error) error {
	return w.DB.As(ctx, authz.System("billing"), do)
}

// open opens accounts and months, and books credit that has expired.
func (w *Worker) open(ctx context.Context) error {
	var tenants []ids.ID
	err := w.as(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		tenants, err = billing.Tenants(ctx, t)
		return err
	})
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		err := w.as(ctx, func(ctx context.Context, t *tx.Tx) error {
			if err := billing.Advance(ctx, t, tenant, w.Standard); err != nil {
				return err
			}
			_, err := billing.Expire(ctx, t, tenant)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// step books one period in a transaction of its own.
func (w *Worker) step(ctx context.Context, period ids.ID) (made bool, err error) {
	err = w.as(ctx, func(ctx context.Context, t *tx.Tx) error {
		run, err := billing.Step(ctx, t, period)
		made = run != nil
		return err
	})
	return made && err == nil, err
}
