package stack

import (
	"context"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// currency is that of the demonstration's prices, in which tenants are billed unless an operator says otherwise.
const currency = "EUR"

// demoPrices is a price book for a demonstration: capacity by the hour, and the reference apps' own use. They are
// nobody's real prices.
var demoPrices = []gql.SetPriceInput{
	{Meter: "node_seconds", Sku: new(nodeSKU), Per: "3600", Tiers: []gql.PriceTierInput{{Price: "9.60"}}},
	{Meter: "gpu_seconds", Sku: new(nodeSKU), Per: "3600", RoundUpTo: new("60"),
		Tiers: []gql.PriceTierInput{{Price: "2.40"}}},
	{Meter: "jobs", Per: "1", Tiers: []gql.PriceTierInput{{UpTo: new("1000"), Price: "0.01"}, {Price: "0.008"}}},
	{Meter: "greetings.served", Per: "1000", Tiers: []gql.PriceTierInput{{Price: "0.05"}}},
	{Meter: "requests", Per: "1000", Tiers: []gql.PriceTierInput{{Price: "0.20"}}},
	{Meter: "tokens", Per: "1000000", Tiers: []gql.PriceTierInput{{UpTo: new("100000000"), Price: "1.20"},
		{Price: "0.90"}}},
}

// seedPrices fills the price book, where that is wanted and nobody has set a price yet.
func (s *Stack) seedPrices(ctx context.Context) error {
	if !s.config.DemoPrices {
		return nil
	}
	known, err := gql.ListPrices(ctx, s.Operator, gql.PriceFilterInput{}, 1, "")
	if err != nil || len(known.Prices.Edges) > 0 {
		return err
	}
	for _, price := range demoPrices {
		price.Currency, price.Measure, price.Reason = currency, gql.PriceMeasureQuantity, "demonstration"
		if _, err := gql.SetPrice(ctx, s.Operator, price); err != nil {
			return err
		}
	}
	s.say("the price book holds demonstration prices in %s: appctl prices book", currency)
	return nil
}
