package budget

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/spending"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// maxDue bounds a look: what it costs is a statement for each budget.
const maxDue = 5_000

// Due lists budgets that are not removed, at most 5,000: those first that were read the longest ago. Where there are
// more, some wait for the next round.
func Due(ctx context.Context, t *tx.Tx) ([]ids.ID, error) {
	found, err := t.Query(ctx, `SELECT id FROM budget WHERE removed_at IS NULL ORDER BY spent_at NULLS FIRST, id
		LIMIT $1`,
		maxDue)
	if err != nil {
		return nil, fmt.Errorf("list budgets: %w", err)
	}
	return pgx.CollectRows(found, pgx.RowTo[ids.ID])
}

// accrueSQL brings a budget up to the books, and returns the highest threshold that it has reached by now and whether
// the amount is. A new month begins at nothing. Summed is what was booked since the mark of the last look: below it no
// transaction is open, so what it left behind is settled for ever. A mark never goes back, as it would where this
// statement began before another look ended.
const accrueSQL = `WITH m AS (SELECT platform.generation() AS generation,
		pg_snapshot_xmin(pg_current_snapshot()) AS xid),
	b AS (SELECT *, CASE span WHEN 'MONTH' THEN ` + monthStart + ` ELSE created_at END AS since
		FROM budget WHERE id = $1 AND removed_at IS NULL FOR UPDATE SKIP LOCKED),
	f AS (SELECT b.*, w.goes_on, CASE WHEN w.goes_on THEN b.settled ELSE 0 END AS base,
			CASE WHEN w.goes_on THEN b.mark_generation ELSE 0 END AS from_generation,
			CASE WHEN w.goes_on THEN b.mark_xid ELSE '0' END AS from_xid,
			CASE WHEN v.ahead THEN b.mark_generation ELSE m.generation END AS to_generation,
			CASE WHEN v.ahead THEN b.mark_xid ELSE m.xid END AS to_xid
		FROM b CROSS JOIN m
		CROSS JOIN LATERAL (SELECT b.period_start IS NOT DISTINCT FROM b.since AND b.mark_xid IS NOT NULL AS goes_on) w
		CROSS JOIN LATERAL (SELECT w.goes_on AND (b.mark_generation, b.mark_xid) > (m.generation, m.xid) AS ahead) v),
	s AS (SELECT coalesce(sum(e.amount), 0) AS added,
			coalesce(sum(e.amount) FILTER (WHERE (e.booked_generation, e.booked_xid)
				< (f.to_generation, f.to_xid)), 0) AS settled
		FROM f JOIN ledger_entry e ON e.tenant_id = f.tenant_id AND e.account = 'ACCRUED' AND e.currency = f.currency
			AND (e.booked_generation, e.booked_xid) >= (f.from_generation, f.from_xid)
		JOIN ledger_tx x ON x.id = e.tx_id AND x.kind IN ('USAGE', 'CORRECTION')
		JOIN billing_period p ON p.id = x.of_period_id
		WHERE CASE f.span WHEN 'MONTH' THEN p.starts_at = f.since ELSE x.booked_at > f.since END
			AND CASE f.scope WHEN 'TENANT' THEN true WHEN 'PROJECT' THEN e.project_id = f.target_id
			WHEN 'INSTANCE' THEN e.instance_id = f.target_id
				ELSE EXISTS (SELECT FROM allocation_requester r WHERE r.allocation_id = e.allocation_id
				AND r.subject_id = f.target_id)
					OR e.allocation_id IS NULL AND EXISTS (SELECT FROM operation o WHERE o.instance_id = e.instance_id
					AND o.kind = 'INSTANCE_CREATE' AND o.requester_id = f.target_id)
					OR EXISTS (SELECT FROM volume v WHERE v.id = e.volume_id AND v.created_by = f.target_id) END),
	t AS (SELECT f.*, f.base + s.added AS spent_now, f.base + s.settled AS settled_now FROM f CROSS JOIN s),
	n AS (SELECT t.*, coalesce((SELECT max(h) FROM unnest(t.thresholds) h
			WHERE t.spent_now * 100 >= t.amount * h), 0) AS now_reached,
			CASE WHEN t.period_start IS NOT DISTINCT FROM t.since THEN t.reached ELSE 0 END AS before_reached,
			CASE WHEN t.period_start IS NOT DISTINCT FROM t.since THEN t.limit_at END AS before_limit,
			t.spent_now >= t.amount AS full_now
		FROM t)
	UPDATE budget SET spent = n.spent_now, spent_at = now(), period_start = n.since, settled = n.settled_now,
		mark_generation = n.to_generation, mark_xid = n.to_xid, reached = greatest(n.now_reached, n.before_reached),
		limit_at = CASE WHEN n.full_now THEN coalesce(n.before_limit, now()) END
	FROM n WHERE budget.id = n.id RETURNING greatest(n.now_reached - n.before_reached, 0) > 0, n.full_now
	AND n.before_limit IS NULL`

