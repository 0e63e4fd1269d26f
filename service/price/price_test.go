package price_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/price"
)

func TestPriceIsSetChangedAndListed(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	s := &price.Service{DB: k.DB}
	operator := k.As(k.Operator())
	first, err := s.Set(operator, price.SetInput{SKU: "h100-80gb", Currency: "EUR", Hourly: "2.125"})
	require.NoError(t, err)
	require.EqualValues(t, 2_125_000, first.HourlyMicros)
	second, err := s.Set(operator, price.SetInput{SKU: "h100-80gb", Currency: "USD", Hourly: "0.000001"})
	require.NoError(t, err)
	require.Equal(t, first.ID, second.ID)
	_, err = s.Set(operator, price.SetInput{SKU: "a100", Currency: "EUR", Hourly: "1000000"})
	require.NoError(t, err)
	tenant := k.Tenant()
	found, err := s.List(k.As(k.User(tenant)))
	require.NoError(t, err)
	require.Equal(t, []string{"a100", "h100-80gb"}, []string{found[0].Sku, found[1].Sku})
	require.EqualValues(t, 1, found[1].HourlyMicros)
	require.Equal(t, 1, k.Count("audit_entry",
		"action = 'setSkuPrice' AND before ->> 'currency' = 'EUR' AND after ->> 'currency' = 'USD'"))
}

func TestBadPricesAreRefusedByFieldAndWriteNothing(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	s := &price.Service{DB: k.DB}
	operator := k.As(k.Operator())
	good := price.SetInput{SKU: "h100", Currency: "EUR", Hourly: "1"}
	for name, c := range map[string]struct {
		change func(*price.SetInput)
		path   string
	}{
		"no sku":        {func(in *price.SetInput) { in.SKU = "" }, "input.sku"},
		"bad sku":       {func(in *price.SetInput) { in.SKU = "a b" }, "input.sku"},
		"currency":      {func(in *price.SetInput) { in.Currency = "eur" }, "input.currency"},
		"negative":      {func(in *price.SetInput) { in.Hourly = "-1" }, "input.hourly"},
		"too precise":   {func(in *price.SetInput) { in.Hourly = "0.0000001" }, "input.hourly"},
		"too much":      {func(in *price.SetInput) { in.Hourly = "1000000.000001" }, "input.hourly"},
		"exponent":      {func(in *price.SetInput) { in.Hourly = "1e3" }, "input.hourly"},
		"no number":     {func(in *price.SetInput) { in.Hourly = "dear" }, "input.hourly"},
		"leading zeros": {func(in *price.SetInput) { in.Hourly = "007" }, "input.hourly"},
	} {
		in := good
		c.change(&in)
		_, err := s.Set(operator, in)
		refused := fault.From(err)
		require.Equal(t, fault.InvalidArgument, refused.Code, name)
		require.Equal(t, c.path, refused.Reasons[0].Path, name)
	}
	tenant := k.Tenant()
	_, err := s.Set(k.As(k.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))), good)
	require.Equal(t, fault.Forbidden, fault.From(err).Code)
	require.Zero(t, k.Count("sku_price", ""))
}
