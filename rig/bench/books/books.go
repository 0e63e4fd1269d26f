// Package books measures the ledger of usage and the books: how fast records are taken, and how fast a month of them is
// rated again to the same bytes.
package books

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/metering"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/service/billing"
	"github.com/gpuaas/app-platform/service/ledger/usage"
)

// Subjects are what this package measures, in order.
var Subjects = []kit.Subject{{Name: "ingest", Measure: on(ingest)}, {Name: "rating", Measure: on(rating)},
	{Name: "plan", Measure: on(plan)}}

// The bars.
const (
	ingestBar = 0.6
	ratingBar = 0.5
)

// size is a data set beside the run's own, which is emptied of usage and books first.
var size = dataset.Size{Name: "books", Tenants: 1, Projects: 1, Instances: 20, Events: 1}

// bench is one run on a data set of its own.
type bench struct {
	*kit.Bench
	set             *dataset.Set
	db              *tx.DB
	tenant, project string
}

func on(measure func(context.Context, *bench) error) func(context.Context, *kit.Bench) error {
	return func(ctx context.Context, b *kit.Bench) error {
		set, err := b.Set.Beside(ctx, dataset.Config{Size: size, Log: b.Log})
		if err != nil {
			return err
		}
		defer set.Close()
		db, err := tx.Open(ctx, set.DSN, tx.Options{Connections: 4})
		if err != nil {
			return err
		}
		defer db.Close()
		one := &bench{Bench: b, set: set, db: db}
		if err := one.empty(ctx); err != nil {
			return err
		}
		return measure(ctx, one)
	}
}

