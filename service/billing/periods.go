package billing

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Standard is how tenants are billed that have no account yet.
type Standard struct {
	// Currency is of ISO 4217, Grace how long a period waits for late usage.
	Currency string
	Grace    time.Duration
}

// Advance opens the months of a tenant up to the present one, in the currency and with the grace of its account, which
// it opens too. Months that several processes open are opened once.
func Advance(ctx context.Context, t *tx.Tx, tenant ids.ID, standard Standard) error {
	var currency string
	var grace int64
	var next *time.Time
	err := t.QueryRow(ctx, `WITH made AS (INSERT INTO billing_account (tenant_id, currency, grace_seconds, updated_at)
		VALUES ($1, $2, $3, $4)
			ON CONFLICT (tenant_id) DO NOTHING RETURNING currency, grace_seconds)
		SELECT a.currency, a.grace_seconds, (SELECT max(p.ends_at) FROM billing_period p WHERE p.tenant_id = $1)
		FROM (SELECT * FROM made UNION ALL SELECT currency, grace_seconds FROM billing_account WHERE tenant_id = $1) a
		LIMIT 1`,
		tenant, standard.Currency, int64(standard.Grace/time.Second), t.Now).Scan(&currency, &grace, &next)
	if err != nil {
		return fmt.Errorf("open the account of %s: %w", tenant, err)
	}
	start := month(t.Now)
	if next != nil {
		start = next.UTC()
	}
	for ; !start.After(t.Now); start = start.AddDate(0, 1, 0) {
		_, err := t.Exec(ctx, `INSERT INTO billing_period (id, tenant_id, currency, grace_seconds, starts_at, ends_at,
			status)
			VALUES ($1, $2, $3, $4, $5, $6, 'OPEN') ON CONFLICT (tenant_id, starts_at) DO NOTHING`,
			derived(ids.BillingPeriod, string(tenant)+"|"+start.Format(time.RFC3339)), tenant, currency, grace, start,
			start.AddDate(0, 1, 0))
		if err != nil {
			return fmt.Errorf("open a period of %s: %w", tenant, err)
		}
	}
	return nil
}

