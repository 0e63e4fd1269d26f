// Package prices is the price book of a demonstration.
package prices

import (
	"context"

	"github.com/Khan/genqlient/graphql"

	"github.com/gpuaas/app-platform/rig/stack/storage"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// Currency is that of the demonstration's prices, in which tenants are billed unless an operator says otherwise.
const Currency = "EUR"

// demo is a price book for a demonstration: capacity of a kind of node by the hour, and the reference apps' own use.
// The prices are invented. A storage class is priced by the GiB and hour, by its name; rig/stack/storage says what the
// class is called on local nodes.
func demo(sku string) []gql.SetPriceInput {
	return []gql.SetPriceInput{
		{Meter: "node_seconds", Sku: &sku, Per: "3600", Tiers: []gql.PriceTierInput{{Price: "9.60"}}},
		{Meter: "gpu_seconds", Sku: &sku, Per: "3600", RoundUpTo: new("60"),
			Tiers: []gql.PriceTierInput{{Price: "2.40"}}},
		{Meter: "volume_gib_seconds", Sku: new(storage.Shared), Per: "3600",
			Tiers: []gql.PriceTierInput{{Price: "0.0002"}}},
		{Meter: "volume_gib_seconds", Sku: new(storage.Local), Per: "3600",
			Tiers: []gql.PriceTierInput{{Price: "0.0003"}}},
		{Meter: "jobs", Per: "1", Tiers: []gql.PriceTierInput{{UpTo: new("1000"), Price: "0.01"}, {Price: "0.008"}}},
		{Meter: "greetings.served", Per: "1000", Tiers: []gql.PriceTierInput{{Price: "0.05"}}},
		{Meter: "requests", Per: "1000", Tiers: []gql.PriceTierInput{{Price: "0.20"}}},
		{Meter: "tokens", Per: "1000000", Tiers: []gql.PriceTierInput{{UpTo: new("100000000"), Price: "1.20"},
			{Price: "0.90"}}},
	}
}

// Seed fills an installation's price book with prices of nodes of one SKU, unless it holds a price already. It reports
// whether it did.
func Seed(ctx context.Context, operator graphql.Client, sku string) (bool, error) {
	known, err := gql.ListPrices(ctx, operator, gql.PriceFilterInput{}, 1, "")
	if err != nil || len(known.Prices.Edges) > 0 {
		return false, err
	}
	for _, price := range demo(sku) {
		price.Currency, price.Measure, price.Reason = Currency, gql.PriceMeasureQuantity, "demonstration"
		if _, err := gql.SetPrice(ctx, operator, price); err != nil {
			return false, err
		}
	}
	return true, nil
}