// empty takes away what a run before wrote: nothing of the product can.
func (b *bench) empty(ctx context.Context) error {
	err := pgx.BeginFunc(ctx, b.set.Admin, func(begun pgx.Tx) error {
		if _, err := begun.Exec(ctx, `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		_, err := begun.Exec(ctx,
			`TRUNCATE usage_record, ledger_entry, ledger_tx, billing_line, billing_run, billing_period, billing_look, price_version`)
		return err
	})
	if err != nil {
		return fmt.Errorf("empty the books: %w", err)
	}
	return b.set.Admin.QueryRow(ctx, `SELECT tenant_id, id FROM project ORDER BY id
		LIMIT 1`).Scan(&b.tenant, &b.project)
}

// batch is how many records one transaction takes: as many as a page of an adapter's usage has.
const batch = metering.MaxBatch

// records makes a round of records of one side.
func (b *bench) records(side string, round int) []metering.Record {
	start := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	out := make([]metering.Record, b.Plan.Records)
	for i := range out {
		source := fmt.Sprintf("ins_%s_%d_%d", side, round, i%40)
		out[i] = metering.Record{Source: source, Meter: "tokens", UsageID: fmt.Sprint("record-", i),
			Basis: metering.App, TenantID: b.tenant,
			ProjectID: b.project, InstanceID: source, MemberID: fmt.Sprint("mem_", i%200), ComponentKey: "server",
			Session: source, Unit: "token",
			Quantity: fmt.Sprint(i), From: start.Add(time.Duration(i) * time.Second),
			To:      start.Add(time.Duration(i+60) * time.Second),
			BorneBy: metering.Tenant}
	}
	return out
}

// ingest takes the same records by the product, and by a COPY and an INSERT that a person wrote for them.
func ingest(ctx context.Context, b *bench) error {
	var pairs kit.Pairs
	for round := range b.Plan.Rounds + 1 {
		platform, err := timed(b.Plan.Records, func() error { return b.take(ctx, b.records("platform", round)) })
		if err != nil {
			return err
		}
		rows := values(b.records("hand", round))
		other, err := timed(b.Plan.Records, func() error { return b.copied(ctx, rows) })
		if err != nil {
			return err
		}
		if round > 0 { // the first warms up
			pairs.Platform, pairs.Other = append(pairs.Platform, platform), append(pairs.Other, other)
		}
	}
	b.Sheet.AtLeast("usage records taken, records/s", fmt.Sprintf("%.0f", kit.Median(pairs.Platform)),
		fmt.Sprintf("%.0f", kit.Median(pairs.Other)),
		pairs.Ratio(), ingestBar)
	return nil
}

// timed is how many a second.
func timed(count int, do func() error) (float64, error) {
	began := time.Now()
	err := do()
	return float64(count) / time.Since(began).Seconds(), err
}

// take records by the product.
func (b *bench) take(ctx context.Context, records []metering.Record) error {
	for first := 0; first < len(records); first += batch {
		part := records[first:min(first+batch, len(records))]
		err := b.db.As(ctx, authz.System("bench"), func(ctx context.Context, t *tx.Tx) error {
			added, err := usage.Add(ctx, t, part)
			if err == nil && added.Recorded != len(part) {
				err = fmt.Errorf("%d of %d records are new", added.Recorded, len(part))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var copiedColumns = []string{"source", "meter", "usage_id", "basis", "tenant_id", "project_id", "app_instance_id",
	"member_id", "component_key",
	"session", "unit", "quantity", "from_at", "to_at", "borne_by", "digest"}

// values returns the rows of the reference, built before the clock runs.
func values(records []metering.Record) [][]any {
	rows := make([][]any, len(records))
	for i := range records {
		r := &records[i]
		rows[i] = []any{r.Source, r.Meter, r.UsageID, string(r.Basis), r.TenantID, r.ProjectID, r.InstanceID,
			r.MemberID, r.ComponentKey, r.Session, r.Unit, r.Quantity, r.From, r.To, string(r.BorneBy), r.Digest()}
	}
	return rows
}

// copied writes rows by COPY into a temporary table and INSERT from there, as the same login role.
func (b *bench) copied(ctx context.Context, rows [][]any) error {
	conn, err := b.db.Worker().Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `CREATE TEMPORARY TABLE IF NOT EXISTS by_hand (source text, meter text, usage_id text,
		basis text, tenant_id text,
		project_id text, app_instance_id text, member_id text, component_key text, session text, unit text, quantity text,
		from_at timestamptz,
		to_at timestamptz, borne_by text, digest bytea) ON COMMIT DELETE ROWS`); err != nil {
		return err
	}
	for first := 0; first < len(rows); first += batch {
		part := rows[first:min(first+batch, len(rows))]
		err := pgx.BeginFunc(ctx, conn, func(begun pgx.Tx) error {
			if _, err := begun.CopyFrom(ctx, pgx.Identifier{"by_hand"}, copiedColumns,
				pgx.CopyFromRows(part)); err != nil {
				return err
			}
			_, err := begun.Exec(ctx, `INSERT INTO usage_record (source, meter, usage_id, basis, tenant_id, project_id,
				app_instance_id, member_id,
				component_key, session, unit, quantity, from_at, to_at, borne_by, digest)
				SELECT source, meter, usage_id, basis, tenant_id, project_id,
				app_instance_id, member_id, component_key, session, unit, quantity::numeric, from_at, to_at, borne_by, digest
				FROM by_hand
				ON CONFLICT (source, meter, usage_id) DO NOTHING`)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// minutes of the month whose records are rated: each allocation has one a minute.
const minutes = 30 * 24 * 60

const (
	monthSQL = `INSERT INTO usage_record (source, meter, usage_id, basis, tenant_id, project_id, app_instance_id,
		allocation_id, member_id, component_key,
			operation_id, sku, region, session, unit, quantity, from_at, to_at, digest)
		SELECT 'alc_' || n / $4, 'gpu_seconds', n % $4, 'CAPACITY', $1, $2, 'ins_' || n / $4 / 8, 'alc_' || n / $4, 'mem_'
		|| n / $4 || '_' || n % $4 / 10080,
			'worker', 'op_' || n / $4 / 8, 'sku-' || n / $4 % 4, 'eu', 'alc_' || n / $4, 'second', 480,
			'2026-09-01 00:00:00Z'::timestamptz + n % $4 * interval '1 minute',
			'2026-09-01 00:01:00Z'::timestamptz + n % $4 * interval '1 minute', ''
		FROM (SELECT place % least($4::bigint, $3::bigint) + place / least($4::bigint, $3::bigint) * $4 AS n
		FROM generate_series(0, $3::bigint - 1) AS place) s ORDER BY n % $4`
	monthPriceSQL = `INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, version,
		terms, hash, reason, created_by)
		SELECT 'prc_' || n, 'prc_' || n, 'capacity', 'sku-' || n, '', 'EUR', 'PLATFORM', '2026-01-01', 1,
			'{"measure":"TIME","per":"3600","tiers":[{"upTo":"3600000","price":"2.125"},{"price":"1.9"}],"minimum":"0","roundUpTo":"60"}', '', 'bench', ''
		FROM generate_series(0, 3) AS n`
	periodSQL = `INSERT INTO billing_period (id, tenant_id, currency, grace_seconds, starts_at, ends_at, status)
		VALUES ($1, $2, 'EUR', 0, '2026-09-01', '2026-10-01', 'CLOSING')`
	// bareSQL adds up the same records by what a line of the statement is about, and nothing else.
	bareSQL = `SELECT count(*), sum(quantity)::text FROM (SELECT project_id, meter, unit, sku, region, borne_reason,
		sum(quantity) AS quantity
		FROM usage_record WHERE tenant_id = $1 AND from_at >= '2026-09-01' AND from_at < '2026-10-01'
		GROUP BY 1, 2, 3, 4, 5, 6) l`
)

// rating makes the run of a month again, beside the bare sums of its records.
func rating(ctx context.Context, b *bench) error {
	run, err := b.month(ctx)
	if err != nil {
		return err
	}
	var pairs kit.Pairs
	for round := range b.Plan.Rounds + 1 {
		platform, err := timed(b.Plan.Month, func() error { return b.again(ctx, run) })
		if err != nil {
			return err
		}
		other, err := timed(b.Plan.Month, func() error {
			var lines int
			var sum string
			return b.set.Admin.QueryRow(ctx, bareSQL, b.tenant).Scan(&lines, &sum)
		})
		if err != nil {
			return err
		}
		b.Log.Info("rated", "round", round, "records/s", int(platform), "bare", int(other))
		if round > 0 { // the first warms up
			pairs.Platform, pairs.Other = append(pairs.Platform, platform), append(pairs.Other, other)
		}
	}
	b.Sheet.AtLeast(fmt.Sprintf("a month of %d records rated again to the same bytes, records/s", b.Plan.Month),
		fmt.Sprintf("%.0f", kit.Median(pairs.Platform)), fmt.Sprintf("%.0f",
			kit.Median(pairs.Other)), pairs.Ratio(), ratingBar)
	return nil
}

// month writes the records and books them.
func (b *bench) month(ctx context.Context) (run ids.ID, err error) {
	period := ids.New(ids.BillingPeriod)
	for _, statement := range []struct {
		sql  string
		args []any
	}{{periodSQL, []any{period, b.tenant}}, {monthPriceSQL, nil}, {monthSQL,
		[]any{b.tenant, b.project, b.Plan.Month, minutes}}, {`ANALYZE usage_record`, nil}} {
		if _, err := b.set.Admin.Exec(ctx, statement.sql, statement.args...); err != nil {
			return "", fmt.Errorf("write a month of usage: %w", err)
		}
	}
	var look *billing.Look
	err = b.db.As(ctx, authz.System("bench"), func(ctx context.Context, t *tx.Tx) (err error) {
		look, err = billing.Begin(ctx, t)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("find what is due: %w", err)
	}
	for _, due := range look.Due { // a transaction each, as the billing role has it
		err := b.db.As(ctx, authz.System("bench"), func(ctx context.Context, t *tx.Tx) error {
			made, err := billing.Step(ctx, t, due)
			if err == nil && made != nil {
				run = made.ID
			}
			return err
		})
		if err != nil {
			return "", fmt.Errorf("book the month: %w", err)
		}
	}
	if run == "" {
		return "", errors.New("the month was not booked")
	}
	return run, nil
}

// again makes the run again. It fails when a byte differs.
func (b *bench) again(ctx context.Context, run ids.ID) error {
	return b.db.As(ctx, authz.System("bench"), func(ctx context.Context, t *tx.Tx) error {
		made, err := billing.Recompute(ctx, t, run)
		if err == nil && !made.Same {
			err = fmt.Errorf("the run differs: %s", made.Differs)
		}
		return err
	})
}
