package billing

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/billing/count"
	"github.com/gpuaas/app-platform/service/price"
)

// mark is which commits count: a clock would miss what a transaction that is still open wrote before it.
type mark struct {
	generation int64
	watermark  string
}

func newMark(ctx context.Context, t *tx.Tx) (m mark, err error) {
	err = t.QueryRow(ctx, `SELECT platform.generation(), pg_snapshot_xmin(pg_current_snapshot())::text`).
		Scan(&m.generation,
			&m.watermark)
	return m, err
}

// rate rates all usage of a period up to an instant, as it was at the mark.
func rate(ctx context.Context, t *tx.Tx, p *Period, eventTo time.Time, at mark) (*rating.Result, error) {
	prices, err := pricesAt(ctx, t, p, eventTo, at)
	if err != nil {
		return nil, err
	}
	return rateWith(ctx, t, p, eventTo, at, prices)
}

// rateWith is rate with other prices.
func rateWith(ctx context.Context, t *tx.Tx, p *Period, eventTo time.Time, at mark,
	prices []rating.Price) (*rating.Result, error) {
	engine, err := rating.New(rating.Engine{Tenant: string(p.TenantID), Currency: p.Currency, From: p.StartsAt,
		To:     eventTo,
		Prices: prices})
	if err != nil {
		return nil, err
	}
	if err := count.Usage(ctx, t, engine, at.generation, at.watermark); err != nil {
		return nil, err
	}
	return engine.Result(), nil
}

// pricesAt reads the price book as it was at the mark, as far as it concerns the tenant in the period.
func pricesAt(ctx context.Context, t *tx.Tx, p *Period, eventTo time.Time, at mark) ([]rating.Price, error) {
	versions, err := many(ctx, t, price.ScanVersion, `SELECT `+price.Columns+` FROM price_version
		WHERE currency = $1 AND (tenant_id IS NULL OR tenant_id = $2) AND valid_from < $4 AND (valid_to IS NULL OR valid_to > $3)
			AND platform.before_mark(recorded_generation, recorded_xid, $5, $6::text::xid8)
			AND (superseded_xid IS NULL OR NOT platform.before_mark(superseded_generation, superseded_xid, $5,
			$6::text::xid8))`,
		p.Currency, p.TenantID, p.StartsAt, eventTo, at.generation, at.watermark)
	prices := make([]rating.Price, len(versions))
	for i, v := range versions {
		prices[i] = v.Price
	}
	return prices, err
}
