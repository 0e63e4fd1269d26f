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

// usageSQL adds up what begins in a slice and ends before the next change of a price, and lists by itself what reaches
// over it. The mark is compared here and not by platform.before_mark, with which no plan may be parallel.
const usageSQL = `SELECT project_id, meter, basis, unit, coalesce(sku, ''), coalesce(region, ''), coalesce(borne_reason, ''), session,
		coalesce(app_instance_id, ''), coalesce(allocation_id, ''), coalesce(member_id, ''), coalesce(component_key, ''),
		coalesce(operation_id, ''), min(from_at), max(to_at), sum(quantity),
		coalesce(extract(epoch FROM sum(CASE WHEN quantity > 0 THEN to_at - from_at WHEN quantity < 0 THEN from_at - to_at END)), 0),
		alone IS NULL
	FROM (SELECT *, CASE WHEN to_at > $3 THEN source || '|' || meter || '|' || usage_id END AS alone FROM usage_record
		WHERE project_id = ANY ($1::text[]) AND from_at >= $2 AND from_at < $3 AND to_at >= $4 AND basis <> 'SHOWBACK' AND tenant_id = $7
			AND (recorded_generation < $5 OR recorded_generation = $5 AND recorded_xid < $6::text::xid8)) u
	GROUP BY alone, project_id, meter, basis, unit, sku, region, borne_reason, session, app_instance_id, allocation_id, member_id,
		component_key, operation_id`

// hashSQL has the sums made in a hash table: the planner takes the columns for independent, expects as many groups as records,
// and would sort them all, which was measured at seven times the work. And each statement is planned for its own slice: a plan
// for any slice expects few records, and is not parallel.
const hashSQL = `SELECT set_config('enable_sort', 'off', true), set_config('work_mem', '64MB', true),
	set_config('plan_cache_mode', 'force_custom_plan', true)`

// slice is the usage that begins from one instant on and before another, at which a price changes: records that end by then
// may be added up.
type slice struct{ from, to time.Time }

// sliced cuts what the engine counts into what one statement reads each: what has begun before, and then what begins
// between two changes of a price. A slice is read whole, however many records it has: days of it one by one were measured
// at three times the work, since no plan was parallel. What a statement returns is bounded by the sessions.
func sliced(engine *rating.Engine) []slice {
	cuts := engine.Cuts()
	out := []slice{{time.Time{}, engine.From}}
	for i, cut := range cuts[1:] {
		out = append(out, slice{cuts[i], cut})
	}
	return out
}

// count feeds the engine with the period's usage.
func count(ctx context.Context, t *tx.Tx, p *Period, engine *rating.Engine, at mark) error {
	projects, err := many(ctx, t, pgx.RowTo[string], `SELECT id FROM project WHERE tenant_id = $1`, p.TenantID)
	if err != nil {
		return err
	}
	if _, err := t.Exec(ctx, hashSQL); err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	for _, part := range sliced(engine) {
		rows, err := t.Query(ctx, usageSQL, projects, part.from, part.to, engine.From, at.generation, at.watermark, p.TenantID)
		if err != nil {
			return fmt.Errorf("read usage: %w", err)
		}
		if err := feed(engine, rows); err != nil {
			return fmt.Errorf("read usage: %w", err)
		}
	}
	if _, err := t.Exec(ctx, `SET LOCAL enable_sort = on`); err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	return nil
}

// feed feeds the engine with rows of usageSQL.
func feed(engine *rating.Engine, rows pgx.Rows) error {
	var r rating.Record
	var seconds money.Decimal
	var together bool
	_, err := pgx.ForEachRow(rows, []any{&r.Project, &r.Meter, &r.Basis, &r.Unit, &r.SKU, &r.Region, &r.Borne, &r.Session,
		&r.Instance, &r.Allocation, &r.Member, &r.Component, &r.Operation, &r.From, &r.To, &r.Quantity, &seconds, &together}, func() error {
		counted := r
		if together {
			engine.AddTotal(&counted, seconds)
		} else {
			engine.Add(&counted)
		}
		return nil
	})
	return err
}
