package instance_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/rollout"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
)

// canary makes a version in a canary that takes the bundle's project in, or leaves it just out.
func (b *bundle) canary(version string, in bool) *db.Manifest {
	b.t.Helper()
	row := b.Manifest(lifecycle.StageCanary, b.document(version))
	percent := 0
	for !rollout.Chosen(b.project.ID, row.ID, percent) {
		percent++
	}
	if !in {
		percent--
	}
	b.SQL(`UPDATE manifest SET canary_percent = $2, canary_started_at = now() WHERE id = $1`, row.ID, percent)
	return row
}

func (b *bundle) halt(row *db.Manifest) {
	b.t.Helper()
	b.SQL(`UPDATE manifest SET canary_halted_at = now(), canary_halt_reason = 'worse' WHERE id = $1`, row.ID)
}

// code is the code of the first reason of a refusal.
func code(t *testing.T, err error) fault.Code {
	t.Helper()
	require.Error(t, err)
	reasons := fault.From(err).Reasons
	require.NotEmpty(t, reasons, "%v", err)
	return reasons[0].Code
}

func TestALaunchWithoutAVersionGetsTheCanaryThatHasChosenTheProject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	canary := b.canary("1.1.0", true)
	started := b.launched()
	require.Equal(t, []any{canary.ID, "1.1.0"}, []any{started.Instance.ManifestID, started.Instance.AppVersion})
	again, err := b.service.Launch(b.ctx, b.launch())
	require.NoError(t, err)
	require.Equal(t, started.Operation.ID, again.Operation.ID)
}

func TestAProjectThatIsNotInTheCanaryGetsTheActiveVersionAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.canary("1.1.0", false)
	before := b.written()
	_, err := b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) { in.Version = "1.1.0" }))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.version")
	require.Equal(t, fault.NotInCanary, code(t, err))
	require.Equal(t, before, b.written())
	require.Equal(t, "1.0.0", b.launched().Instance.AppVersion)
}

func TestAHaltedCanaryTakesNobodyAndItsInstancesGoOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	canary := b.canary("1.1.0", true)
	started := b.launched()
	b.status(started, lifecycle.InstanceStarting, lifecycle.InstanceRunning)
	b.SQL(`UPDATE instance SET observed_at = now()`)
	b.halt(canary)
	_, err := b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) {
		in.Version, in.Name, in.IdempotencyKey, in.AllocationIDs = "1.1.0", "other", "other",
			[]ids.ID{b.allocation().ID}
	}))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.version")
	require.Equal(t, fault.NotInCanary, code(t, err))
	other, err := b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) {
		in.Name, in.IdempotencyKey, in.AllocationIDs = "other", "other", []ids.ID{b.allocation().ID}
	}))
	require.NoError(t, err)
	require.Equal(t, "1.0.0", other.Instance.AppVersion)

	_, err = b.service.Upgrade(b.ctx, upgradeOf(started.Instance.ID, "config", func(in *instance.UpgradeInput) {
		in.Config = []byte(`{"size": 3}`)
	}))
	require.NoError(t, err, "an instance that has it keeps it, and its config may change")
}

func TestAnUpgradeLeadsToACanaryThatHasChosenTheProject(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]bool{"in": true, "out": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			started := b.runs()
			canary := b.canary("1.1.0", in)
			to := upgradeOf(started.Instance.ID, "k", func(in *instance.UpgradeInput) { in.Version = "1.1.0" })
			plan, err := b.service.PlanUpgrade(b.ctx, to)
			require.NoError(t, err)
			require.Equal(t, in, plan.Allowed)
			before := b.written()
			if in {
				b.halt(canary)
			}
			_, err = b.service.Upgrade(b.ctx, to)
			platformtest.Refused(t, err, fault.FailedPrecondition, "input.version")
			require.Equal(t, fault.NotInCanary, code(t, err))
			require.Equal(t, before, b.written())
			if in {
				b.SQL(`UPDATE manifest SET canary_halted_at = NULL`)
				_, err = b.service.Upgrade(b.ctx, to)
				require.NoError(t, err)
			}
		})
	}
}

func TestPolicyKeepsAProjectOutOfACanary(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.canary("1.1.0", true)
	b.Policy(nil, `{"versions": {"deny": ["`+b.app.Slug+`@1.1.0"]}}`)
	_, err := b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) { in.Version = "1.1.0" }))
	platformtest.Refused(t, err, fault.PolicyDenied, "input.version")
	options, err := b.service.LaunchOptions(b.ctx, b.project.ID, b.app.Slug, "")
	require.NoError(t, err)
	require.Equal(t, "1.0.0", options.Manifest.Version)
	require.Equal(t, "1.0.0", b.launched().Instance.AppVersion, "who names no version gets one that may be had")
}

