package tariff

import (
	"cmp"
	"context"
	"slices"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/domain/metering"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Effect is what becomes of rented capacity by a change.
type Effect = rating.CapacityEffect

// The effects. What is LEFT is rented on, though nothing of the change's instance lives there any more.
const (
	Rented   = rating.CapacityRented
	Kept     = rating.CapacityKept
	Left     = rating.CapacityLeft
	Released = rating.CapacityReleased
)

// Cost is what a change makes of the price of an hour. It says nothing of what is in no sum: what has no price.
type Cost struct {
	// Totals are by currency, in its order; none when nothing has a price.
	Totals []*Total
	// Unpriced counts the allocations without a price.
	Unpriced int
	// Capacity are the allocations that the change bears on, those of one kind and effect together.
	Capacity []*Line
	// Usage are the dimensions that the app's use is metered in.
	Usage []*Rate

	prices map[Capacity]Hourly
}

// Total is what an hour costs in one currency.
type Total struct {
	Currency      string
	Before, After money.Decimal
	Delta         money.Decimal
	// Left is the part of After that nothing of the instance lives in any more.
	Left money.Decimal
}

// Line is capacity of one kind to which the same happens.
type Line struct {
	Capacity
	Effect Effect
	Count  int
	// Hourly is for all of it; nil when no price is set.
	Hourly *Hourly
}

// Rate is what a dimension costs.
type Rate struct {
	Dimension, Unit string
	// Price is nil when no price is set.
	Price *Metered
}

// Item is an allocation that a change bears on.
type Item struct {
	Capacity
	Effect Effect
}

// Reckon reads the prices of what a change bears on, and sums them.
func Reckon(ctx context.Context, t *tx.Tx, by Payer, items []Item,
	dimensions []manifest.UsageDimension) (*Cost, error) {
	out := &Cost{Totals: []*Total{}, Capacity: grouped(items), Usage: []*Rate{}}
	var kinds []Capacity
	for _, line := range out.Capacity {
		kinds = append(kinds, line.Capacity)
	}
	prices, err := Read(ctx, t, by, kinds, out.list(dimensions))
	if err != nil {
		return nil, err
	}
	out.prices = prices.Capacity
	out.sum()
	out.rate(prices.Dimensions)
	return out, nil
}

// grouped puts items of one kind and effect together, in a fixed order.
func grouped(items []Item) []*Line {
	lines := make(map[Item]*Line, len(items))
	out := []*Line{}
	for _, item := range items {
		line := lines[item]
		if line == nil {
			line = &Line{Capacity: item.Capacity, Effect: item.Effect}
			lines[item] = line
			out = append(out, line)
		}
		line.Count++
	}
	slices.SortFunc(out, func(a, b *Line) int {
		return cmp.Or(cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Shape, b.Shape), cmp.Compare(a.GPUs, b.GPUs),
			cmp.Compare(a.SKU, b.SKU), cmp.Compare(a.Region, b.Region))
	})
	return out
}

// sum prices each line and adds it to its currency's total.
func (c *Cost) sum() {
	for _, line := range c.Capacity {
		price, known := c.prices[line.Capacity]
		if !known {
			c.Unpriced += line.Count
			continue
		}
		price.Amount = price.Amount.Mul(money.Int(int64(line.Count)))
		line.Hourly = &price
		c.total(price.Currency).add(line.Effect, price.Amount)
	}
	slices.SortFunc(c.Totals, func(a, b *Total) int { return cmp.Compare(a.Currency, b.Currency) })
}

// total returns the currency's total, a new one the first time.
func (c *Cost) total(currency string) *Total {
	at := slices.IndexFunc(c.Totals, func(t *Total) bool { return t.Currency == currency })
	if at < 0 {
		c.Totals = append(c.Totals, &Total{Currency: currency})
		at = len(c.Totals) - 1
	}
	return c.Totals[at]
}

func (t *Total) add(effect Effect, amount money.Decimal) {
	if effect != Rented {
		t.Before = t.Before.Add(amount)
	}
	if effect != Released {
		t.After = t.After.Add(amount)
	}
	if effect == Left {
		t.Left = t.Left.Add(amount)
	}
	t.Delta = t.After.Sub(t.Before)
}

// list lists what the app's use is metered in, and returns the names. What is shown and priced nowhere is left out.
func (c *Cost) list(dimensions []manifest.UsageDimension) (names []string) {
	for _, dimension := range dimensions {
		if metering.DimensionKind(dimension.Kind) != metering.KindShowback {
			names = append(names, dimension.Name)
			c.Usage = append(c.Usage, &Rate{Dimension: dimension.Name, Unit: dimension.Unit})
		}
	}
	return names
}

// rate notes the prices of what was listed.
func (c *Cost) rate(prices map[string]Metered) {
	for _, rate := range c.Usage {
		if price, known := prices[rate.Dimension]; known {
			rate.Price = &price
		}
	}
}

// Of returns what an hour of one allocation of the kind costs; nil when no price is set, and for a nil Cost.
func (c *Cost) Of(kind Capacity) *Hourly {
	if c == nil {
		return nil
	}
	if price, known := c.prices[kind]; known {
		return &price
	}
	return nil
}

// Kind returns what an allocation has in common with others of its kind.
func Kind(shape lifecycle.CapacityShape, gpus int, sku, region string) Capacity {
	return Capacity{Shape: shape, GPUs: gpus, SKU: sku, Region: region}
}
