// Package billing books usage, period by period, for as long as a process has the billing role. Any number of processes
// may do so at once: a period is in one hand at a time, and what a killed process has not committed is not booked.
package billing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/metrics"
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
	// After runs once the books are up to date; nil for nothing.
	After func(context.Context) error
	// Metrics counts; nil counts nothing.
	Metrics *metrics.Set

	ledger ledgerLook
}

// Run works until ctx ends.
func (w *Worker) Run(ctx context.Context) error {
	return periodic.Every(ctx, w.Log, "billing", w.Every, func(ctx context.Context) error {
		runs, err := w.Once(ctx)
		w.Metrics.Booked(runs, err)
		err = errors.Join(err, w.ledger.balance(ctx, w.DB, w.Metrics))
		if w.After != nil {
			err = errors.Join(err, w.After(ctx))
		}
		return err
	})
}

// Once brings all books as far as they can go now, and returns how many runs that took and what failed. No tenant and
// no period that fails keeps another from its turn.
func (w *Worker) Once(ctx context.Context) (runs int, err error) {
	failed := w.open(ctx)
	var look *billing.Look
	err = w.as(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
		look, err = billing.Begin(ctx, t)
		return err
	})
	if err != nil {
		return 0, errors.Join(failed.err(), err)
	}
	whole := true
	for _, due := range look.Due {
		made, err := w.step(ctx, due)
		switch {
		case errors.Is(err, billing.ErrBusy):
			whole = false
		case err != nil:
			whole = false
			failed.add("period", due.Period, err)
		case made:
			runs++
		}
	}
	if whole {
		failed.add("look", "", w.as(ctx, look.Done))
	}
	return runs, failed.err()
}

// failures are what went wrong in a look, of which the first few are named.
type failures struct {
	all   []error
	count int
}

// maxNamed bounds the failures that one warning names.
const maxNamed = 10

func (f *failures) add(what string, id ids.ID, err error) {
	if err == nil {
		return
	}
	if f.count++; f.count <= maxNamed {
		f.all = append(f.all, fmt.Errorf("%s %s: %w", what, id, err))
	}
}

func (f *failures) err() error {
	if f.count > maxNamed {
		return errors.Join(append(f.all, fmt.Errorf("and %d more", f.count-maxNamed))...)
	}
	return errors.Join(f.all...)
}

func (w *Worker) as(ctx context.Context, do func(context.Context, *tx.Tx) error) error {
	return w.DB.As(ctx, authz.System("billing"), do)
}

// open opens accounts and months, and books credit that has expired, of the tenants for which there is something to do.
func (w *Worker) open(ctx context.Context) *failures {
	failed := &failures{}
	for after := ids.ID(""); ; {
		var tenants []ids.ID
		err := w.as(ctx, func(ctx context.Context, t *tx.Tx) (err error) {
			tenants, err = billing.Tenants(ctx, t, after)
			return err
		})
		failed.add("tenants after", after, err)
		for _, tenant := range tenants {
			failed.add("tenant", tenant, w.as(ctx, func(ctx context.Context, t *tx.Tx) error {
				if err := billing.Advance(ctx, t, tenant, w.Standard); err != nil {
					return err
				}
				_, err := billing.Expire(ctx, t, tenant)
				return err
			}))
			after = tenant
		}
		if len(tenants) < billing.MaxTenants {
			return failed
		}
	}
}

// step brings one period on in a transaction of its own.
func (w *Worker) step(ctx context.Context, due billing.Due) (made bool, err error) {
	err = w.as(ctx, func(ctx context.Context, t *tx.Tx) error {
		run, err := billing.Step(ctx, t, due)
		made = run != nil
		return err
	})
	return made && err == nil, err
}
