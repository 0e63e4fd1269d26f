package overlay

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Usage is what a project has that policy or an entitlement may count.
type Usage struct {
	// Instances and Members are those that are not torn down, AppInstances the instances of one app, GPUs those of
	// all allocations that are not released.
	Instances, AppInstances, Members, GPUs int
	// VolumeGiB is of the volumes that are not deleted; only a preview reads it here.
	VolumeGiB int
	// Spending is what those allocations, and the volumes whose class has a price, cost an hour.
	Spending policy.Spending
}

// Spend adds an hour of some capacity; without a currency it has no price.
func (u *Usage) Spend(sku, currency string, hourly money.Decimal) {
	if currency == "" {
		u.unpriced(sku)
		return
	}
	if u.Spending.Hourly == nil {
		u.Spending.Hourly = make(map[string]money.Decimal)
	}
	u.Spending.Hourly[currency] = u.Spending.Hourly[currency].Add(hourly)
}

func (u *Usage) unpriced(sku string) {
	if !slices.Contains(u.Spending.Unpriced, sku) {
		u.Spending.Unpriced = append(u.Spending.Unpriced, sku)
	}
}

// Within refuses what policy does not let the project have.
func (u *Usage) Within(e *policy.Effective) error {
	return policy.Join(e.Instances(u.Instances, ""), e.Members(u.Members, ""), e.GPUs(u.GPUs, ""),
		e.VolumeGiB(u.VolumeGiB, ""), e.HourlyCost(u.Spending, ""))
}

// Count reads what a project has, in one statement. The project must be locked, by this statement if lock is true, so
// that two callers at once are counted one after the other.
func Count(ctx context.Context, t *tx.Tx, projectID ids.ID, appSlug string, lock bool) (*Usage, error) {
	out := &Usage{}
	rows, err := t.Query(ctx, usageSQL, projectID, appSlug, lock)
	if err != nil {
		return nil, fmt.Errorf("count the usage of %s: %w", projectID, err)
	}
	if err := out.scan(rows); err != nil {
		return nil, fmt.Errorf("count the usage of %s: %w", projectID, err)
	}
	return out, nil
}

const usageSQL = `SELECT all_instances, app_instances, all_members, held_gpus, held, held_sku, held_currency,
	held_hourly
	FROM platform.project_usage($1, $2, $3)`

// Read is Count without a lock, for a pipelined read.
func (u *Usage) Read(projectID ids.ID, appSlug string) tx.Query {
	return tx.Query{SQL: usageSQL, Args: []any{projectID, appSlug, false}, Scan: u.scan}
}

// scan adds up the rows, one for each kind of capacity that the project rents, and for each storage class with a price.
func (u *Usage) scan(rows pgx.Rows) error {
	var gpus, count int
	var sku, currency string
	var hourly money.Decimal
	_, err := pgx.ForEachRow(rows, []any{&u.Instances, &u.AppInstances, &u.Members, &gpus, &count, &sku, &currency,
		&hourly}, func() error {
		u.GPUs += gpus
		if count == 0 {
			return nil
		}
		u.Spend(sku, currency, hourly)
		return nil
	})
	return err
}
