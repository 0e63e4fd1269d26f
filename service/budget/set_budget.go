package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/spending"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// SetInput sets the budget of one thing.
type SetInput struct {
	Scope          spending.Scope
	TargetID       ids.ID
	Amount         money.Decimal
	Currency       string
	Span           spending.Span
	HorizonSeconds int
	Thresholds     []int
	AtLimit        spending.Outcome
	Reason         string
}

// Bounds of budgets.
const (
	minHorizon, maxHorizon = 300, 31 * 24 * 3600
	maxThresholds          = 10
	maxPercent             = 1_000
)

// check refuses input that is wrong by itself: INVALID_ARGUMENT with the paths.
func (in *SetInput) check() error {
	wrong := &check.Input{}
	minor, err := money.Minor(in.Currency)
	if err != nil {
		wrong.Bad("input.currency", "must be a currency of ISO 4217 in three capital letters")
	} else if in.Amount.Sign() <= 0 || in.Amount.Round(minor).Cmp(in.Amount) != 0 {
		wrong.Bad("input.amount", "must be more than 0 and have at most %d places", minor)
	}
	if in.HorizonSeconds < minHorizon || in.HorizonSeconds > maxHorizon {
		wrong.Bad("input.horizonSeconds", "must be %d to %d", minHorizon, maxHorizon)
	}
	slices.Sort(in.Thresholds)
	in.Thresholds = slices.Compact(in.Thresholds)
	if len(in.Thresholds) > maxThresholds || slices.ContainsFunc(in.Thresholds,
		func(n int) bool { return n < 1 || n > maxPercent }) {
		wrong.Bad("input.thresholds", "must have at most %d entries, each 1 to %d percent", maxThresholds, maxPercent)
	}
	wrong.Text("input.reason", in.Reason, 1, check.MaxReason)
	return wrong.Err()
}

// target is what a budget is for: where it lies.
type target struct{ tenantID, projectID ids.ID }

// object is what authorisation decides on. The budget of a tenant or a project is its tenant's to set, so that no one
// lifts the limit that was set over them; that of a service account or an instance is its project's.
func (w target) object(scope spending.Scope) authz.Object {
	if scope == spending.Tenant || scope == spending.Project {
		return authz.Object{TenantID: w.tenantID}
	}
	return authz.Object{TenantID: w.tenantID, ProjectID: w.projectID}
}

var targets = map[spending.Scope]string{
	spending.Tenant:         `SELECT id, '' FROM tenant WHERE id = $1`,
	spending.Project:        `SELECT tenant_id, id FROM project WHERE id = $1`,
	spending.ServiceAccount: `SELECT tenant_id, project_id FROM service_account WHERE id = $1`,
	spending.Instance:       `SELECT tenant_id, project_id FROM instance WHERE id = $1 AND released_at IS NULL`,
}

// find loads what a budget is for, and requires budget.manage there.
func find(ctx context.Context, t *tx.Tx, action string, scope spending.Scope, id ids.ID) (w target, err error) {
	err = t.QueryRow(ctx, targets[scope], id).Scan(&w.tenantID, &w.projectID)
	if errors.Is(err, pgx.ErrNoRows) {
		return w, audit.Missing(t, action, authz.BudgetManage, id)
	}
	if err != nil {
		return w, fmt.Errorf("load %s: %w", id, err)
	}
	return w, w.authorise(t, action, scope, id)
}

// authorise requires budget.manage. A service account that holds it sets others' budgets alone: its own bounds its
// keys.
func (w target) authorise(t *tx.Tx, action string, scope spending.Scope, id ids.ID) error {
	if err := audit.Require(t, action, authz.BudgetManage, w.object(scope), id); err != nil {
		return err
	}
	if scope != spending.ServiceAccount || t.Actor.ID != id {
		return nil
	}
	return audit.Refused(t, action, authz.BudgetManage, w.object(scope), id,
		fault.New(fault.Forbidden, "a service account may not change its own budget: an admin of the project can"))
}

