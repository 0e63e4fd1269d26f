package billing

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
)

// PeriodOf reads a period of a project's tenant. NOT_FOUND for one that is not, or that the caller cannot see.
func PeriodOf(ctx context.Context, t *tx.Tx, period, project ids.ID) (*Period, error) {
	p, err := one(ctx, t, scanPeriod, `SELECT `+periodColumns+` FROM billing_period WHERE id = $1
		AND tenant_id = (SELECT tenant_id FROM project WHERE id = $2)`, period, project)
	if err == nil && p == nil {
		err = fault.NoSuch()
	}
	return p, err
}

// RunsOf reads the runs of a period by id: none for a caller that does not see the whole tenant.
func RunsOf(ctx context.Context, t *tx.Tx, period ids.ID) (map[ids.ID]*Run, error) {
	found, err := many(ctx, t, scanRun, `SELECT `+runColumns+` FROM billing_run WHERE period_id = $1`, period)
	runs := make(map[ids.ID]*Run, len(found))
	for _, run := range found {
		runs[run.ID] = run
	}
	return runs, err
}

// EngineOf returns an engine with the prices of a period as its last run saw them, and that run; nil, and the prices of
// now, for a caller that does not see the whole tenant.
func EngineOf(ctx context.Context, t *tx.Tx, p *Period) (*rating.Engine, *Run, error) {
	last, err := one(ctx, t, scanRun, `SELECT `+runColumns+` FROM billing_run WHERE period_id = $1 ORDER BY seq DESC
		LIMIT 1`, p.ID)
	if err != nil {
		return nil, nil, err
	}
	at, eventTo := mark{}, earlier(t.Now, p.EndsAt)
	if last != nil {
		at, eventTo = last.mark(), last.EventTo
	} else if at, err = newMark(ctx, t); err != nil {
		return nil, nil, err
	}
	prices, err := pricesAt(ctx, t, p, eventTo, at)
	if err != nil {
		return nil, nil, err
	}
	engine, err := rating.New(rating.Engine{Tenant: string(p.TenantID), Currency: p.Currency, From: p.StartsAt,
		To: eventTo, Prices: prices})
	return engine, last, err
}
