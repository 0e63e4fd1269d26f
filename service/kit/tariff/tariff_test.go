package tariff_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/tariff"
)

// book fills the price book with random versions of few words, so that many compete for one thing. The constraint
// against overlaps leaves some out.
func book(k *platformtest.Kit, payer tariff.Payer, seed uint64) (prices []rating.Price) {
	dice := rand.New(rand.NewPCG(seed, 1))
	pick := func(words ...string) string { return words[dice.IntN(len(words))] }
	shelves := map[string]bool{}
	for i := range 40 {
		p := rating.Price{Meter: pick("capacity", "gpu_seconds", "node_seconds", "tokens"),
			SKU: pick("", "small", "large"), Region: pick("", "north"),
			Currency: pick("EUR", "USD"), Scope: rating.Scope(pick("PLATFORM", "TENANT", "PROJECT")),
			From: time.Now().Add(-2 * time.Hour).UTC().Truncate(time.Second),
			Terms: rating.Terms{Measure: rating.Measure(pick("QUANTITY", "TIME")),
				Per: money.Must(pick("1", "7", "3600")), Tiers: []rating.Tier{{Price: money.Int(int64(i + 1))}}}}
		var tenant, project *ids.ID
		switch p.Scope {
		case rating.Tenant:
			tenant, p.Owner = &payer.TenantID, string(payer.TenantID)
		case rating.Project:
			tenant, project, p.Owner = &payer.TenantID, &payer.ProjectID, string(payer.ProjectID)
		}
		if shelf := p.Meter + p.SKU + p.Region + p.Currency + p.Owner; shelves[shelf] {
			continue
		} else {
			shelves[shelf] = true
		}
		p.ID = fmt.Sprintf("prc_%02d", i)
		p.Origin = p.ID
		k.SQL(`INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, tenant_id, project_id,
			valid_from,
			version, terms, hash, reason, created_by)
			VALUES ($1, $1, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10, '', 'a test',
			'')`, p.ID, p.Meter, p.SKU, p.Region, p.Currency, string(p.Scope),
			tenant, project, p.From,
			fmt.Sprintf(`{"measure":%q,"per":"%s","tiers":[{"price":"%s"}],"minimum":"0","roundUpTo":"0"}`,
				string(p.Measure), p.Per, p.Tiers[0].Price))
		prices = append(prices, p)
	}
	return prices
}

// booked is what the engine that makes the books charges for an hour of some capacity; nil without a price.
func booked(t *testing.T, prices []rating.Price, payer tariff.Payer, kind tariff.Capacity) *money.Decimal {
	t.Helper()
	end := time.Now().UTC().Truncate(time.Second)
	engine, err := rating.New(rating.Engine{Tenant: string(payer.TenantID), Currency: "EUR", From: end.Add(-time.Hour),
		To: end, Prices: prices})
	require.NoError(t, err)
	record := rating.Record{Project: string(payer.ProjectID), Meter: "gpu_seconds", Basis: "CAPACITY", Unit: "second",
		SKU: kind.SKU, Region: kind.Region,
		Session: "a", From: end.Add(-time.Hour), To: end, Quantity: money.Int(int64(kind.GPUs) * 3600)}
	if kind.Shape == lifecycle.ShapeBaremetal {
		record.Meter, record.Quantity = "node_seconds", money.Int(3600)
	}
	engine.Add(&record)
	lines := engine.Result().Lines
	require.Len(t, lines, 1)
	if lines[0].Price == "" {
		return nil
	}
	return &lines[0].Amount
}

// What a plan shows is what the books will charge: both pick a price from the same book by rules that are written
// apart.
func TestAnHourCostsWhatTheBooksChargeForIt(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	tenant := k.Tenant()
	k.SQL(`INSERT INTO billing_account (tenant_id, currency, grace_seconds, updated_at)
		VALUES ($1, 'EUR', 0, now())`, tenant.ID)
	payer := tariff.Payer{TenantID: tenant.ID, ProjectID: k.Project(tenant).ID}
	prices := book(k, payer, 7)
	var kinds []tariff.Capacity
	for _, sku := range []string{"", "small", "large", "huge"} {
		for _, region := range []string{"", "north", "south"} {
			kinds = append(kinds, tariff.Kind(lifecycle.ShapeBaremetal, 8, sku, region),
				tariff.Kind(lifecycle.ShapeGPUSlice, 2, sku, region))
		}
	}
	var read *tariff.Prices
	require.NoError(t, k.DB.As(t.Context(), authz.System("billing"), func(ctx context.Context, tr *tx.Tx) (err error) {
		read, err = tariff.Read(ctx, tr, payer, kinds, nil)
		return err
	}))
	found := read.Capacity
	require.NotEmpty(t, found)
	for _, kind := range kinds {
		wanted := booked(t, prices, payer, kind)
		price, known := found[kind]
		require.Equal(t, wanted != nil, known, "%+v", kind)
		if known {
			require.Equal(t, "EUR", price.Currency)
			require.Equal(t, wanted.String(), price.Amount.Round(2).String(), "%+v", kind)
		}
	}
}

func TestWhatHasNoPriceIsInNoSum(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	tenant := k.Tenant()
	payer := tariff.Payer{TenantID: tenant.ID, ProjectID: k.Project(tenant).ID}
	k.ListPrice("small", "EUR", "0.5")
	k.SQL(`INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, version, terms, hash,
		reason, created_by)
		VALUES ('prc_1', 'prc_1', 'tokens', '', '', 'EUR', 'PLATFORM', now(), 1,
		'{"measure":"QUANTITY","per":"1000","tiers":[{"price":"2"}],"minimum":"0","roundUpTo":"0"}', '', '', '')`)
	small, odd := tariff.Kind(lifecycle.ShapeBaremetal, 8, "small", ""), tariff.Kind(lifecycle.ShapeBaremetal, 8, "odd",
		"")
	var cost *tariff.Cost
	require.NoError(t, k.DB.As(t.Context(), authz.System("billing"), func(ctx context.Context, tr *tx.Tx) (err error) {
		cost, err = tariff.Reckon(ctx, tr, payer, []tariff.Item{{Capacity: small, Effect: tariff.Released},
			{Capacity: small, Effect: tariff.Kept},
			{Capacity: small, Effect: tariff.Left}, {Capacity: odd, Effect: tariff.Rented}},
			[]manifest.UsageDimension{{Name: "tokens", Unit: "token"}, {Name: "jobs", Unit: "job"},
				{Name: "util", Unit: "percent", Kind: "showback"}})
		return err
	}))
	total := cost.Totals[0]
	require.Equal(t, []string{"EUR", "1.5", "1", "-0.5", "0.5"},
		[]string{total.Currency, total.Before.String(), total.After.String(), total.Delta.String(),
			total.Left.String()})
	require.Equal(t, 1, cost.Unpriced)
	require.Len(t, cost.Usage, 2, "what is priced nowhere is left out")
	require.Equal(t, []any{"tokens", "1000", "2"}, []any{cost.Usage[0].Dimension, cost.Usage[0].Price.Per.String(),
		cost.Usage[0].Price.Tiers[0].Price.String()})
	require.Nil(t, cost.Usage[1].Price)
	require.Nil(t, cost.Of(odd))
	require.Equal(t, "0.5", cost.Of(small).Amount.String())
}
