package volume_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/volume"
)

// priced puts a list price of a GiB for an hour into the book; above 10 GiB a GiB costs twice as much.
func (b *bench) priced(class *volume.Class) {
	b.SQL(`INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, version, terms, hash,
		reason,
		created_by) VALUES ($1, $1, 'volume_gib_seconds', $2, '', 'EUR', 'PLATFORM', now() - interval '1 day', 1,
		'{"measure":"QUANTITY","per":"3600","tiers":[{"upTo":"36000","price":"0.005"},{"price":"0.01"}],"minimum":"0","roundUpTo":"0"}',
		'', 'test', '')`, ids.New(ids.PriceVersion), class.Name)
}

func TestWhatAVolumeCostsIsShownBeforeItIsMade(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.priced(b.shared)
	written := b.done()
	plan, err := b.PlanCreate(b.admin, b.wanted("home", b.shared, 7))
	require.NoError(t, err)
	require.Equal(t, []string{"home", "EUR", "0.070000"}, []string{plan.Volume.Name, plan.After.Currency,
		plan.After.Amount.Fixed(6)},
		"the dearest step counts")
	require.Nil(t, plan.Before)
	plan, err = b.PlanCreate(b.admin, b.wanted("home", b.local, 7))
	require.NoError(t, err)
	require.Nil(t, plan.After, "its class has no price, which is not zero")
	require.Zero(t, b.Count("volume", ""))
	require.Equal(t, written, b.done(), "a plan writes nothing")

	made := b.made("home", b.shared, 7)
	plan, err = b.PlanResize(b.admin, volume.ResizeInput{VolumeID: made.ID, SizeGiB: 10})
	require.NoError(t, err)
	require.Equal(t, []string{"0.070000", "0.100000"}, []string{plan.Before.Amount.Fixed(6),
		plan.After.Amount.Fixed(6)})
	require.Equal(t, 1, b.Count("volume", "size_gib = 7"))
	free := b.made("scratch", b.local, 7)
	costs, err := b.Hourly(b.admin, []ids.ID{made.ID, free.ID})
	require.NoError(t, err)
	require.Len(t, costs, 1)
	require.Equal(t, "0.070000", costs[made.ID].Amount.Fixed(6))
	stranger := b.As(b.User(b.Tenant()))
	costs, err = b.Hourly(stranger, []ids.ID{made.ID})
	require.NoError(t, err)
	require.Empty(t, costs)
}

// The list has the platform's prices of today alone, one a currency, for everyone who is logged in.
func TestAStorageClassShowsItsListPrices(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.priced(b.shared)
	price := func(id, currency, amount, scope string, tenant any, days int) {
		b.SQL(`INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, tenant_id, valid_from,
			valid_to, version,
			terms, hash, reason, created_by) VALUES ($1, $1, 'volume_gib_seconds', $2, '', $3, $4, $5, now() + $6 * interval '1 day',
			now() + ($6 + 9) * interval '1 day', 1, $7, '', 'test',
			'')`, id, b.shared.Name, currency, scope, tenant, days,
			`{"measure":"QUANTITY","per":"3600","tiers":[{"price":"`+amount+`"}],"minimum":"0","roundUpTo":"0"}`)
	}
	price("prv_dollars", "USD", "0.0000001", "PLATFORM", nil, -1)
	price("prv_own", "CHF", "0.5", "TENANT", b.tenant, -1)
	price("prv_later", "NOK", "0.5", "PLATFORM", nil, 1)
	price("prv_earlier", "SEK", "0.5", "PLATFORM", nil, -20)
	stranger := b.As(b.User(b.Tenant()))
	for _, caller := range []context.Context{b.admin, stranger} {
		prices, err := b.ListPrices(caller, []ids.ID{b.shared.ID, b.local.ID})
		require.NoError(t, err)
		require.Len(t, prices, 1, "what has no price is missing")
		shown := []string{}
		for _, one := range prices[b.shared.ID] {
			shown = append(shown, one.Amount.Fixed(6)+" "+one.Currency)
		}
		require.Equal(t, []string{"0.010000 EUR", "0.000001 USD"}, shown, "rounded up, at the dearest step")
	}
	_, err := b.ListPrices(context.Background(), []ids.ID{b.shared.ID})
	require.Equal(t, fault.Unauthenticated, fault.From(err).Code)
}

