package entry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/catalog/entry"
	"github.com/gpuaas/app-platform/service/entitlement"
	"github.com/gpuaas/app-platform/service/kit/page"
)

func TestASystemAppIsInTheCatalogOfTheStaffAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := entry.CreateAppInput{Slug: "gauges", DisplayName: "Gauges", PermissionFamily: "apps", System: true,
		IdempotencyKey: "k"}
	_, err := b.verbs.CreateApp(b.stranger, in)
	platformtest.Refused(t, err, fault.Forbidden, "")
	app, err := b.verbs.CreateApp(b.operator, in)
	require.NoError(t, err)
	require.True(t, app.System)
	version := b.Manifest(lifecycle.StageActive, platformtest.Document(app, "1.0.0",
		b.Adapter("https://adapter.test", nil), b.Artifact(lifecycle.StageActive)))
	require.True(t, b.Ent.Manifest.GetX(t.Context(), version.ID).System, "a version carries its app's word")

	own := b.Tenant()
	b.SQL(`UPDATE tenant SET platform = true WHERE id = $1`, own.ID)
	_, robot := b.ServiceAccount(b.Project(own), authz.AppsCatalogRead, authz.ManifestRead)
	for name, as := range map[string]struct {
		ctx  func() (sees bool)
		sees bool
	}{
		"a tenant": {func() bool { _, err := b.catalog.App(b.stranger, app.Slug); return err == nil }, false},
		"a tenant's list": {func() bool {
			all, err := b.catalog.Apps(b.stranger, "", nil, page.Args{First: 10})
			require.NoError(t, err)
			return len(all.Rows) > 0
		}, false},
		"a tenant's versions": {func() bool {
			_, err := b.catalog.Manifest(b.stranger, version.ID)
			return err == nil
		}, false},
		"the staff": {func() bool { _, err := b.catalog.Manifest(b.operator, version.ID); return err == nil }, true},
		"the platform's tenant": {func() bool {
			_, err := b.catalog.App(b.With(robot), app.Slug)
			require.NoError(t, err)
			_, err = b.catalog.Manifest(b.With(robot), version.ID)
			return err == nil
		}, true},
	} {
		require.Equal(t, as.sees, as.ctx(), name)
	}
	b.App("apps")
	for system, want := range map[bool]string{true: "gauges", false: "app-"} {
		list, err := b.catalog.Apps(b.operator, "", &system, page.Args{First: 10})
		require.NoError(t, err)
		require.Len(t, list.Rows, 1)
		require.Contains(t, list.Rows[0].Slug, want)
	}

	rights := &entitlement.Service{DB: b.DB}
	_, err = rights.GrantEntitlement(b.operator, entitlement.GrantInput{ProjectID: b.project.ID, AppSlug: app.Slug})
	platformtest.Refused(t, err, fault.FailedPrecondition, "appSlug")
	require.Zero(t, b.Count("entitlement", ""))
	_, err = rights.GrantEntitlement(b.operator, entitlement.GrantInput{ProjectID: b.Project(own).ID,
		AppSlug: app.Slug})
	require.NoError(t, err)
}
