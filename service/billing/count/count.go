// Package count adds a period's usage up in the database and feeds an engine with the sums: the bytes of a bill are
// those that the records themselves would give, one by one.
package count

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
)

// usageSQL adds up what begins in a slice, by what it is about; apart what reaches over the next change of a price,
// which aloneSQL lists record by record: by such a key in the sums they would not be parallel. Each row says where one
// of its records lies, which stays there: the tables are append only, and locked by the transaction against being
// rewritten.
const (
	usageSQL = `SELECT min(tableoid), min(ctid)::text, min(from_at), max(to_at), sum(quantity),
			coalesce(extract(epoch FROM sum(CASE WHEN quantity > 0 THEN to_at - from_at
				WHEN quantity < 0 THEN from_at - to_at END)), 0), to_at > $3
		FROM usage_record WHERE ` + countedSQL + ` GROUP BY about, to_at > $3`
	aloneSQL = `SELECT tableoid, ctid::text, from_at, to_at, quantity, 0::numeric, true
		FROM usage_record WHERE ` + countedSQL + ` AND to_at > $3`
)

// countedSQL is the usage that begins in a slice and counts. The mark is compared here and not by platform.before_mark,
// with which no plan may be parallel.
const countedSQL = sliceSQL + ` AND to_at >= $5 AND basis <> 'SHOWBACK'
	AND (recorded_generation < $6 OR recorded_generation = $6 AND recorded_xid < $7::text::xid8)`

// sliceSQL is the usage that begins in a slice.
const sliceSQL = `project_id = ANY ($1::text[]) AND from_at >= $2 AND from_at < $3 AND tenant_id = $4`

// aboutSQL reads what records are about.
const aboutSQL = `SELECT w.n - 1, r.source, r.usage_id, r.project_id, r.meter, r.basis, r.unit, coalesce(r.sku, ''),
	coalesce(r.region, ''),
		coalesce(r.borne_reason, ''), r.session, coalesce(r.app_instance_id, ''), coalesce(r.allocation_id, ''),
		coalesce(r.member_id, ''), coalesce(r.component_key, ''), coalesce(r.operation_id, ''),
		CASE r.basis WHEN 'STORAGE' THEN r.source ELSE '' END
	FROM unnest($1::oid[], $2::text[]::tid[]) WITH ORDINALITY w (part, place, n)
	CROSS JOIN LATERAL (SELECT * FROM usage_record u WHERE u.ctid = w.place AND u.tableoid = w.part LIMIT 1) r`

// hashSQL has the sums computed in a hash table: the planner takes columns for independent, expects as many groups as
// records, and would sort them all, which was measured at seven times the work. And each statement is planned for its
// own slice: a plan for any slice expects few records, and is not parallel.
const hashSQL = `SELECT set_config('enable_sort', 'off', true), set_config('work_mem', '64MB', true),
	set_config('plan_cache_mode', 'force_custom_plan', true)`

// PerStatement is how many records a statement adds up, as the planner expects them: some seconds of work, a third of
// what a statement may take. Slices are not smaller, since a plan for few records is not parallel. Tests set it before
// anything is counted.
var PerStatement = 4_000_000

// slice is the usage that begins from one instant on and before another, of which records that end by then may be added
// up: no price changes between the two.
type slice struct{ from, to time.Time }

// cut cuts a slice into so many of the same length. Where it is cut changes nothing: what reaches over the end of a
// slice is counted by itself.
func (s slice) cut(parts int) []slice {
	out := make([]slice, parts)
	at := s.from
	for i := range out {
		next := s.from.Add(s.to.Sub(s.from) / time.Duration(parts) * time.Duration(i+1)).Truncate(time.Microsecond)
		if i == parts-1 {
			next = s.to
		}
		out[i] = slice{at, next}
		at = next
	}
	return out
}

// counter feeds an engine with a period's usage.
type counter struct {
	*tx.Tx
	engine     *rating.Engine
	projects   []string
	generation int64
	watermark  string
}

// Usage feeds an engine with the usage of its tenant and period, as far as it was recorded in an earlier generation of
// the database, or in this one by a transaction before the watermark.
func Usage(ctx context.Context, t *tx.Tx, engine *rating.Engine, generation int64, watermark string) error {
	projects, err := tx.Collect(ctx, t, pgx.RowTo[string], `SELECT platform.projects_of($1)`, engine.Tenant)
	if err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	if _, err := t.Exec(ctx, hashSQL); err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	c := &counter{t, engine, projects, generation, watermark}
	if err := c.all(ctx); err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	if _, err := t.Exec(ctx, `SET LOCAL enable_sort = on`); err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	return nil
}