func TestAPlanOfAVolumeIsRefusedAsTheVolumeWouldBe(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.made("home", b.shared, 7)
	written := b.done()
	b.Policy(nil, `{"storageClasses": {"allow": ["parallel"]}, "maxVolumeGiB": 10}`)
	viewer := b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project)))
	_, err := b.PlanCreate(viewer, b.wanted("data", b.shared, 1))
	require.Equal(t, fault.Forbidden, fault.From(err).Code)
	_, err = b.PlanResize(viewer, volume.ResizeInput{VolumeID: made.ID, SizeGiB: 8})
	require.Equal(t, fault.Forbidden, fault.From(err).Code)
	_, err = b.PlanResize(b.admin, volume.ResizeInput{VolumeID: ids.New(ids.Volume), SizeGiB: 8})
	require.Equal(t, fault.NotFound, fault.From(err).Code)
	_, err = b.PlanCreate(b.admin, b.wanted("data", b.local, 1))
	require.Equal(t, fault.StorageClassDenied, fault.From(err).Reasons[0].Code)
	_, err = b.PlanResize(b.admin, volume.ResizeInput{VolumeID: made.ID, SizeGiB: 11})
	require.Equal(t, "input.sizeGiB", fault.From(err).Reasons[0].Path)
	_, err = b.PlanCreate(b.admin, b.wanted("Bad", b.shared, 1))
	require.Equal(t, "input.name", fault.From(err).Reasons[0].Path)
	require.Equal(t, written, b.done())
}

// Policy bounds what an hour of all that a project has costs, its volumes with it.
func TestAVolumeCountsAgainstWhatAnHourOfTheProjectMayCost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.priced(b.shared)
	b.Policy(nil, `{"maxHourlyCost": {"amountMicros": 100000, "currency": "EUR"}}`)
	made := b.made("home", b.shared, 6)
	b.made("free", b.local, 900)
	_, err := b.Create(b.admin, b.wanted("data", b.shared, 5))
	require.Equal(t, fault.PolicyDenied, fault.From(err).Code)
	require.Equal(t, []any{fault.SpendingCeiling, "input.sizeGiB"},
		[]any{fault.From(err).Reasons[0].Code, fault.From(err).Reasons[0].Path})
	_, err = b.Resize(b.admin, volume.ResizeInput{VolumeID: made.ID, SizeGiB: 11})
	require.Equal(t, fault.SpendingCeiling, fault.From(err).Reasons[0].Code)
	require.Equal(t, 1, b.Count("volume", "name = 'home' AND size_gib = 6"))
	require.Zero(t, b.Count("volume", "name = 'data'"))
	_, err = b.Resize(b.admin, volume.ResizeInput{VolumeID: made.ID, SizeGiB: 10})
	require.NoError(t, err)
}

// A budget keeps the price of volumes for its horizon, as of what is rented.
func TestAVolumeCountsAgainstBudgets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.priced(b.shared)
	b.SQL(`INSERT INTO budget (id, tenant_id, project_id, scope, target_id, currency, amount, span, at_limit,
		thresholds,
		horizon_seconds, reason, created_by, created_at, updated_at)
		VALUES ('bdg_1', $1, $2, 'PROJECT', $2, 'EUR', 1, 'TOTAL', 'REFUSE', '{}', 36000, '', '', now(),
		now())`, b.tenant.ID, b.project.ID)
	made := b.made("home", b.shared, 8)
	b.made("free", b.local, 900)
	_, err := b.Create(b.admin, b.wanted("data", b.shared, 3))
	require.Equal(t, fault.BudgetExceeded, fault.From(err).Code, "11 GiB are 0.11 EUR an hour, and ten hours are kept")
	require.Equal(t, "input.sizeGiB", fault.From(err).Reasons[0].Path)
	_, err = b.Resize(b.admin, volume.ResizeInput{VolumeID: made.ID, SizeGiB: 11})
	require.Equal(t, fault.BudgetExceeded, fault.From(err).Code)
	require.Equal(t, 1, b.Count("volume", "name = 'home' AND size_gib = 8"))
	_, err = b.Create(b.admin, b.wanted("more", b.shared, 2))
	require.NoError(t, err)
}
