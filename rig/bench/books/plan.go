package books

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/service/instance"
)

// planBar is how much longer a plan may take with its price.
const planBar = 1.1

// plansARound is how many plans are timed together: one takes a millisecond or two.
const plansARound = 200

// pricing is a tracer that adds up how long the statements take that read prices.
type pricing struct{ spent, count atomic.Int64 }

type began struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (p *pricing) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "platform.prices_now") {
		return context.WithValue(ctx, began{}, time.Now())
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (p *pricing) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if at, reads := ctx.Value(began{}).(time.Time); reads {
		p.spent.Add(int64(time.Since(at)))
		p.count.Add(1)
	}
}

const planPriceSQL = `WITH a AS (INSERT INTO billing_account (tenant_id, currency, grace_seconds, updated_at)
		SELECT id, 'EUR', 0, now() FROM tenant ON CONFLICT DO NOTHING)
	INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, version, terms, hash, reason,
		created_by)
	VALUES ('prc_plan', 'prc_plan', 'capacity', '', '', 'EUR', 'PLATFORM', '2026-01-01', 1,
		'{"measure":"TIME","per":"3600","tiers":[{"price":"1.9"}],"minimum":"0","roundUpTo":"60"}', '', 'bench', '')`

// plan plans teardowns of instances whose capacity has a price. The same plans without their price take what is left of
// the time without the statements that read prices.
func plan(ctx context.Context, b *bench) error {
	if _, err := b.set.Admin.Exec(ctx, planPriceSQL); err != nil {
		return fmt.Errorf("price the capacity: %w", err)
	}
	prices := &pricing{}
	db, err := tx.Open(ctx, b.set.DSN, tx.Options{Connections: 2, Tracer: prices})
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, running, err := b.planned(ctx, db)
	if err != nil {
		return err
	}
	verbs := &instance.Service{DB: db}
	var pairs kit.Pairs
	for round := range b.Plan.Rounds + 1 {
		prices.spent.Store(0)
		start := time.Now()
		for n := range plansARound {
			shown, err := verbs.PlanDecommission(ctx, instance.DecommissionInput{InstanceID: running[n%len(running)],
				DeadlineSeconds: 600})
			if err != nil {
				return fmt.Errorf("plan a teardown: %w", err)
			}
			if shown.Cost == nil || len(shown.Cost.Totals) == 0 {
				return fmt.Errorf("the plan of %s shows no price", running[n%len(running)])
			}
		}
		took := time.Since(start)
		if round > 0 { // the first warms up
			pairs.Platform = append(pairs.Platform, took.Seconds()/plansARound)
			pairs.Other = append(pairs.Other, (took-time.Duration(prices.spent.Load())).Seconds()/plansARound)
		}
	}
	if prices.count.Load() == 0 {
		return fmt.Errorf("no plan has read a price")
	}
	millis := func(seconds []float64) string { return fmt.Sprintf("%.2f ms", kit.Median(seconds)*1000) }
	b.Sheet.AtMost("a plan with its price, and without", millis(pairs.Platform), millis(pairs.Other), pairs.Ratio(),
		planBar)
	return nil
}

// planned is ctx as a person of the project, and its running instances.
func (b *bench) planned(ctx context.Context, db *tx.DB) (context.Context, []ids.ID, error) {
	ring, err := token.NewKeyring(kit.Issuer)
	if err != nil {
		return nil, nil, err
	}
	callers, err := b.set.Callers(ctx, 1)
	if err != nil {
		return nil, nil, err
	}
	credential, err := tx.ParseCredential(callers[0].Token, ring, db.Now())
	if err != nil {
		return nil, nil, err
	}
	found, err := b.set.Admin.Query(ctx, `SELECT i.id FROM instance i WHERE i.project_id = $1 AND i.status = 'RUNNING'
		AND EXISTS (SELECT FROM allocation a WHERE a.instance_id = i.id)
		AND NOT EXISTS (SELECT FROM operation o WHERE o.instance_id = i.id AND o.ended_at IS NULL)
		ORDER BY i.id`, b.project)
	if err != nil {
		return nil, nil, err
	}
	running, err := pgx.CollectRows(found, pgx.RowTo[ids.ID])
	if err == nil && len(running) == 0 {
		err = fmt.Errorf("no instance of %s runs", b.project)
	}
	return tx.WithCredential(ctx, credential), running, err
}
