// Package budget holds budgets: what a tenant, a project, a service account or an instance may spend, what becomes of
// it at the limit, and how far it is. What is spent is summed from the books.
package budget

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/spending"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/scope"
)

// Service holds the verbs and reads.
type Service struct {
	// DB is the database.
	DB *tx.DB
}

// Budget is an amount that may be spent.
type Budget struct {
	ID, TenantID ids.ID
	ProjectID    *ids.ID // nil for one of all the tenant
	Scope        spending.Scope
	TargetID     ids.ID
	Currency     string
	Amount       money.Decimal
	Span         spending.Span
	// HorizonSeconds is for how long the price of what is rented is held of the amount.
	HorizonSeconds int
	// Thresholds are the percents at which an event is written, ascending.
	Thresholds []int
	AtLimit    spending.Outcome
	Reason     string
	CreatedAt  time.Time
	UpdatedAt  time.Time
	// Spent is what is booked, as of SpentAt, which is nil before the first reading of the books.
	Spent   money.Decimal
	SpentAt *time.Time
	// Reached is the highest threshold that was reported, and LimitAt when the amount was reached.
	Reached int
	LimitAt *time.Time
	// Hourly is what an hour of the capacity costs now, and Held its price for the horizon.
	Hourly, Held money.Decimal
	// Unpriced are allocations without a price in the currency.
	Unpriced int
	// Trouble is why the outcome at the limit could not be carried out; empty for nothing.
	Trouble string
}

// Left is what is neither spent nor held.
func (b *Budget) Left() money.Decimal { return b.Amount.Sub(b.Spent).Sub(b.Held) }

// LargestOvershoot is by how much the amount can be passed by what is rented at this hour's price, until the outcome at
// the limit has ended it; nil when nothing ends it.
func (b *Budget) LargestOvershoot() *money.Decimal { return b.AtLimit.Overshoot(b.Hourly) }

// columns are what scan reads: a live budget with its rate.
const columns = `budget.id, budget.tenant_id, budget.project_id, budget.scope, budget.target_id, budget.currency, budget.amount,
	budget.span, budget.horizon_seconds, budget.thresholds, budget.at_limit, budget.reason, budget.created_at, budget.updated_at,
	budget.spent, budget.spent_at, budget.reached, budget.limit_at, budget.trouble, r.hourly,
	platform.budget_held(budget, r.hourly), r.unpriced`

const fromLive = ` FROM budget CROSS JOIN LATERAL platform.budget_rate(budget) r WHERE budget.removed_at IS NULL `

func scan(row pgx.CollectableRow) (*Budget, error) {
	b := &Budget{}
	return b, row.Scan(&b.ID, &b.TenantID, &b.ProjectID, (*string)(&b.Scope), &b.TargetID, &b.Currency, &b.Amount,
		(*string)(&b.Span), &b.HorizonSeconds, &b.Thresholds, (*string)(&b.AtLimit), &b.Reason, &b.CreatedAt,
		&b.UpdatedAt,
		&b.Spent, &b.SpentAt, &b.Reached, &b.LimitAt, &b.Trouble, &b.Hourly, &b.Held, &b.Unpriced)
}

// read reads live budgets.
func read(ctx context.Context, t *tx.Tx, where string, args ...any) ([]*Budget, error) {
	found, err := t.Query(ctx, `SELECT `+columns+fromLive+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read budgets: %w", err)
	}
	list, err := pgx.CollectRows(found, scan)
	if err != nil {
		return nil, fmt.Errorf("read budgets: %w", err)
	}
	return list, nil
}

// maxListed bounds a list.
const maxListed = 500

// List reads the budgets of a project, or of a tenant and everything in it, as far as the caller sees them: by id, at
// most 500. Key: billing.read there. NOT_FOUND for what the caller cannot see.
func (s *Service) List(ctx context.Context, tenantID, projectID *ids.ID) ([]*Budget, error) {
	at := scope.Scope{TenantID: tenantID, ProjectID: projectID}
	if err := at.One(); err != nil {
		return nil, err
	}
	out := []*Budget{}
	actor, err := s.DB.Read(ctx, at.With(
		tx.Rows(&out, scan, `SELECT `+columns+fromLive+`AND ($1::text IS NULL OR budget.tenant_id = $1)
			AND ($2::text IS NULL
			OR budget.project_id = $2)
			ORDER BY budget.id LIMIT $3`, tenantID, projectID, maxListed))...)
	if err != nil {
		return nil, err
	}
	return out, at.Require(actor, authz.BillingRead)
}
