package entry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/artifact"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/catalog/entry"
	"github.com/gpuaas/app-platform/service/entitlement"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/sandbox"
)

// bench is a publisher's project with an account of its own, a sibling project and another tenant.
type bench struct {
	*platformtest.Kit
	verbs                        *entry.Service
	catalog                      *catalog.Service
	tenant                       *db.Tenant
	project                      *db.Project
	publisher, stranger, sibling context.Context
	operator                     context.Context
}

func newBench(t *testing.T) *bench {
	kit := platformtest.New(t)
	b := &bench{Kit: kit, verbs: &entry.Service{DB: kit.DB}, catalog: &catalog.Service{DB: kit.DB},
		tenant: kit.Tenant()}
	b.project = kit.Project(b.tenant)
	_, credential := kit.ServiceAccount(b.project, authz.SandboxManage, authz.ManifestRead, authz.ManifestPublish,
		authz.ManifestPromote, authz.ManifestSmoke, authz.ArtifactRead, authz.AppsCatalogRead, authz.AppsInstanceCreate)
	other := kit.Tenant()
	b.publisher, b.operator = kit.With(credential), kit.As(kit.Operator())
	b.stranger = kit.As(kit.User(other, platformtest.Across(authz.TenantAdmin, other)))
	b.sibling = kit.As(kit.User(b.tenant, platformtest.In(authz.ProjectAdmin, kit.Project(b.tenant))))
	return b
}

func (b *bench) input(slug string) entry.CreateSandboxAppInput {
	return entry.CreateSandboxAppInput{ProjectID: b.project.ID, Slug: b.tenant.Slug + "-" + slug, DisplayName: "Mine",
		PermissionFamily: "apps", IdempotencyKey: slug}
}

// published is an app in the sandbox with a version of a stage, and its adapter, in the sandbox too.
func (b *bench) published(t *testing.T, stage lifecycle.Stage) (*db.App, *db.Manifest, *db.Adapter) {
	t.Helper()
	app, err := b.verbs.CreateSandboxApp(b.publisher, b.input("app"))
	require.NoError(t, err)
	adapter := b.Adapter("https://adapter.test", json.RawMessage(`{"name": "a", "build": "b1", "apps": []}`))
	b.SQL(`UPDATE adapter SET tenant_id = $2, project_id = $3 WHERE id = $1`, adapter.ID, b.tenant.ID, b.project.ID)
	document := platformtest.Document(app, "1.0.0", adapter, b.Artifact(lifecycle.StageActive))
	return app, b.Manifest(stage, document), adapter
}

func TestAPublisherAddsAnAppOfItsOwnWithoutAnOperator(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := b.input("one")
	made, err := b.verbs.CreateSandboxApp(b.publisher, in)
	require.NoError(t, err)
	require.True(t, made.Sandbox)
	require.Equal(t, b.project.ID, *made.PublisherProjectID)
	require.Equal(t, 1, b.Count("entitlement", "project_id = $1 AND app_slug = $2", b.project.ID, in.Slug))
	again, err := b.verbs.CreateSandboxApp(b.publisher, in)
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)
	require.Equal(t, 1, b.Count("audit_entry", "action = 'createSandboxApp' AND allowed AND project_id = $1",
		b.project.ID))

	for name, c := range map[string]struct {
		as   context.Context
		in   func(*entry.CreateSandboxAppInput)
		code fault.Code
		path string
	}{
		"a name of somebody else's": {b.publisher,
			func(in *entry.CreateSandboxAppInput) { in.Slug, in.IdempotencyKey = "slurm", "x" },
			fault.InvalidArgument, "input.slug"},
		"the name again": {b.publisher, func(in *entry.CreateSandboxAppInput) { in.IdempotencyKey = "two" },
			fault.Conflict, "input.slug"},
		"by another tenant":  {b.stranger, func(*entry.CreateSandboxAppInput) {}, fault.NotFound, ""},
		"by another project": {b.sibling, func(*entry.CreateSandboxAppInput) {}, fault.NotFound, ""},
		"by the operator":    {b.operator, func(*entry.CreateSandboxAppInput) {}, fault.Forbidden, ""},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := b.input("one")
			c.in(&wrong)
			_, err := b.verbs.CreateSandboxApp(c.as, wrong)
			platformtest.Refused(t, err, c.code, c.path)
		})
	}
	require.Equal(t, 1, b.Count("app", ""))
	require.Equal(t, 1, b.Count("entitlement", ""))
}

