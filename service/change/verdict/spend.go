package verdict

import (
	"context"

	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/spend"
)

// affordable asks the budgets that the change counts against: where members are added or capacity is rented, and for a
// launch. What only takes another's place costs what is there already.
func (v *Verdicts) affordable(ctx context.Context, t *tx.Tx, path string) error {
	more, err := v.rentedHourly(ctx, t)
	if err != nil {
		return err
	}
	return spend.Admit(ctx, t, spend.Ask{TenantID: v.Instance.TenantID, ProjectID: v.Instance.ProjectID,
		InstanceID: v.Instance.ID, More: more,
		Lock: v.ForUpdate(), Path: path})
}

// rentedHourly is what an hour of the capacity costs that was placed for the change.
func (v *Verdicts) rentedHourly(ctx context.Context, t *tx.Tx) (more money.Decimal, err error) {
	if len(v.Created) == 0 {
		return more, nil
	}
	if err := v.reckon(ctx, t); err != nil {
		return more, err
	}
	for _, row := range v.Created {
		if price := v.Cost.Of(kindOf(row)); price != nil {
			more = more.Add(price.Amount)
		}
	}
	return more, nil
}
