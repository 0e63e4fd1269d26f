package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
)

func TestALaunchSaysWhoRunsItsControlPlaneAndWhomThatServes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	shared := b.launch(func(in *instance.LaunchInput) { in.ControlPlaneScope = lifecycle.ControlPlaneTenant })
	before := b.written()
	_, err := b.service.Launch(b.ctx, shared)
	platformtest.Refused(t, err, fault.Forbidden, "")
	require.Equal(t, before, b.written(), "whoever runs a project does not launch for the tenant")
	require.NotEmpty(t, b.denials("control_plane.create"))
	_, robot := b.ServiceAccount(b.project, authz.Keys()...)
	_, err = b.service.Launch(b.With(robot), shared)
	require.Error(t, err, "nor does a service account")
	require.Equal(t, before, b.written())

	both := b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project),
		platformtest.Across(authz.TenantAdmin, b.tenant)))
	managed := b.launch(func(in *instance.LaunchInput) { in.OperatingMode = lifecycle.ModePlatformManaged })
	_, err = b.service.Launch(both, managed)
	platformtest.Refused(t, err, fault.PolicyDenied, "input.operatingMode")
	require.Equal(t, fault.ModeDenied, fault.From(err).Reasons[0].Code)
	require.Equal(t, before, b.written())

	started, err := b.service.Launch(both, shared)
	require.NoError(t, err)
	require.Equal(t, []string{"TENANT_DEDICATED", "TENANT"}, []string{started.Instance.OperatingMode,
		started.Instance.ControlPlaneScope})
	read, err := b.service.Get(b.ctx, started.Instance.ID, instance.Want{})
	require.NoError(t, err)
	require.Equal(t, "TENANT", read.ControlPlaneScope)
	require.Equal(t, 1, b.Count("app_instance_event",
		"type = 'apps.instance.requested' AND payload ->> 'operatingMode' = 'TENANT_DEDICATED' AND payload ->> "+
			"'controlPlaneScope' = 'TENANT'"))
	require.Equal(t, 1, b.Count("audit_entry",
		"allowed AND action = 'launchInstance' AND after ->> 'controlPlaneScope' = 'TENANT'"))
}

func TestAPlatformManagedControlPlaneLaunchesOncePolicyAllowsIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`INSERT INTO policy_overlay (id, scope, revision, document, created_at)
		VALUES ($1, 'PLATFORM', 1, '{"operatingModes":{"allow":["TENANT_DEDICATED","PLATFORM_MANAGED"]}}', now())`,
		ids.New(ids.PolicyOverlay))
	managed := b.launch(func(in *instance.LaunchInput) { in.OperatingMode = lifecycle.ModePlatformManaged })
	_, err := b.service.Launch(b.ctx, managed)
	platformtest.Refused(t, err, fault.Forbidden, "")
	both := b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project),
		platformtest.Across(authz.TenantAdmin, b.tenant)))
	started, err := b.service.Launch(both, managed)
	require.NoError(t, err)
	require.Equal(t, []string{"PLATFORM_MANAGED", "PROJECT"}, []string{started.Instance.OperatingMode,
		started.Instance.ControlPlaneScope})
	plain, err := b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) {
		in.Name, in.IdempotencyKey, in.AllocationIDs = "plain", "p", []ids.ID{b.allocation().ID}
	}))
	require.NoError(t, err, "the default needs nothing more")
	require.Equal(t, "TENANT_DEDICATED", plain.Instance.OperatingMode)
}
