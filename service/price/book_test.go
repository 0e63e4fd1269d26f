package price_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/price"
)

func input(amount string) price.VersionInput {
	return price.VersionInput{Meter: "tokens", Currency: "EUR", Measure: rating.Quantity, Per: money.Int(1000),
		Tiers: []rating.Tier{{Price: money.Must(amount)}}, Reason: "price list"}
}

func TestAListPriceIsInTheBookAndALaterOneEndsIt(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	s := &price.Service{DB: k.DB}
	operator := k.As(k.Operator())
	for _, hourly := range []string{"2.125", "3"} {
		_, err := s.Set(operator, price.SetInput{SKU: "h100", Currency: "EUR", Hourly: hourly})
		require.NoError(t, err)
	}
	found, err := s.Versions(k.As(k.User(k.Tenant())), price.Filter{}, page.Args{First: 10})
	require.NoError(t, err)
	require.Len(t, found.Rows, 1, "the first has ended")
	now := found.Rows[0]
	require.Equal(t, []string{"capacity", "3", "3600"}, []string{now.Meter, now.Tiers[0].Price.String(),
		now.Per.String()})
	require.Equal(t, 3, k.Count("price_version", ""), "the first, what is left of it, and the second")
	require.Equal(t, 1, k.Count("price_version a", "superseded_xid IS NOT NULL"))
	require.Equal(t, 1, k.Count("price_version a JOIN price_version b ON b.origin = a.id AND b.id <> a.id",
		"b.valid_to IS NOT NULL AND a.terms = b.terms AND a.hash <> b.hash"))
	require.Equal(t, 1, k.Count("sku_price", "hourly_micros = 3000000"))
}

func TestPricesDoNotOverlapAndDoNotReachBack(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	s := &price.Service{DB: k.DB}
	operator := k.As(k.Operator())
	now := time.Now().UTC().Truncate(time.Microsecond)
	later, latest, past := now.Add(time.Hour), now.Add(2*time.Hour), now.Add(-time.Hour)
	set := func(from, to *time.Time) error {
		in := input("0.5")
		in.ValidFrom, in.ValidTo = from, to
		_, err := s.SetVersion(operator, in)
		return err
	}
	require.Equal(t, fault.PriceRetroactive, fault.From(set(&past, nil)).Code)
	require.NoError(t, set(&later, &latest))
	for _, from := range []*time.Time{nil, &later} {
		err := set(from, nil)
		require.Equal(t, fault.PriceOverlap, fault.From(err).Code)
		require.Equal(t, "input.validTo", fault.From(err).Reasons[0].Path)
	}
	require.Equal(t, 1, k.Count("price_version", ""))
	require.NoError(t, set(nil, &later), "they may touch")
	require.NoError(t, set(&latest, nil))
	require.Equal(t, 3, k.Count("price_version", "superseded_xid IS NULL"))
	_, err := k.Admin.Exec(t.Context(), `INSERT INTO price_version (id, origin, meter, sku, region, currency, scope,
		valid_from, version, terms, hash, reason, created_by)
		SELECT 'prc_x', origin, meter, sku, region, currency, scope, valid_from, 99, terms, hash, reason, created_by
		FROM price_version LIMIT 1`)
	require.ErrorContains(t, err, "price_version_no_overlap", "the database refuses it too")
}

func TestNobodySeesThePricesOfOthers(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	s := &price.Service{DB: k.DB}
	operator := k.As(k.Operator())
	mine, theirs := k.Tenant(), k.Tenant()
	project := k.Project(mine)
	for _, owner := range []*ids.ID{&mine.ID, &theirs.ID, nil} {
		in := input("0.5")
		in.TenantID = owner
		_, err := s.SetVersion(operator, in)
		require.NoError(t, err)
	}
	ofProject := input("0.1")
	ofProject.ProjectID = &project.ID
	_, err := s.SetVersion(operator, ofProject)
	require.NoError(t, err)
	admin := k.As(k.User(mine, platformtest.Across(authz.TenantAdmin, mine)))
	seen := func(filter price.Filter) []string {
		found, err := s.Versions(admin, filter, page.Args{First: 10})
		require.NoError(t, err)
		scopes := []string{}
		for _, v := range found.Rows {
			scopes = append(scopes, string(v.Scope))
			require.NotEqual(t, string(theirs.ID), v.Owner)
		}
		return scopes
	}
	require.ElementsMatch(t, []string{"PLATFORM"}, seen(price.Filter{}))
	require.ElementsMatch(t, []string{"PLATFORM", "TENANT"}, seen(price.Filter{TenantID: &mine.ID}))
	require.ElementsMatch(t, []string{"PLATFORM", "TENANT", "PROJECT"}, seen(price.Filter{ProjectID: &project.ID}))
	_, err = s.Versions(admin, price.Filter{TenantID: &theirs.ID}, page.Args{First: 10})
	require.Equal(t, fault.NotFound, fault.From(err).Code)
	viewer := k.As(k.User(mine, platformtest.In(authz.ProjectViewer, project)))
	_, err = s.Versions(viewer, price.Filter{ProjectID: &project.ID}, page.Args{First: 10})
	require.Equal(t, fault.Forbidden, fault.From(err).Code)
}

func TestBadVersionsAreRefusedByFieldAndWriteNothing(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	s := &price.Service{DB: k.DB}
	operator := k.As(k.Operator())
	bad, two, negative := "a b", money.Int(2), money.Int(-1)
	now, before := time.Now().Add(time.Hour), time.Now()
	for path, change := range map[string]func(*price.VersionInput){
		"input.meter":     func(in *price.VersionInput) { in.Meter = "9" },
		"input.sku":       func(in *price.VersionInput) { in.SKU = &bad },
		"input.region":    func(in *price.VersionInput) { in.Region = &bad },
		"input.currency":  func(in *price.VersionInput) { in.Currency = "QQQ" },
		"input.validTo":   func(in *price.VersionInput) { in.ValidFrom, in.ValidTo = &now, &before },
		"input.measure":   func(in *price.VersionInput) { in.Measure = "WEIGHT" },
		"input.per":       func(in *price.VersionInput) { in.Per = money.Int(0) },
		"input.tiers":     func(in *price.VersionInput) { in.Tiers = []rating.Tier{{UpTo: &two, Price: two}} },
		"input.minimum":   func(in *price.VersionInput) { in.Minimum = &negative },
		"input.roundUpTo": func(in *price.VersionInput) { in.RoundUpTo = &negative },
		"input.reason":    func(in *price.VersionInput) { in.Reason = "" },
	} {
		in := input("1")
		change(&in)
		_, err := s.SetVersion(operator, in)
		require.Equal(t, fault.InvalidArgument, fault.From(err).Code, path)
		require.Equal(t, path, fault.From(err).Reasons[0].Path)
	}
	nobody := ids.New(ids.Tenant)
	in := input("1")
	in.TenantID = &nobody
	_, err := s.SetVersion(operator, in)
	require.Equal(t, fault.NotFound, fault.From(err).Code)
	tenant := k.Tenant()
	_, err = s.SetVersion(k.As(k.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))), input("1"))
	require.Equal(t, fault.Forbidden, fault.From(err).Code)
	require.Zero(t, k.Count("price_version", ""))
}
