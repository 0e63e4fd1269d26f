// Package spend checks what is new against the budgets that it counts against, at admission: the books follow usage by
// a minute or two, so that a budget keeps the price of what is rented for some time ahead.
package spend

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/spending"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Ask is something new.
type Ask struct {
	TenantID, ProjectID ids.ID
	// InstanceID is the instance that it is for; empty for none, or one that does not exist yet.
	InstanceID ids.ID
	// More is what an hour of the capacity costs that comes to the instance and is not bound to it yet.
	More money.Decimal
	// Lock locks the budgets until the transaction ends, so that two who ask at once are counted one after the other.
	Lock bool
	// Path is the field that requests it.
	Path string
}

// over is a budget that something counts against.
type over struct {
	id       ids.ID
	scope    spending.Scope
	currency string
	// amount, spent and held are the budget, what the books say and the price of what is rented for the horizon.
	amount, spent, held money.Decimal
	unpriced            int
}

// Admit refuses what a budget has no more for, once it is placed: BUDGET_EXCEEDED at the path, with a reason for each
// budget. Budgets that only report refuse nothing.
func Admit(ctx context.Context, t *tx.Tx, ask Ask) error {
	account := ids.ID("")
	if t.Actor.Kind == authz.KindServiceAccount {
		account = t.Actor.ID
	}
	found, err := t.Query(ctx, `SELECT budget_id, budget_scope, budget_currency, budget_amount, budget_spent,
		budget_held,
		budget_unpriced
		FROM platform.budgets_over($1, $2, $3, $4, $5,
		$6)`, ask.TenantID, ask.ProjectID, ask.InstanceID, account, ask.More,
		ask.Lock)
	if err != nil {
		return fmt.Errorf("read the budgets of %s: %w", ask.ProjectID, err)
	}
	budgets, err := pgx.CollectRows(found, scan)
	if err != nil {
		return fmt.Errorf("read the budgets of %s: %w", ask.ProjectID, err)
	}
	var reasons []fault.Reason
	for _, one := range budgets {
		if message := one.refusal(); message != "" {
			reasons = append(reasons, fault.Reason{Code: fault.BudgetExceeded, Message: message, Path: ask.Path})
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return fault.New(fault.BudgetExceeded, "%s", reasons[0].Message).With(reasons...)
}

func scan(row pgx.CollectableRow) (o over, err error) {
	err = row.Scan(&o.id, (*string)(&o.scope), &o.currency, &o.amount, &o.spent, &o.held, &o.unpriced)
	return o, err
}

// refusal returns why the budget has no more; empty when it has. What has no price cannot be kept below a limit.
func (o *over) refusal() string {
	const remedy = ": raise the budget, or release capacity that is not needed"
	switch {
	case o.spent.Add(o.held).Cmp(o.amount) > 0:
		return fmt.Sprintf(
			"the %s's budget %s is %s %s: %s is spent, and rented capacity reserves %s, including this request",
			o.scope.Noun(), o.id, o.amount, o.currency,
			o.spent, o.held) + remedy
	case o.unpriced > 0:
		return fmt.Sprintf("the %s's budget %s is in %s, and %d allocations have no price in it: an operator sets "+
			"one (appctl prices add)", o.scope.Noun(), o.id,
			o.currency, o.unpriced)
	}
	return ""
}
