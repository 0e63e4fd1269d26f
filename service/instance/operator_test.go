package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
)

func TestALaunchNamesTheAccountThatItsAdapterMayActBy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	account, robot := b.ServiceAccount(b.project, authz.AppsInstanceRead, authz.AppsInstanceCreate)
	other, _ := b.ServiceAccount(b.Project(b.tenant), authz.AppsInstanceRead)
	broad, _ := b.ServiceAccount(b.project, authz.AppsInstanceDelete)
	before := b.written()
	_, err := b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) {
		in.OperatorServiceAccountID = &other.ID
	}))
	platformtest.Refused(t, err, fault.NotFound, "input.operatorServiceAccountId")
	_, err = b.service.PlanLaunch(b.ctx, b.launch(func(in *instance.LaunchInput) {
		in.OperatorServiceAccountID = &other.ID
	}))
	platformtest.Refused(t, err, fault.NotFound, "input.operatorServiceAccountId")
	_, err = b.service.Launch(b.With(robot),
		b.launch(func(in *instance.LaunchInput) { in.OperatorServiceAccountID = &broad.ID }))
	platformtest.Refused(t, err, fault.Forbidden, "input.operatorServiceAccountId")
	require.Equal(t, before, b.written())

	started, err := b.service.Launch(b.ctx,
		b.launch(func(in *instance.LaunchInput) { in.OperatorServiceAccountID = &account.ID }))
	require.NoError(t, err)
	require.Equal(t, account.ID, *started.Instance.OperatorServiceAccountID)
	shown, err := b.service.Get(b.ctx, started.Instance.ID, instance.Want{})
	require.NoError(t, err)
	require.Equal(t, account.ID, *shown.OperatorServiceAccountID)
	require.Equal(t, 1, b.Count("audit_entry", `allowed AND action = 'launchInstance'
		AND after->>'operatorServiceAccountId' = $1`, account.ID))
}

func TestASystemAppIsLaunchedInThePlatformsOwnTenantAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`UPDATE app SET system = true WHERE id = $1`, b.app.ID)
	b.SQL(`UPDATE manifest SET system = true WHERE app_id = $1`, b.app.ID)
	before := b.written()
	_, err := b.service.Launch(b.ctx, b.launch())
	platformtest.Refused(t, err, fault.NotFound, "input.appSlug") // tenants do not see it
	_, err = b.service.LaunchOptions(b.ctx, b.project.ID, b.app.Slug, "")
	platformtest.Refused(t, err, fault.NotFound)

	operator := b.Operator()
	b.Bind(operator, platformtest.In(authz.ProjectAdmin, b.project))
	ctx := b.As(operator)
	_, err = b.service.Launch(ctx, b.launch())
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.appSlug")
	options, err := b.service.LaunchOptions(ctx, b.project.ID, b.app.Slug, "")
	require.NoError(t, err)
	require.NotEmpty(t, options.Versions[0].Reasons)
	require.Equal(t, before, b.written())

	b.SQL(`UPDATE tenant SET platform = true WHERE id = $1`, b.tenant.ID)
	started, err := b.service.Launch(ctx, b.launch())
	require.NoError(t, err)
	require.True(t, started.Instance.System)
	for system, want := range map[bool]int{true: 1, false: 0} {
		list, err := b.service.List(ctx, b.project.ID, instance.Filter{System: &system}, page.Args{First: 10})
		require.NoError(t, err)
		require.Len(t, list.Rows, want)
	}
}

// Whoever writes the row: the database lets no instance of a system app into another tenant.
func TestTheDatabaseKeepsSystemAppsInThePlatformsTenant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.launched()
	b.SQL(`UPDATE app SET system = true WHERE id = $1`, b.app.ID)
	_, err := b.Admin.Exec(t.Context(), `INSERT INTO instance
		SELECT (jsonb_populate_record(i, '{"id": "ins_twin", "name": "twin"}')).*
		FROM instance i WHERE id = $1`, started.Instance.ID)
	require.ErrorContains(t, err, "platform's own tenant")
}
