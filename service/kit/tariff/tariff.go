// Package tariff reads what capacity and metered usage cost a project now, from the price book. What has no price has
// no rate: it is never zero.
package tariff

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Payer is who pays.
type Payer struct{ TenantID, ProjectID ids.ID }

// Capacity is what allocations of one kind have in common.
type Capacity struct {
	Shape       lifecycle.CapacityShape
	GPUs        int
	SKU, Region string
}

// Hourly is what an hour of something costs at most.
type Hourly struct {
	// PriceID is the version of the price book. Another version of the same amount is the same price to the reader of a
	// plan.
	PriceID  ids.ID `json:"-"`
	Currency string
	// Amount is in whole millionths, rounded up.
	Amount money.Decimal
}

// Metered is what a dimension of an app costs.
type Metered struct {
	// ID is the version of the price book.
	ID       ids.ID `json:"-"`
	Currency string
	rating.Terms
}

// Prices are what holds now; what has no price is missing.
type Prices struct {
	Capacity   map[Capacity]Hourly
	Dimensions map[string]Metered
}

const pricesSQL = `SELECT n, price_id, price_currency, price_hourly, price_terms
	FROM platform.prices_now($1, $2, $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[])`

// Read reads what an hour of each kind of capacity costs, and what the dimensions of an app do, by name: in one
// statement, and in none when nothing is wanted.
func Read(ctx context.Context, t *tx.Tx, by Payer, kinds []Capacity, dimensions []string) (*Prices, error) {
	out := &Prices{Capacity: make(map[Capacity]Hourly, len(kinds)),
		Dimensions: make(map[string]Metered, len(dimensions))}
	if len(kinds)+len(dimensions) == 0 {
		return out, nil
	}
	var shapes, skus, regions []string
	var gpus []int64
	for _, kind := range kinds {
		shapes, gpus = append(shapes, string(kind.Shape)), append(gpus, int64(kind.GPUs))
		skus, regions = append(skus, kind.SKU), append(regions, kind.Region)
	}
	found, err := t.Query(ctx, pricesSQL, by.TenantID, by.ProjectID, shapes, gpus, skus, regions, dimensions)
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	var row struct {
		n        int
		id       ids.ID
		currency string
		hourly   *money.Decimal
		terms    *string
	}
	_, err = pgx.ForEachRow(found, []any{&row.n, &row.id, &row.currency, &row.hourly, &row.terms}, func() error {
		if row.hourly != nil {
			out.Capacity[kinds[row.n-1]] = Hourly{PriceID: row.id, Currency: row.currency, Amount: *row.hourly}
			return nil
		}
		one := Metered{ID: row.id, Currency: row.currency}
		if err := json.Unmarshal([]byte(*row.terms), &one.Terms); err != nil {
			return err
		}
		out.Dimensions[dimensions[row.n-1]] = one
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	return out, nil
}
