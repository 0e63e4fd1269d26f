package billing

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/price"
)

// mark is which commits count: a clock would miss what a transaction that is still open wrote before it.
type mark struct {
	generation int64
	watermark  string
}

func newMark(ctx context.Context, t *tx.Tx) (m mark, err error) {
	err = t.QueryRow(ctx, `SELECT platform.generation(), pg_snapshot_xmin(pg_current_snapshot())::text`).Scan(&m.generation,
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
func rateWith(ctx context.Context, t *tx.Tx, p *Period, eventTo time.Time, at mark, prices []rating.Price) (*rating.Result, error) {
	engine, err := rating.New(rating.Engine{Tenant: string(p.TenantID), Currency: p.Currency, From: p.StartsAt, To: eventTo,
		Prices: prices})
	if err != nil {
		return nil, err
	}
	if err := count(ctx, t, p, engine, at); err != nil {
		return nil, err
	}
	return engine.Result(), nil
}

// pricesAt reads the price book as it was at the mark, as far as it concerns the tenant in the period.
func pricesAt(ctx context.Context, t *tx.Tx, p *Period, eventTo time.Time, at mark) ([]rating.Price, error) {
	versions, err := many(ctx, t, price.ScanVersion, `SELECT `+price.Columns+` FROM price_version
		WHERE currency = $1 AND (tenant_id IS NULL OR tenant_id = $2) AND valid_from < $4 AND (valid_to IS NULL OR valid_to > $3)
			AND platform.before_mark(recorded_generation, recorded_xid, $5, $6::text::xid8)
			AND (superseded_xid IS NULL OR NOT platform.before_mark(superseded_generation, superseded_xid, $5, $6::text::xid8))`,
		p.Currency, p.TenantID, p.StartsAt, eventTo, at.generation, at.watermark)
	prices := make([]rating.Price, len(versions))
	for i, v := range versions {
		prices[i] = v.Price
	}
	return prices, err
}

// usageSQL adds up what lies between two instants at which prices change, and lists by itself what reaches over one.
const usageSQL = `WITH used AS (
		SELECT u.*, width_bucket(u.from_at, $4::timestamptz[]) AS first,
			width_bucket(CASE WHEN u.from_at < u.to_at THEN u.to_at - interval '1 microsecond' ELSE u.from_at END, $4::timestamptz[]) AS last
		FROM usage_record u WHERE u.tenant_id = $1 AND u.basis <> 'SHOWBACK' AND u.from_at < $3 AND u.to_at >= $2
			AND platform.before_mark(u.recorded_generation, u.recorded_xid, $5, $6::text::xid8)),
	cut AS (SELECT *, CASE WHEN first = last THEN '' ELSE source || '|' || meter || '|' || usage_id END AS alone FROM used)
	SELECT project_id, meter, basis, unit, coalesce(sku, ''), coalesce(region, ''), coalesce(borne_reason, ''), session,
		coalesce(app_instance_id, ''), coalesce(allocation_id, ''), coalesce(member_id, ''), coalesce(component_key, ''),
		coalesce(operation_id, ''), min(from_at), max(to_at), sum(quantity)::text,
		sum(sign(quantity) * extract(epoch FROM to_at - from_at))::text, alone = ''
	FROM cut GROUP BY first, alone, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13`

// count feeds the engine with the period's usage.
func count(ctx context.Context, t *tx.Tx, p *Period, engine *rating.Engine, at mark) error {
	rows, err := t.Query(ctx, usageSQL, p.TenantID, engine.From, engine.To, engine.Cuts(), at.generation, at.watermark)
	if err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	var r rating.Record
	var quantity, length string
	var together bool
	_, err = pgx.ForEachRow(rows, []any{&r.Project, &r.Meter, &r.Basis, &r.Unit, &r.SKU, &r.Region, &r.Borne, &r.Session,
		&r.Instance, &r.Allocation, &r.Member, &r.Component, &r.Operation, &r.From, &r.To, &quantity, &length, &together}, func() error {
		seconds, err := exact(&r, quantity, length)
		if err != nil {
			return err
		}
		counted := r
		if together {
			engine.AddTotal(&counted, seconds)
		} else {
			engine.Add(&counted)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	return nil
}

// exact reads the two sums of a row.
func exact(r *rating.Record, quantity, length string) (seconds money.Decimal, err error) {
	if r.Quantity, err = money.Parse(quantity); err != nil {
		return seconds, err
	}
	return money.Parse(length)
}
