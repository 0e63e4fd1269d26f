package instance_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/instance"
)

func TestALaunchsPlanShowsItsMembersAndItsPriceAndWritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`UPDATE allocation SET sku = 'small'`)
	b.ListPrice("small", "EUR", "1.25")
	plan, err := b.service.PlanLaunch(b.ctx, b.launch())
	require.NoError(t, err)
	require.True(t, plan.Allowed)
	require.Equal(t, "1.0.0", plan.Version)
	require.Len(t, plan.Members, 3)
	total := plan.Cost.Totals[0]
	require.Equal(t, []string{"EUR", "2.5", "2.5", "0"},
		[]string{total.Currency, total.Before.String(), total.After.String(),
			total.Delta.String()}, "the allocations cost that already")
	var sources []lifecycle.VerdictSource
	for _, one := range plan.Verdicts {
		sources = append(sources, one.Source)
	}
	require.ElementsMatch(t, []lifecycle.VerdictSource{"STATE", "COMPATIBILITY", "QUOTA", "POLICY"}, sources,
		"each source answers once")
	require.Zero(t, b.Count("instance", "")+b.Count("member", "")+b.Count("operation", ""))
	require.Equal(t, 2, b.Count("allocation", "instance_id IS NULL"))

	other := b.launch(func(in *instance.LaunchInput) { in.Name, in.PlanHash = "another", plan.Hash })
	_, err = b.service.Launch(b.ctx, other)
	platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
	b.ListPrice("small", "EUR", "5")
	in := b.launch(func(in *instance.LaunchInput) { in.PlanHash = plan.Hash })
	_, err = b.service.Launch(b.ctx, in)
	platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
	require.Zero(t, b.Count("instance", ""))
	again, err := b.service.PlanLaunch(b.ctx, b.launch())
	require.NoError(t, err)
	in.PlanHash = again.Hash
	_, err = b.service.Launch(b.ctx, in)
	require.NoError(t, err)
}

// A launch, a change of version or config, going back and a teardown have their price in the plan, and in its hash.
func TestThePriceIsInEveryPlanAndItsHash(t *testing.T) {
	t.Parallel()
	b := setup(t)
	three := b.allocation()
	started := b.runs()
	config := json.RawMessage(`{"size": 3}`)
	upgraded, err := b.service.Upgrade(b.ctx, upgradeOf(started.Instance.ID, "first",
		func(in *instance.UpgradeInput) { in.Config = config }))
	require.NoError(t, err)
	b.ended(upgraded.Operation.ID, lifecycle.OperationSucceeded)
	b.SQL(`UPDATE allocation SET sku = 'small'`)
	generation := 1
	plans := map[string]func() (*change.Plan, error){
		"launch": func() (*change.Plan, error) {
			return b.service.PlanLaunch(b.ctx, b.launch(func(in *instance.LaunchInput) {
				in.Name, in.AllocationIDs = "another", []ids.ID{three.ID}
			}))
		},
		"upgrade": func() (*change.Plan, error) {
			return b.service.PlanUpgrade(b.ctx, upgradeOf(started.Instance.ID, "", func(in *instance.UpgradeInput) {
				in.Config = json.RawMessage(`{"size": 4}`)
			}))
		},
		"rollback": func() (*change.Plan, error) {
			return b.service.PlanRollback(b.ctx, rollbackOf(started.Instance.ID, "", &generation))
		},
		"decommission": func() (*change.Plan, error) {
			return b.service.PlanDecommission(b.ctx, b.teardown(started.Instance.ID, ""))
		},
	}
	hashes := map[string]string{}
	for _, price := range []string{"1.5", "1.75"} {
		b.ListPrice("small", "EUR", price)
		for name, plan := range plans {
			shown, err := plan()
			require.NoError(t, err, name)
			require.True(t, shown.Allowed, name)
			require.Len(t, shown.Cost.Totals, 1, name)
			require.Positive(t, shown.Cost.Totals[0].After.Sign(), name)
			require.NotEqual(t, hashes[name], shown.Hash, "%s: another price is another plan", name)
			hashes[name] = shown.Hash
		}
	}
}

func TestALaunchsPlanSaysWhatWouldRefuseIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`UPDATE allocation SET status = 'RELEASING' WHERE id = $1`, b.two.ID)
	plan, err := b.service.PlanLaunch(b.ctx, b.launch())
	require.NoError(t, err)
	require.False(t, plan.Allowed)
	last := plan.Verdicts[len(plan.Verdicts)-1]
	require.Equal(t, []any{lifecycle.VerdictRefused, string(fault.FailedPrecondition)}, []any{last.Outcome, *last.Code})
	_, err = b.service.PlanLaunch(b.ctx, b.launch(func(in *instance.LaunchInput) {
		in.ProjectID = ids.New(ids.Project)
	}))
	platformtest.Refused(t, err, fault.NotFound, "")
}