// Accrue brings a budget up to the books and reports the thresholds that it has reached since. It returns the budget,
// nil when another process has it in hand or it is removed.
func Accrue(ctx context.Context, t *tx.Tx, id ids.ID) (*Budget, error) {
	var risen, full bool
	err := t.QueryRow(ctx, accrueSQL, id).Scan(&risen, &full)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("accrue budget %s: %w", id, err)
	}
	found, err := read(ctx, t, `AND budget.id = $1`, id)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	b := found[0]
	if risen {
		err = b.tell(ctx, t, lifecycle.EventBudgetThreshold,
			fmt.Sprintf("%d percent of the %s's budget is spent", b.Reached, b.Scope.Noun()))
	}
	if err == nil && full {
		err = b.tell(ctx, t, lifecycle.EventBudgetExceeded,
			fmt.Sprintf("the %s's budget is spent: %s", b.Scope.Noun(), b.AtLimit.Sentence()))
	}
	return b, err
}

// bearersSQL are the newest instances of the projects that a budget is for: the timelines that show its events, so that
// each project's webhooks and feeds get them once.
const bearersSQL = `SELECT DISTINCT ON (instance.project_id) ` + rows.InstanceColumns + ` FROM instance
	WHERE instance.tenant_id = $1 AND ($2::text IS NULL OR instance.project_id = $2) AND ($3 <> 'INSTANCE'
	OR instance.id = $4)
	ORDER BY instance.project_id, instance.id DESC LIMIT 1000`

// tell appends an event to a timeline of every project that the budget is for. Projects must not see their tenant's
// budget in money.
func (b *Budget) tell(ctx context.Context, t *tx.Tx, kind lifecycle.EventType, message string) error {
	found, err := t.Query(ctx, bearersSQL, b.TenantID, b.ProjectID, string(b.Scope), b.TargetID)
	if err != nil {
		return fmt.Errorf("find the timelines for budget %s: %w", b.ID, err)
	}
	bearers, err := pgx.CollectRows(found, rows.Instance)
	if err != nil {
		return fmt.Errorf("find the timelines for budget %s: %w", b.ID, err)
	}
	payload := map[string]any{"budget": b.ID, "scope": b.Scope, "target": b.TargetID, "percent": b.Reached,
		"atLimit": b.AtLimit, "span": b.Span}
	if b.Scope != spending.Tenant {
		payload["amount"], payload["spent"], payload["currency"] = b.Amount, b.Spent, b.Currency
	}
	for _, bearer := range bearers {
		if err := event.Append(ctx, t, bearer, event.Draft{Type: kind, Message: message,
			CorrelationID: t.Request.CorrelationID, Payload: payload}); err != nil {
			return fmt.Errorf("append to %s the event of budget %s: %w", bearer.ID, b.ID, err)
		}
	}
	return nil
}

// NoteTrouble notes why the outcome at the limit could not be carried out; empty for nothing.
func NoteTrouble(ctx context.Context, t *tx.Tx, id ids.ID, trouble string) error {
	if _, err := t.Exec(ctx, `UPDATE budget SET trouble = $2 WHERE id = $1`, id, trouble); err != nil {
		return fmt.Errorf("store why the limit of budget %s was not enforced: %w", id, err)
	}
	return nil
}