// all counts what has begun before the period, and then what begins between two changes of a price.
func (c *counter) all(ctx context.Context) error {
	cuts := c.engine.Cuts()
	if err := c.slice(ctx, slice{time.Time{}, c.engine.From}); err != nil {
		return err
	}
	for i, to := range cuts[1:] {
		whole := slice{cuts[i], to}
		expected, err := c.expected(ctx, whole)
		if err != nil {
			return err
		}
		for _, part := range whole.cut(1 + expected/PerStatement) {
			if err := c.slice(ctx, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// expected is how many records the planner expects to begin in a slice.
func (c *counter) expected(ctx context.Context, in slice) (int, error) {
	var raw []byte
	var plans []struct {
		Plan struct {
			Rows int `json:"Plan Rows"`
		}
	}
	err := c.QueryRow(ctx, `EXPLAIN (FORMAT JSON) SELECT FROM usage_record WHERE `+sliceSQL, c.projects, in.from, in.to,
		c.engine.Tenant).Scan(&raw)
	if err == nil {
		err = json.Unmarshal(raw, &plans)
	}
	if err != nil || len(plans) == 0 {
		return 0, err
	}
	return plans[0].Plan.Rows, nil
}

// sum is a row of usageSQL or aloneSQL.
type sum struct {
	rating.Record
	part    uint32 // the table, and where in it a record lies
	place   string
	seconds money.Decimal
	over    bool
}

func scanSum(row pgx.CollectableRow) (*sum, error) {
	s := &sum{}
	return s, row.Scan(&s.part, &s.place, &s.From, &s.To, &s.Quantity, &s.seconds, &s.over)
}

// perLookup bounds how many sums are described by one statement.
const perLookup = 5_000

// slice counts what begins in a slice.
func (c *counter) slice(ctx context.Context, in slice) error {
	args := []any{c.projects, in.from, in.to, c.engine.Tenant, c.engine.From, c.generation, c.watermark}
	sums, err := tx.Collect(ctx, c.Tx, scanSum, usageSQL, args...)
	if err != nil {
		return err
	}
	all := len(sums)
	sums = slices.DeleteFunc(sums, func(s *sum) bool { return s.over })
	if err := c.feed(ctx, sums, func(s *sum) { c.engine.AddTotal(&s.Record, s.seconds) }); err != nil ||
		len(sums) == all {
		return err
	}
	if sums, err = tx.Collect(ctx, c.Tx, scanSum, aloneSQL, args...); err != nil {
		return err
	}
	return c.feed(ctx, sums, func(s *sum) { c.engine.Add(&s.Record) })
}

// feed counts sums, once it has read what they are about.
func (c *counter) feed(ctx context.Context, sums []*sum, count func(*sum)) error {
	for part := range slices.Chunk(sums, perLookup) {
		if err := c.describe(ctx, part); err != nil {
			return err
		}
		for _, s := range part {
			count(s)
		}
	}
	return nil
}

// describe adds to sums what they are about.
func (c *counter) describe(ctx context.Context, sums []*sum) error {
	parts, places := make([]uint32, len(sums)), make([]string, len(sums))
	for i, s := range sums {
		parts[i], places[i] = s.part, s.place
	}
	rows, err := c.Query(ctx, aboutSQL, parts, places)
	if err != nil {
		return err
	}
	var n int
	var r rating.Record
	tag, err := pgx.ForEachRow(rows, []any{&n, &r.Source, &r.ID, &r.Project, &r.Meter, &r.Basis, &r.Unit, &r.SKU,
		&r.Region,
		&r.Borne, &r.Session, &r.Instance, &r.Allocation, &r.Member, &r.Component, &r.Operation, &r.Volume},
		func() error {
			into := &sums[n].Record
			r.From, r.To, r.Quantity = into.From, into.To, into.Quantity
			*into = r
			return nil
		})
	if err == nil && tag.RowsAffected() != int64(len(sums)) {
		err = fmt.Errorf("%d of %d records were found again", tag.RowsAffected(), len(sums))
	}
	return err
}
