// Package billing rates usage, books it in a double-entry ledger, closes periods and shows statements. Everything that
// it shows is summed from the ledger's entries, and every run can be repeated from what it notes of itself.
package billing

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Service holds the reads and verbs.
type Service struct {
	// DB is the database.
	DB *tx.DB
}

// Status is how far a period is.
type Status = rating.PeriodStatus

// A period is open while it lasts, closing while late usage is waited for, and then closed.
const (
	Open    = rating.PeriodOpen
	Closing = rating.PeriodClosing
	Closed  = rating.PeriodClosed
)

// Period is a month of a tenant.
type Period struct {
	ID, TenantID ids.ID
	Currency     string
	// GraceSeconds is how long late usage is waited for after the end.
	GraceSeconds int
	// StartsAt and EndsAt bound it, half-open.
	StartsAt, EndsAt time.Time
	Status           Status
	// ClosedAt is when it was closed, and ReopenedAt when it was last reopened.
	ClosedAt, ReopenedAt *time.Time
}

const periodColumns = `billing_period.id, billing_period.tenant_id, billing_period.currency, billing_period.grace_seconds,
	billing_period.starts_at, billing_period.ends_at, billing_period.status, billing_period.closed_at, billing_period.reopened_at`

func scanPeriod(row pgx.CollectableRow) (*Period, error) {
	p := &Period{}
	err := row.Scan(&p.ID, &p.TenantID, &p.Currency, &p.GraceSeconds, &p.StartsAt, &p.EndsAt, &p.Status, &p.ClosedAt,
		&p.ReopenedAt)
	p.StartsAt, p.EndsAt = p.StartsAt.UTC(), p.EndsAt.UTC()
	return p, err
}

// Run is what the books were computed from at some moment.
type Run struct {
	ID, TenantID, PeriodID ids.ID
	// Number counts the runs of the period.
	Number int
	// StatementID is the period on whose statement the run shows: a later one for what came late.
	StatementID ids.ID
	// EventTo is up to when usage counts.
	EventTo time.Time
	// Generation and Watermark say which commits count: those before the watermark, in this generation of the database
	// or an earlier one.
	Generation int64
	Watermark  string
	// Engine is the version of the rules.
	Engine int
	// PriceHash, InputDigest and OutputDigest are the SHA-256 of prices, usage and result.
	PriceHash, InputDigest, OutputDigest string
	// Lines are how many the result has, and Unpriced those without a price.
	Lines, Unpriced int
	CreatedAt       time.Time
}

const runColumns = `billing_run.id, billing_run.tenant_id, billing_run.period_id, billing_run.seq, billing_run.statement_id,
	billing_run.event_to, billing_run.generation, billing_run.watermark::text, billing_run.engine, billing_run.price_hash,
	billing_run.input_digest, billing_run.output_digest, billing_run.lines, billing_run.unpriced, billing_run.created_at`

func scanRun(row pgx.CollectableRow) (*Run, error) {
	r := &Run{}
	err := row.Scan(&r.ID, &r.TenantID, &r.PeriodID, &r.Number, &r.StatementID, &r.EventTo, &r.Generation, &r.Watermark,
		&r.Engine,
		&r.PriceHash, &r.InputDigest, &r.OutputDigest, &r.Lines, &r.Unpriced, &r.CreatedAt)
	r.EventTo = r.EventTo.UTC()
	return r, err
}

// one reads a row that may be missing.
func one[T any](ctx context.Context, t *tx.Tx, scan func(pgx.CollectableRow) (*T, error), sql string, args ...any) (*T,
	error) {
	found, err := many(ctx, t, scan, sql, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// many reads rows of the books.
func many[T any](ctx context.Context, t *tx.Tx, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	found, err := tx.Collect(ctx, t, scan, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read the books: %w", err)
	}
	return found, nil
}
