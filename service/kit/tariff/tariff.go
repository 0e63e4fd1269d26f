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
	// PriceID is the version of the price book. Another version of the same amount is the same price to whoever reads a
	// plan.
	PriceID  ids.ID `json:"-"`
	Currency string
	// Amount is in whole millionths, rounded up.
	Amount money.Decimal
}

const hourlySQL = `SELECT w.n, h.price_id, h.price_currency, h.price_hourly
	FROM unnest($3::text[], $4::bigint[], $5::text[], $6::text[]) WITH ORDINALITY w (shape, gpus, sku, region, n)
	CROSS JOIN (SELECT platform.billing_currency($1) AS currency) b
	CROSS JOIN LATERAL platform.hourly_now($1, $2, b.currency, w.shape, w.gpus, w.sku, w.region) h`

// OfCapacity reads what an hour of each kind of capacity costs; what has no price is missing.
func OfCapacity(ctx context.Context, t *tx.Tx, by Payer, kinds []Capacity) (map[Capacity]Hourly, error) {
	out := make(map[Capacity]Hourly, len(kinds))
	if len(kinds) == 0 {
		return out, nil
	}
	var shapes, skus, regions []string
	var gpus []int64
	for _, kind := range kinds {
		shapes, gpus = append(shapes, string(kind.Shape)), append(gpus, int64(kind.GPUs))
		skus, regions = append(skus, kind.SKU), append(regions, kind.Region)
	}
	found, err := t.Query(ctx, hourlySQL, by.TenantID, by.ProjectID, shapes, gpus, skus, regions)
	if err != nil {
		return nil, fmt.Errorf("read what capacity costs: %w", err)
	}
	var n int
	var one Hourly
	_, err = pgx.ForEachRow(found, []any{&n, &one.PriceID, &one.Currency, &one.Amount}, func() error {
		out[kinds[n-1]] = one
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read what capacity costs: %w", err)
	}
	return out, nil
}

// Metered is what a dimension of an app costs.
type Metered struct {
	// ID is the version of the price book.
	ID       ids.ID `json:"-"`
	Currency string
	rating.Terms
}

const meteredSQL = `SELECT w.meter, v.id, v.currency, v.terms FROM unnest($3::text[]) w (meter)
	CROSS JOIN (SELECT platform.billing_currency($1) AS currency) b
	CROSS JOIN LATERAL platform.price_now($1, $2, b.currency, w.meter, false, '', '') v`

// OfDimensions reads what the dimensions of an app cost, by name; what has no price is missing.
func OfDimensions(ctx context.Context, t *tx.Tx, by Payer, names []string) (map[string]Metered, error) {
	out := make(map[string]Metered, len(names))
	if len(names) == 0 {
		return out, nil
	}
	found, err := t.Query(ctx, meteredSQL, by.TenantID, by.ProjectID, names)
	if err != nil {
		return nil, fmt.Errorf("read what usage costs: %w", err)
	}
	var name, terms string
	var one Metered
	_, err = pgx.ForEachRow(found, []any{&name, &one.ID, &one.Currency, &terms}, func() error {
		one.Terms = rating.Terms{}
		if err := json.Unmarshal([]byte(terms), &one.Terms); err != nil {
			return err
		}
		out[name] = one
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read what usage costs: %w", err)
	}
	return out, nil
}
