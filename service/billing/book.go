package billing

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
)

// namespace is what ids in the books are derived in, so that the same booking has the same id.
var namespace = uuid.MustParse("6f2a8a1e-6f0e-5d0b-9a6c-0f3f6d1b7c55")

func derived(kind ids.Kind, from string) ids.ID {
	return ids.From(kind, uuid.NewSHA1(namespace, []byte(from)))
}

// rated is what a period's usage came to, before it is booked.
type rated struct {
	before *Run
	at     mark
	result *rating.Result
}

// rateNow rates a period up to now. It returns nil when the last run has the same result.
func rateNow(ctx context.Context, t *tx.Tx, p *Period, before *Run) (*rated, error) {
	at, err := newMark(ctx, t)
	if err != nil {
		return nil, err
	}
	result, err := rate(ctx, t, p, earlier(t.Now, p.EndsAt), at)
	if err != nil || unchanged(before, result) {
		return nil, err
	}
	return &rated{before, at, result}, nil
}

// book books what differs from what is booked of a locked period. What belongs to a closed period shows on the
// statement of the next open one; without one nothing is booked.
func (r *rated) book(ctx context.Context, t *tx.Tx, p *Period) (*Run, error) {
	run := newRun(p, r.before, r.result, r.at)
	var err error
	if run.StatementID, err = statementOf(ctx, t, p); err != nil {
		return nil, err
	}
	if run.StatementID == "" {
		return nil, fmt.Errorf("period %s has late usage, and the tenant has no open period in %s whose statement "+
			"could show it", p.ID, p.Currency)
	}
	booked, err := lastLines(ctx, t, p.ID, run.Number)
	if err != nil {
		return nil, err
	}
	return run, write(ctx, t, p, run, changes(booked, r.result))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a.UTC()
	}
	return b.UTC()
}

// unchanged reports whether a run would give the same result as the last one.
func unchanged(before *Run, result *rating.Result) bool {
	if before == nil {
		return len(result.Lines) == 0
	}
	return before.InputDigest == result.Input && before.PriceHash == result.Prices && before.Engine == result.Engine
}

func newRun(p *Period, before *Run, result *rating.Result, at mark) *Run {
	run := &Run{TenantID: p.TenantID, PeriodID: p.ID, Number: 1, EventTo: result.To, Generation: at.generation,
		Watermark: at.watermark, Engine: result.Engine, PriceHash: result.Prices, InputDigest: result.Input,
		OutputDigest: result.Digest(), Lines: len(result.Lines)}
	if before != nil {
		run.Number = before.Number + 1
	}
	for i := range result.Lines {
		if result.Lines[i].Price == "" {
			run.Unpriced++
		}
	}
	run.ID = derived(ids.BillingRun, fmt.Sprintf("%s|%d", p.ID, run.Number))
	return run
}

// statementOf returns the period on whose statement something of a period shows: itself until it is closed, then the
// first that is not closed. Empty when none exists yet.
func statementOf(ctx context.Context, t *tx.Tx, p *Period) (id ids.ID, err error) {
	if p.Status != Closed {
		return p.ID, nil
	}
	next, err := one(ctx, t, scanPeriod, `SELECT `+periodColumns+` FROM billing_period
		WHERE tenant_id = $1 AND status <> 'CLOSED' AND currency = $2 ORDER BY starts_at
		LIMIT 1 FOR SHARE`, p.TenantID, p.Currency)
	if err != nil || next == nil {
		return "", err
	}
	return next.ID, nil
}

// lastLines are a period's lines as the runs before one left them.
func lastLines(ctx context.Context, t *tx.Tx, period ids.ID, before int) (map[string]*rating.Line, error) {
	texts, err := many(ctx, t, pgx.RowTo[string], `SELECT line
		FROM (SELECT DISTINCT ON (key) key, line FROM billing_line
		WHERE period_id = $1 AND seq < $2 ORDER BY key, seq DESC) l WHERE line <> ''`, period, before)
	if err != nil {
		return nil, err
	}
	lines := make(map[string]*rating.Line, len(texts))
	for _, text := range texts {
		line := &rating.Line{}
		if err := json.Unmarshal([]byte(text), line); err != nil {
			return nil, fmt.Errorf("read a booked line: %w", err)
		}
		lines[line.Key] = line
	}
	return lines, nil
}

// change is a line before and after; one of them may be missing.
type change struct{ before, after *rating.Line }

// changes are the lines that a result alters, in its order, then those that it has no longer.
func changes(booked map[string]*rating.Line, result *rating.Result) (out []change) {
	for i := range result.Lines {
		after := &result.Lines[i]
		before := booked[after.Key]
		delete(booked, after.Key)
		if before == nil || string(before.JSON()) != string(after.JSON()) {
			out = append(out, change{before, after})
		}
	}
	for _, key := range sortedKeys(booked) {
		out = append(out, change{before: booked[key]})
	}
	return out
}

// write stores a run with its lines and transactions.
func write(ctx context.Context, t *tx.Tx, p *Period, run *Run, changed []change) error {
	batch := &pgx.Batch{}
	batch.Queue(`INSERT INTO billing_run (id, tenant_id, period_id, seq, statement_id, event_to, generation, watermark,
		engine, price_hash,
			input_digest, output_digest, lines, unpriced)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::xid8, $9, $10, $11, $12, $13,
		$14)`, run.ID, run.TenantID, run.PeriodID, run.Number,
		run.StatementID, run.EventTo, run.Generation, run.Watermark, run.Engine, run.PriceHash, run.InputDigest,
		run.OutputDigest,
		run.Lines, run.Unpriced)
	for _, c := range changed {
		project, key, text := c.row()
		batch.Queue(`INSERT INTO billing_line (run_id, tenant_id, project_id, period_id, seq, key, line)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			run.ID, run.TenantID, project, run.PeriodID, run.Number, key, text)
		if posting := c.posting(p, run); posting != nil {
			posting.queue(batch)
		}
	}
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("write a run: %w", err)
	}
	return nil
}

// row returns what is stored of a changed line; the text is empty when the line does not exist any more.
func (c change) row() (project, key, text string) {
	if c.after == nil {
		return c.before.Project, c.before.Key, ""
	}
	return c.after.Project, c.after.Key, string(c.after.JSON())
}