func TestATenantHasABoundedNumberOfSandboxes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range sandbox.Most {
		_, err := b.verbs.CreateSandboxApp(b.publisher, b.input(fmt.Sprintf("app-%d", i)))
		require.NoError(t, err)
	}
	_, err := b.verbs.CreateSandboxApp(b.publisher, b.input("more"))
	platformtest.Refused(t, err, fault.LimitExceeded, "input.projectId")
	require.Equal(t, sandbox.Most, b.Count("app", ""))
	b.SQL(`UPDATE app SET sandbox = false WHERE slug = $1`, b.tenant.Slug+"-app-0")
	_, err = b.verbs.CreateSandboxApp(b.publisher, b.input("more"))
	require.NoError(t, err, "an opened one is not counted")
}

func TestNothingOfASandboxIsAnotherTenants(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	app, version, _ := b.published(t, lifecycle.StageActive)
	for name, as := range map[string]context.Context{"publisher": b.publisher, "sibling": b.sibling,
		"staff": b.operator} {
		seen, err := b.catalog.App(as, app.Slug)
		require.NoError(t, err, name)
		require.True(t, seen.Sandbox)
		_, err = b.catalog.Manifest(as, version.ID)
		require.NoError(t, err, name)
	}
	_, err := b.catalog.App(b.stranger, app.Slug)
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = b.catalog.AppByID(b.stranger, app.ID)
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = b.catalog.Manifest(b.stranger, version.ID)
	platformtest.Refused(t, err, fault.NotFound, "")
	apps, err := b.catalog.Apps(b.stranger, "", nil, page.Args{First: 10})
	require.NoError(t, err)
	require.Empty(t, apps.Rows)
	versions, err := b.catalog.Manifests(b.stranger, app.Slug, page.Args{First: 10})
	require.NoError(t, err)
	require.Empty(t, versions.Rows)
	var pinned string
	require.NoError(t, b.Admin.QueryRow(t.Context(), `SELECT artifact_id FROM manifest_artifact WHERE manifest_id = $1`,
		version.ID).Scan(&pinned))
	_, err = (&artifact.Service{DB: b.DB}).Artifact(b.stranger, ids.ID(pinned))
	require.NoError(t, err, "a sandbox hides nothing of the platform's")
	reasons, err := b.catalog.LintManifest(b.stranger, version.Document)
	require.NoError(t, err)
	require.NotEmpty(t, reasons)
	require.Contains(t, reasons[0].Message, "no app")
}

func TestOnlyTheSandboxsProjectLaunchesTheApp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	app, _, _ := b.published(t, lifecycle.StageActive)
	sibling, theirs := b.Project(b.tenant), b.Project(b.Tenant())
	staff := b.User(nil, platformtest.OnPlatform(authz.PlatformOperator), platformtest.In(authz.ProjectAdmin, theirs))
	admin := b.User(b.tenant, platformtest.Across(authz.TenantAdmin, b.tenant))
	launches := &instance.Service{DB: b.DB}
	for name, c := range map[string]struct {
		as      context.Context
		project *db.Project
		code    fault.Code
	}{
		"another project of the tenant": {b.As(admin), sibling, fault.FailedPrecondition},
		"another tenant": {b.As(b.User(&db.Tenant{ID: theirs.TenantID},
			platformtest.In(authz.ProjectAdmin, theirs))), theirs, fault.NotFound},
		"staff, who see it, in their project": {b.As(staff), theirs, fault.FailedPrecondition},
	} {
		t.Run(name, func(t *testing.T) {
			b.SQL(`INSERT INTO entitlement (id, tenant_id, project_id, app_slug, created_at)
				VALUES ($1, $2, $3, $4, now())
				ON CONFLICT DO NOTHING`, "etl_"+string(c.project.ID)[4:], c.project.TenantID, c.project.ID, app.Slug)
			_, err := launches.Launch(c.as, instance.LaunchInput{ProjectID: c.project.ID, AppSlug: app.Slug,
				Name: "mine", AllocationIDs: []ids.ID{ids.New(ids.Allocation)}, DeadlineSeconds: 600,
				OperatingMode:     lifecycle.ModeTenantDedicated,
				ControlPlaneScope: lifecycle.ControlPlaneProject, IdempotencyKey: "k"})
			platformtest.Refused(t, err, c.code, "input.appSlug")
		})
	}
	require.Zero(t, b.Count("instance", ""))
	_, err := (&entitlement.Service{DB: b.DB}).GrantEntitlement(b.As(b.User(&db.Tenant{ID: theirs.TenantID},
		platformtest.Across(authz.TenantAdmin, &db.Tenant{ID: theirs.TenantID}))),
		entitlement.GrantInput{ProjectID: theirs.ID, AppSlug: app.Slug})
	platformtest.Refused(t, err, fault.NotFound, "appSlug")
}