func month(of time.Time) time.Time {
	of = of.UTC()
	return time.Date(of.Year(), of.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// Step brings a period as far as it can go now: books what is new, and closes it once it has ended, the grace is over,
// every producer of capacity has recorded up to its end, and all that was written for it is booked. It returns the run,
// nil for none. ErrBusy when another process has the period in hand.
//
// Usage is rated before anything is written or locked for update: until then the transaction has no number, so that it
// holds back no feed however long it takes (ADR 0058).
func Step(ctx context.Context, t *tx.Tx, due Due) (*Run, error) {
	p, before, err := take(ctx, t, due.Period)
	if err != nil || p == nil {
		return nil, err
	}
	var rated *rated
	if due.New && !due.covers(before, p) {
		if rated, err = rateNow(ctx, t, p, before); err != nil {
			return nil, err
		}
	}
	if rated == nil && !p.ended(t.Now) {
		return nil, nil
	}
	if err := lock(ctx, t, p); err != nil {
		return nil, err
	}
	if p.Status == Open && p.ended(t.Now) {
		if err := p.move(ctx, t, Closing); err != nil {
			return nil, err
		}
	}
	seen := due.at
	var run *Run
	if rated != nil {
		seen = rated.at
		if run, err = rated.book(ctx, t, p); err != nil {
			return nil, err
		}
	}
	return run, mayClose(ctx, t, p, seen)
}

// ended reports whether the period is to be moved on: it has ended and is not closed.
func (p *Period) ended(now time.Time) bool { return p.Status != Closed && !now.Before(p.EndsAt) }

// take reads a period and its last run for this process alone, until the transaction ends. nil when the period does not
// exist.
func take(ctx context.Context, t *tx.Tx, id ids.ID) (p *Period, before *Run, err error) {
	var free bool
	if err = t.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))`, id).Scan(&free); err != nil {
		return nil, nil, fmt.Errorf("take period %s: %w", id, err)
	}
	if !free {
		return nil, nil, ErrBusy
	}
	p, err = one(ctx, t, scanPeriod, `SELECT `+periodColumns+` FROM billing_period WHERE id = $1`, id)
	if err != nil || p == nil {
		return nil, nil, err
	}
	before, err = one(ctx, t, scanRun,
		`SELECT `+runColumns+` FROM billing_run WHERE period_id = $1 ORDER BY seq DESC LIMIT 1`, id)
	return p, before, err
}

// lock locks the row of a period that was taken. ErrBusy when it was reopened meanwhile.
func lock(ctx context.Context, t *tx.Tx, p *Period) error {
	var status Status
	if err := t.QueryRow(ctx, `SELECT status FROM billing_period WHERE id = $1 FOR NO KEY UPDATE`,
		p.ID).Scan(&status); err != nil {
		return fmt.Errorf("lock period %s: %w", p.ID, err)
	}
	if status != p.Status {
		return ErrBusy
	}
	return nil
}

// mayClose closes the period if its time has come and all that was written for it lies before the mark.
func mayClose(ctx context.Context, t *tx.Tx, p *Period, seen mark) error {
	if p.Status != Closing || t.Now.Before(p.EndsAt.Add(time.Duration(p.GraceSeconds)*time.Second)) {
		return nil
	}
	for _, waits := range []func() (bool, error){
		func() (bool, error) { return behind(ctx, t, p) },
		func() (bool, error) { return beyond(ctx, t, p, seen) },
	} {
		if yes, err := waits(); err != nil || yes {
			return err
		}
	}
	return closePeriod(ctx, t, p)
}

func (p *Period) move(ctx context.Context, t *tx.Tx, to Status) error {
	p.Status = to
	if _, err := t.Exec(ctx, `UPDATE billing_period SET status = $2, closed_at = CASE
		WHEN $2 = 'CLOSED' THEN $3::timestamptz END,
		reopened_at = CASE WHEN $4 THEN $3::timestamptz ELSE reopened_at END WHERE id = $1`, p.ID, string(to), t.Now,
		to == Closing && p.ClosedAt != nil); err != nil {
		return fmt.Errorf("move period %s: %w", p.ID, err)
	}
	return nil
}

// behind reports whether some capacity or storage of the tenant is not yet recorded up to the period's end.
func behind(ctx context.Context, t *tx.Tx, p *Period) (yes bool, err error) {
	err = t.QueryRow(ctx, `SELECT EXISTS (SELECT FROM usage_source WHERE tenant_id = $1
		AND basis IN ('CAPACITY', 'STORAGE') AND ended_at IS NULL
		AND (recorded_to IS NULL OR recorded_to < $2))`, p.TenantID, p.EndsAt).Scan(&yes)
	return yes, err
}

// owing is what a project owes.
type owing struct {
	project ids.ID
	amount  money.Decimal
}

func scanOwing(row pgx.CollectableRow) (o owing, err error) {
	err = row.Scan(&o.project, &o.amount)
	return o, err
}

// closePeriod turns what is accrued on the period's statement into what is owed, pays of it with credit, and closes.
func closePeriod(ctx context.Context, t *tx.Tx, p *Period) error {
	if _, err := t.Exec(ctx, `SELECT FROM billing_account WHERE tenant_id = $1 FOR NO KEY UPDATE`,
		p.TenantID); err != nil {
		return fmt.Errorf("lock the account of %s: %w", p.TenantID, err)
	}
	sums, err := many(ctx, t, scanOwing, `SELECT x.project_id, sum(e.amount) FROM ledger_tx x
		JOIN ledger_entry e ON e.tx_id = x.id
		WHERE x.period_id = $1 AND e.account = 'ACCRUED' GROUP BY x.project_id HAVING sum(e.amount) <> 0
		ORDER BY x.project_id`, p.ID)
	if err != nil {
		return err
	}
	turn, err := turnOf(ctx, t, p)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	for _, sum := range sums {
		closing := p.posting(Close, fmt.Sprintf("%s|close|%d|%s", p.ID, turn, sum.project), sum.project,
			sum.amount, t.Now)
		closing.entries = []entry{{account: receivable, amount: sum.amount},
			{account: accrued, amount: sum.amount.Neg()}}
		closing.queue(batch)
	}
	if err := pay(ctx, t, p, turn, sums, batch); err != nil {
		return err
	}
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("close period %s: %w", p.ID, err)
	}
	return p.move(ctx, t, Closed)
}

// turnOf counts how often the period was closed before.
func turnOf(ctx context.Context, t *tx.Tx, p *Period) (turn int, err error) {
	err = t.QueryRow(ctx, `SELECT count(DISTINCT booked_xid) FROM ledger_tx WHERE period_id = $1 AND kind = 'REOPEN'`,
		p.ID).Scan(&turn)
	return turn, err
}

func (p *Period) posting(kind Kind, name string, project ids.ID, amount money.Decimal, now time.Time) *posting {
	return &posting{id: derived(ids.LedgerTx, name), tenant: p.TenantID, project: project, statement: p.ID,
		period: p.ID, kind: kind, currency: p.Currency, effective: now, amount: amount}
}
