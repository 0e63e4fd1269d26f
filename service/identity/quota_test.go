package identity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/identity"
)

func TestAQuotaIsSetAndLiftedByWhoManagesIt(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	service := &identity.Service{DB: kit.DB}
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	admin := kit.As(kit.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	members, gpus, gib := 12, 0, 500
	row, err := service.SetQuota(admin, identity.QuotaInput{ProjectID: project.ID, MaxMembers: &members, MaxGPUs: &gpus,
		MaxVolumeGiB: &gib, Reason: "a trial"})
	require.NoError(t, err)
	require.Equal(t, []int{12, 0}, []int{*row.MaxMembers, *row.MaxGpus})
	require.Equal(t, 1, kit.Count("project", "id = $1 AND max_members = 12 AND max_gpus = 0 AND max_volume_gib = 500",
		project.ID))
	shown, err := service.Project(admin, project.ID)
	require.NoError(t, err)
	require.Equal(t, []*int{&members, &gpus, &gib}, []*int{shown.MaxMembers, shown.MaxGpus, shown.MaxVolumeGib},
		"what is set is what is read")
	require.Equal(t, 1, kit.Count("audit_entry",
		"allowed AND action = 'setProjectQuota' AND permission_key = 'project.quota.manage' AND reason = 'a trial' "+
			"AND after ->> 'maxMembers' = '12'"))
	row, err = service.SetQuota(kit.As(kit.Operator()), identity.QuotaInput{ProjectID: project.ID, Reason: "over"})
	require.NoError(t, err)
	require.Nil(t, row.MaxMembers)
	require.Equal(t, 1, kit.Count("project", "id = $1 AND max_members IS NULL AND max_gpus IS NULL AND "+
		"max_volume_gib IS NULL", project.ID))
}

func TestBadQuotasAreRefused(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	service := &identity.Service{DB: kit.DB}
	tenant := kit.Tenant()
	project := kit.Project(tenant)
	admin := kit.As(kit.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	below, above := -1, 100_001
	for path, in := range map[string]identity.QuotaInput{
		"input.maxMembers":   {ProjectID: project.ID, MaxMembers: &below, Reason: "x"},
		"input.maxGpus":      {ProjectID: project.ID, MaxGPUs: &above, Reason: "x"},
		"input.maxVolumeGiB": {ProjectID: project.ID, MaxVolumeGiB: &below, Reason: "x"},
		"input.reason":       {ProjectID: project.ID},
	} {
		_, err := service.SetQuota(admin, in)
		require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
		require.Equal(t, path, fault.From(err).Reasons[0].Path)
	}
	in := identity.QuotaInput{ProjectID: project.ID, Reason: "x"}
	_, err := service.SetQuota(kit.As(kit.User(tenant, platformtest.In(authz.ProjectAdmin, project))), in)
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
	_, err = service.SetQuota(kit.As(kit.User(kit.Tenant())), in)
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	_, err = service.SetQuota(admin, identity.QuotaInput{ProjectID: ids.New(ids.Project), Reason: "x"})
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	require.Zero(t, kit.Count("audit_entry", "allowed"))
}