// Set sets the budget of a tenant, a project, a service account or an instance, in place of the one that it has. What
// was spent counts on where currency and span stay. Key: budget.manage, of a tenant or project on all of the tenant.
//
// Faults: INVALID_ARGUMENT naming the field, NOT_FOUND, FORBIDDEN (also to a service account for its own), at
// input.currency FAILED_PRECONDITION when the tenant is billed in another and PRICE_MISSING when nothing is priced in
// it, BUDGET_BELOW_HELD at input.amount.
func (s *Service) Set(ctx context.Context, in SetInput) (out *Budget, err error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "setBudget"
		w, err := find(ctx, t, action, in.Scope, in.TargetID)
		if err != nil {
			return err
		}
		if err := billedIn(ctx, t, w.tenantID, in.Currency); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `SELECT platform.lock_budget($1)`, in.TargetID); err != nil {
			return fmt.Errorf("lock the budget of %s: %w", in.TargetID, err)
		}
		before, err := read(ctx, t, `AND budget.target_id = $1 FOR UPDATE OF budget`, in.TargetID)
		if err != nil {
			return err
		}
		if out, err = in.write(ctx, t, w, before); err != nil {
			return err
		}
		if out.Left().Sign() < 0 {
			return fault.New(fault.BudgetBelowHeld,
				"%s is spent already and rented capacity reserves %s: set at least %s, or release capacity first",
				out.Spent, out.Held, out.Spent.Add(out.Held)).At("input.amount")
		}
		entry := audit.Entry{Action: action, Key: authz.BudgetManage, ObjectID: out.ID, Reason: in.Reason,
			After: shown(out), Object: authz.Object{TenantID: w.tenantID, ProjectID: w.projectID}}
		if len(before) > 0 {
			entry.Before = shown(before[0])
		}
		return audit.Write(ctx, t, entry)
	})
	return out, err
}

// billedIn refuses a currency that nothing of the tenant will be booked in.
func billedIn(ctx context.Context, t *tx.Tx, tenant ids.ID, currency string) error {
	var billed *string
	var priced bool
	if err := t.QueryRow(ctx, `SELECT platform.billing_currency($1), EXISTS (SELECT FROM price_version
		WHERE currency = $2
		AND superseded_xid IS NULL
		AND (tenant_id IS NULL OR tenant_id = $1))`, tenant, currency).Scan(&billed, &priced); err != nil {
		return fmt.Errorf("read the currency of %s: %w", tenant, err)
	}
	switch {
	case billed != nil && *billed != currency:
		return fault.New(fault.FailedPrecondition, "the tenant is billed in %s: set the budget in that currency",
			*billed).At("input.currency")
	case !priced:
		return fault.New(fault.PriceMissing,
			"the price book has no price in %s: an operator sets one (appctl prices add)",
			currency).At("input.currency")
	}
	return nil
}

// write writes the budget: over the one that there is, whose spending goes on where it is of the same kind.
func (in *SetInput) write(ctx context.Context, t *tx.Tx, w target, before []*Budget) (*Budget, error) {
	id := ids.New(ids.Budget)
	var project *ids.ID
	if w.projectID != "" {
		project = &w.projectID
	}
	sql := `INSERT INTO budget (id, tenant_id, project_id, scope, target_id, currency, amount, span, horizon_seconds,
		thresholds, at_limit, reason,
			created_by, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
			$14, $14)`
	args := []any{id, w.tenantID, project, string(in.Scope), in.TargetID, in.Currency, in.Amount, string(in.Span),
		in.HorizonSeconds,
		in.Thresholds, string(in.AtLimit), in.Reason, t.Actor.ID, t.Now}
	if len(before) > 0 && before[0].Currency == in.Currency && before[0].Span == in.Span {
		id = before[0].ID
		sql = `UPDATE budget SET amount = $2, horizon_seconds = $3, thresholds = $4, at_limit = $5, reason
			= $6, updated_at = $7, trouble = '',
				limit_at = CASE WHEN spent >= $2 THEN limit_at END, reached = CASE
				WHEN amount = $2 THEN reached ELSE 0 END
			WHERE id = $1`
		args = []any{id, in.Amount, in.HorizonSeconds, in.Thresholds, string(in.AtLimit), in.Reason, t.Now}
	} else if len(before) > 0 {
		if _, err := t.Exec(ctx, `UPDATE budget SET removed_at = $2 WHERE id = $1`, before[0].ID, t.Now); err != nil {
			return nil, fmt.Errorf("end budget %s: %w", before[0].ID, err)
		}
	}
	_, err := t.Exec(ctx, sql, args...)
	if tx.Violates(err, "budget_live") {
		return nil, fault.New(fault.Conflict,
			"another request set this budget at the same time: try again").At("input.targetId").Because(err)
	}
	if err != nil {
		return nil, fmt.Errorf("write a budget: %w", err)
	}
	after, err := read(ctx, t, `AND budget.id = $1`, id)
	if err != nil {
		return nil, err
	}
	return after[0], nil
}

// shown is what the audit keeps of a budget.
func shown(b *Budget) map[string]any {
	return map[string]any{"scope": b.Scope, "target": b.TargetID, "amount": b.Amount, "currency": b.Currency,
		"span":           b.Span,
		"horizonSeconds": b.HorizonSeconds, "thresholds": b.Thresholds, "atLimit": b.AtLimit}
}
