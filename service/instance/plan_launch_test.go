package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
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

func TestALaunchsPlanSaysWhatWouldRefuseIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`UPDATE allocation SET status = 'RELEASING' WHERE id = $1`, b.two.ID)
	plan, err := b.service.PlanLaunch(b.ctx, b.launch())
	require.NoError(t, err)
	require.False(t, plan.Allowed)
	last := plan.Verdicts[len(plan.Verdicts)-1]
	require.Equal(t, []any{lifecycle.VerdictRefused, string(fault.FailedPrecondition)}, []any{last.Outcome, *last.Code})
	_, err = b.service.PlanLaunch(b.ctx, b.launch(func(in *instance.LaunchInput) { in.ProjectID = ids.New(ids.Project) }))
	platformtest.Refused(t, err, fault.NotFound, "")
}
