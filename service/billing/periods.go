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

// Advance opens the months of a tenant up to the present one, in the currency and with the grace of its account, which it
// opens too. Months that several processes open are opened once.
func Advance(ctx context.Context, t *tx.Tx, tenant ids.ID, standard Standard) error {
	var currency string
	var grace int64
	var next *time.Time
	err := t.QueryRow(ctx, `WITH made AS (INSERT INTO billing_account (tenant_id, currency, grace_seconds, updated_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (tenant_id) DO NOTHING RETURNING currency, grace_seconds)
		SELECT a.currency, a.grace_seconds, (SELECT max(p.ends_at) FROM billing_period p WHERE p.tenant_id = $1)
		FROM (SELECT * FROM made UNION ALL SELECT currency, grace_seconds FROM billing_account WHERE tenant_id = $1) a LIMIT 1`,
		tenant, standard.Currency, int64(standard.Grace/time.Second), t.Now).Scan(&currency, &grace, &next)
	if err != nil {
		return fmt.Errorf("open the account of %s: %w", tenant, err)
	}
	start := month(t.Now)
	if next != nil {
		start = next.UTC()
	}
	for ; !start.After(t.Now); start = start.AddDate(0, 1, 0) {
		_, err := t.Exec(ctx, `INSERT INTO billing_period (id, tenant_id, currency, grace_seconds, starts_at, ends_at, status)
			VALUES ($1, $2, $3, $4, $5, $6, 'OPEN') ON CONFLICT (tenant_id, starts_at) DO NOTHING`,
			derived(ids.BillingPeriod, string(tenant)+"|"+start.Format(time.RFC3339)), tenant, currency, grace, start, start.AddDate(0, 1, 0))
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

// Step brings a period as far as it can go now: books what is new, and closes it once it has ended, the grace is over and
// every producer of capacity has recorded up to its end. It returns the run, nil for none. A period that another process has
// in hand is left to it.
func Step(ctx context.Context, t *tx.Tx, id ids.ID) (*Run, error) {
	p, err := one(ctx, t, scanPeriod, `SELECT `+periodColumns+` FROM billing_period WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED`, id)
	if err != nil || p == nil {
		return nil, err
	}
	if p.Status == Open && !t.Now.Before(p.EndsAt) {
		if err := p.move(ctx, t, Closing); err != nil {
			return nil, err
		}
	}
	if p.Status == Closed { // another process may have booked what was new
		if due, err := isDue(ctx, t, p.ID); err != nil || !due {
			return nil, err
		}
	}
	run, err := book(ctx, t, p)
	if err != nil || p.Status != Closing {
		return run, err
	}
	if t.Now.Before(p.EndsAt.Add(time.Duration(p.GraceSeconds) * time.Second)) {
		return run, nil
	}
	behind, err := behind(ctx, t, p)
	if err != nil || behind {
		return run, err
	}
	return run, closePeriod(ctx, t, p)
}

func (p *Period) move(ctx context.Context, t *tx.Tx, to Status) error {
	p.Status = to
	if _, err := t.Exec(ctx, `UPDATE billing_period SET status = $2, closed_at = CASE WHEN $2 = 'CLOSED' THEN $3::timestamptz END,
		reopened_at = CASE WHEN $4 THEN $3::timestamptz ELSE reopened_at END WHERE id = $1`, p.ID, string(to), t.Now,
		to == Closing && p.ClosedAt != nil); err != nil {
		return fmt.Errorf("move period %s: %w", p.ID, err)
	}
	return nil
}

// behind reports whether some capacity of the tenant is not yet recorded up to the period's end.
func behind(ctx context.Context, t *tx.Tx, p *Period) (yes bool, err error) {
	err = t.QueryRow(ctx, `SELECT EXISTS (SELECT FROM usage_source WHERE tenant_id = $1 AND basis = 'CAPACITY' AND ended_at IS NULL
		AND (recorded_to IS NULL OR recorded_to < $2))`, p.TenantID, p.EndsAt).Scan(&yes)
	return yes, err
}

// owing is what a project owes.
type owing struct {
	project ids.ID
	amount  money.Decimal
}

func scanOwing(row pgx.CollectableRow) (o owing, err error) {
	var amount string
	if err = row.Scan(&o.project, &amount); err == nil {
		o.amount, err = money.Parse(amount)
	}
	return o, err
}

// closePeriod turns what is accrued on the period's statement into what is owed, pays of it with credit, and closes.
func closePeriod(ctx context.Context, t *tx.Tx, p *Period) error {
	if _, err := t.Exec(ctx, `SELECT FROM billing_account WHERE tenant_id = $1 FOR NO KEY UPDATE`, p.TenantID); err != nil {
		return fmt.Errorf("lock the account of %s: %w", p.TenantID, err)
	}
	sums, err := many(ctx, t, scanOwing, `SELECT x.project_id, trim_scale(sum(e.amount))::text FROM ledger_tx x JOIN ledger_entry e ON e.tx_id = x.id
		WHERE x.period_id = $1 AND e.account = 'ACCRUED' GROUP BY x.project_id HAVING sum(e.amount) <> 0 ORDER BY x.project_id`, p.ID)
	if err != nil {
		return err
	}
	turn, err := turnOf(ctx, t, p)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	for _, sum := range sums {
		closing := p.posting(Close, fmt.Sprintf("%s|close|%d|%s", p.ID, turn, sum.project), sum.project, sum.amount, t.Now)
		closing.entries = []entry{{account: receivable, amount: sum.amount}, {account: accrued, amount: sum.amount.Neg()}}
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
	err = t.QueryRow(ctx, `SELECT count(DISTINCT booked_xid) FROM ledger_tx WHERE period_id = $1 AND kind = 'REOPEN'`, p.ID).Scan(&turn)
	return turn, err
}

func (p *Period) posting(kind Kind, name string, project ids.ID, amount money.Decimal, now time.Time) *posting {
	return &posting{id: derived(ids.LedgerTx, name), tenant: p.TenantID, project: project, statement: p.ID, period: p.ID, kind: kind,
		currency: p.Currency, effective: now, amount: amount}
}