func TestAManifestNamesNoAdapterOfSomebodyElsesSandbox(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, version, adapter := b.published(t, lifecycle.StageDraft)
	finds := func() []fault.Reason {
		reasons, err := b.catalog.LintManifest(b.operator, version.Document)
		require.NoError(t, err)
		return reasons
	}
	require.Empty(t, finds(), "an app in the sandbox names the sandbox's adapter")
	elsewhere := b.Project(b.tenant)
	b.SQL(`UPDATE adapter SET project_id = $2 WHERE id = $1`, adapter.ID, elsewhere.ID)
	require.Len(t, finds(), 1)
	b.SQL(`UPDATE adapter SET project_id = $2 WHERE id = $1`, adapter.ID, b.project.ID)
	b.SQL(`UPDATE app SET sandbox = false`)
	require.Len(t, finds(), 1, "nor does an app that is open to others")
	require.Equal(t, "adapter", finds()[0].Path)
}

func TestAnOperatorOpensASandboxAndNothingIsLost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	app, version, adapter := b.published(t, lifecycle.StageActive)
	in := entry.OpenAppInput{AppSlug: app.Slug, Reason: "looked at"}
	for _, as := range []context.Context{b.publisher, b.sibling, b.stranger} {
		_, err := b.verbs.OpenApp(as, in)
		platformtest.Refused(t, err, fault.Forbidden, "")
	}
	_, err := b.verbs.OpenApp(b.operator, in)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.appSlug")
	require.Contains(t, err.Error(), adapter.Name)
	b.SQL(`UPDATE adapter SET project_id = NULL, tenant_id = NULL`)
	_, err = b.verbs.OpenApp(b.operator, in)
	platformtest.Refused(t, err, fault.EvidenceMissing, "input.appSlug")
	require.True(t, b.Count("app", "sandbox") == 1 && b.Count("manifest", "sandbox") == 1, "a refusal opens nothing")

	next := b.Manifest(lifecycle.StageCanary,
		platformtest.Document(app, "1.1.0", adapter, b.Artifact(lifecycle.StageActive)))
	in.Override = "known to us"
	_, err = b.verbs.OpenApp(b.operator, in)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.appSlug")
	b.SQL(`UPDATE manifest SET stage = 'STAGED' WHERE id = $1`, next.ID)
	opened, err := b.verbs.OpenApp(b.operator, in)
	require.NoError(t, err)
	require.False(t, opened.Sandbox)
	require.Equal(t, b.project.ID, *opened.PublisherProjectID, "its publisher stays")
	_, err = b.verbs.OpenApp(b.operator, in)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.appSlug")
	require.Equal(t, 1, b.Count("audit_entry", "action = 'openApp' AND allowed"))
	require.Equal(t, 1, b.Count("entitlement", "revoked_at IS NULL"))

	seen, err := b.catalog.App(b.stranger, app.Slug)
	require.NoError(t, err)
	require.Equal(t, opened.ID, seen.ID)
	read, err := b.catalog.Manifest(b.stranger, version.ID)
	require.NoError(t, err)
	require.Equal(t, lifecycle.StageActive, read.Stage)
}
