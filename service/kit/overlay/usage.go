package overlay

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Usage is what a project has that policy or an entitlement may count.
type Usage struct {
	// Instances and Members are those that are not torn down, AppInstances the instances of one app, GPUs those of
	// all allocations that are not released.
	Instances, AppInstances, Members, GPUs int
	// Spending is what those allocations cost an hour.
	Spending policy.Spending
}

// SKUPrice is a list price an hour.
type SKUPrice struct {
	SKU, Currency string
	Micros        int64
}

// Price scans a SKU, its currency and its price in millionths an hour.
func Price(row pgx.CollectableRow) (p SKUPrice, err error) {
	return p, row.Scan(&p.SKU, &p.Currency, &p.Micros)
}

// Spend adds some allocations of a SKU.
func (u *Usage) Spend(sku string, count int, prices []SKUPrice) {
	at := slices.IndexFunc(prices, func(p SKUPrice) bool { return p.SKU == sku })
	if at < 0 {
		u.unpriced(sku)
		return
	}
	u.pay(prices[at].Currency, prices[at].Micros*int64(count))
}

func (u *Usage) unpriced(sku string) {
	if !slices.Contains(u.Spending.Unpriced, sku) {
		u.Spending.Unpriced = append(u.Spending.Unpriced, sku)
	}
}

func (u *Usage) pay(currency string, micros int64) {
	if u.Spending.Micros == nil {
		u.Spending.Micros = make(map[string]int64)
	}
	u.Spending.Micros[currency] += micros
}

// Within asks whether policy lets the project have this much.
func (u *Usage) Within(e *policy.Effective) error {
	return policy.Join(e.Instances(u.Instances, ""), e.Members(u.Members, ""), e.GPUs(u.GPUs, ""),
		e.HourlyCost(u.Spending, ""))
}

// Count reads what a project has, in one statement. It must be locked, by this statement if lock says so, so that
// two who ask at once are counted one after the other.
func Count(ctx context.Context, t *tx.Tx, projectID ids.ID, appSlug string, lock bool) (*Usage, error) {
	out := &Usage{}
	rows, err := t.Query(ctx, usageSQL, projectID, appSlug, lock)
	if err != nil {
		return nil, fmt.Errorf("count what %s has: %w", projectID, err)
	}
	if err := out.scan(rows); err != nil {
		return nil, fmt.Errorf("count what %s has: %w", projectID, err)
	}
	return out, nil
}

const usageSQL = `SELECT all_instances, app_instances, all_members, held_gpus, held, held_sku, price_currency, price_micros
	FROM platform.usage_of($1, $2, $3)`

// Read is Count without a lock, for a pipelined read.
func (u *Usage) Read(projectID ids.ID, appSlug string) tx.Query {
	return tx.Query{SQL: usageSQL, Args: []any{projectID, appSlug, false}, Scan: u.scan}
}

// scan adds up the rows, one for each SKU that the project rents.
func (u *Usage) scan(rows pgx.Rows) error {
	var gpus, count int
	var sku, currency string
	var micros int64
	_, err := pgx.ForEachRow(rows, []any{&u.Instances, &u.AppInstances, &u.Members, &gpus, &count, &sku, &currency,
		&micros}, func() error {
		u.GPUs += gpus
		switch {
		case currency != "":
			u.pay(currency, micros)
		case count > 0:
			u.unpriced(sku)
		}
		return nil
	})
	return err
}