func TestOptionsSayOfEachVersionWhyNot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publishes() // others do not see a version before it is launchable
	b.Manifest(lifecycle.StageRetired, b.document("0.8.0"))
	b.Manifest(lifecycle.StageDeprecated, b.document("0.9.0"))
	canary := b.canary("1.1.0", true)
	b.Manifest(lifecycle.StageDraft, b.document("2.0.0"))
	verdicts := func(ctx context.Context, version string) (*instance.Options, map[string]fault.Code, string) {
		options, err := b.service.LaunchOptions(ctx, b.project.ID, b.app.Slug, version)
		require.NoError(t, err)
		said, chosen := make(map[string]fault.Code), ""
		for _, one := range options.Versions {
			said[one.Version] = ""
			if len(one.Reasons) > 0 {
				require.Equal(t, "version", one.Reasons[0].Path)
				said[one.Version] = one.Reasons[0].Code
			}
			if one.Chosen {
				require.Empty(t, chosen)
				chosen = one.Version
			}
		}
		return options, said, chosen
	}
	options, said, chosen := verdicts(b.ctx, "")
	require.Equal(t, map[string]fault.Code{"1.0.0": "", "1.1.0": "", "0.9.0": fault.FailedPrecondition,
		"2.0.0": fault.FailedPrecondition}, said)
	require.Equal(t, []string{"1.1.0", "1.1.0"}, []string{chosen, options.Manifest.Version})
	require.Equal(t, chosen, b.launched().Instance.AppVersion, "the options and the launch agree")

	free := b.allocation()
	b.halt(canary)
	for version, why := range map[string]fault.Code{"1.1.0": fault.NotInCanary, "0.9.0": fault.FailedPrecondition,
		"2.0.0": fault.FailedPrecondition} {
		options, said, chosen = verdicts(b.ctx, version)
		require.Equal(t, why, said[version])
		require.Equal(t, []string{"1.0.0", version}, []string{chosen, options.Manifest.Version})
		require.Equal(t, version, options.Versions[0].Version, "the one asked for comes first")
		require.Len(t, options.Allocations, 1)
		require.Equal(t, free.ID, options.Allocations[0].Allocation.ID)
		require.Len(t, options.Allocations[0].Reasons, 1, "its stage is a reason against every allocation")
	}
	operator := b.As(b.User(nil, platformtest.OnPlatform(authz.PlatformOperator),
		platformtest.In(authz.ProjectAdmin, b.project)))
	options, _, _ = verdicts(operator, "2.0.0")
	require.Empty(t, options.Allocations[0].Reasons, "to who may test it, a draft's stage is none")
	_, said, _ = verdicts(b.ctx, "0.8.0")
	require.Equal(t, fault.FailedPrecondition, said["0.8.0"], "a retired one is listed when it is asked for")
}

// A promotion that comes between a launch's choice and its hold is waited for, and chosen after: the canary became
// the active version, and is what the launch gets.
func TestALaunchThatMeetsAPromotionChoosesAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	canary := b.canary("1.1.0", false)
	ctx := t.Context()
	promotion, err := b.Admin.Begin(ctx)
	require.NoError(t, err)
	_, err = promotion.Exec(ctx, `UPDATE manifest SET stage = 'DEPRECATED' WHERE id = $1`, b.stored.ID)
	require.NoError(t, err)
	_, err = promotion.Exec(ctx, `UPDATE manifest SET stage = 'ACTIVE' WHERE id = $1`, canary.ID)
	require.NoError(t, err)

	var wait sync.WaitGroup
	var started, named *instance.Started
	var refusal error
	wait.Go(func() { started, err = b.service.Launch(b.ctx, b.launch()) })
	other := b.launch(func(in *instance.LaunchInput) {
		in.Version, in.Name, in.IdempotencyKey, in.AllocationIDs = "1.0.0", "other", "other",
			[]ids.ID{b.allocation().ID}
	})
	wait.Go(func() { named, refusal = b.service.Launch(b.ctx, other) })
	require.Eventually(t, func() bool {
		return b.Count("pg_stat_activity", "datname = current_database() AND wait_event_type = 'Lock'") == 2
	}, soon, 10*time.Millisecond)
	require.NoError(t, promotion.Commit(ctx))
	wait.Wait()
	require.NoError(t, err)
	require.Equal(t, "1.1.0", started.Instance.AppVersion)
	require.Nil(t, named)
	platformtest.Refused(t, refusal, fault.FailedPrecondition, "input.version")
}
