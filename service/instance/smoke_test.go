package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
)

func TestASmokeLaunchIsThePublishersOrThePlatforms(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Manifest(lifecycle.StageStaged, b.document("2.0.0"))
	tenant := &db.Tenant{ID: b.project.TenantID}
	admin := b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant),
		platformtest.In(authz.ProjectAdmin, b.project)))
	in := b.launch(func(in *instance.LaunchInput) { in.Version, in.IdempotencyKey, in.Smoke = "2.0.0", "a", true })
	before := b.written()
	_, err := b.service.Launch(admin, in)
	platformtest.Refused(t, err, fault.Forbidden, "") // the key in one's own tenant tests nobody else's version
	require.Equal(t, before, b.written())
	b.SQL(`UPDATE app SET publisher_tenant_id = $1, publisher_project_id = $2`, tenant.ID, b.project.ID)
	started, err := b.service.Launch(admin, in)
	require.NoError(t, err)
	require.True(t, started.Instance.Smoke)
}
