package entitlement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/entitlement"
	"github.com/gpuaas/app-platform/service/kit/page"
)

func TestLimitsOfAnEntitlementAreReplacedAndAudited(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	project, app, other := b.Project(tenant), b.App("apps"), b.App("apps")
	viewer := b.As(b.User(tenant, platformtest.In(authz.ProjectViewer, project)))
	two, eight, until := 2, 8, time.Now().Add(time.Hour).Truncate(time.Microsecond)
	in := entitlement.GrantInput{ProjectID: project.ID, AppSlug: app.Slug, ExpiresAt: &until, Reason: "a trial",
		Limits: entitlement.Limits{MaxInstances: &two, MaxMembers: &eight, MaxGpus: &eight,
			Versions: []string{">=1.2 <2"}}}
	first, err := b.verbs.GrantEntitlement(b.operator, in)
	require.NoError(t, err)
	again, err := b.verbs.GrantEntitlement(b.operator, in)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	require.Equal(t, 1, b.Count("audit_entry", "action = 'grantEntitlement' AND allowed"),
		"what says the same changes nothing")

	in.Limits, in.ExpiresAt, in.Reason = entitlement.Limits{MaxGpus: &two}, nil, "less"
	_, err = b.verbs.GrantEntitlement(b.operator, in)
	require.NoError(t, err)
	read, err := b.verbs.Entitlement(viewer, first.ID)
	require.NoError(t, err)
	require.Nil(t, read.MaxInstances)
	require.Nil(t, read.MaxMembers)
	require.Nil(t, read.ExpiresAt)
	require.Equal(t, []any{2, 0, "less"}, []any{*read.MaxGpus, len(read.Versions), read.Reason})
	require.Equal(t, 1, b.Count("audit_entry", `action = 'grantEntitlement' AND object_id = $1 AND before ->> 'maxGpus' = '8' AND before ->> 'maxInstances' = '2'
		AND after ->> 'maxGpus' = '2' AND after ->> 'maxInstances' IS NULL AND reason = 'less'`, first.ID))

	_, err = b.verbs.GrantEntitlement(b.operator, entitlement.GrantInput{ProjectID: project.ID, AppSlug: other.Slug})
	require.NoError(t, err)
	b.SQL(`UPDATE entitlement SET expires_at = now() - interval '1 second' WHERE app_slug = $1`, app.Slug)
	held, err := b.verbs.Entitled(viewer, project.ID, []string{app.Slug, other.Slug})
	require.NoError(t, err)
	require.Equal(t, map[string]bool{app.Slug: false, other.Slug: true}, held, "one that has expired holds no more")
	for ended, want := range map[bool]int{false: 1, true: 2} {
		found, err := b.verbs.Entitlements(viewer, project.ID, ended, page.Args{First: 10})
		require.NoError(t, err)
		require.Len(t, found.Rows, want)
		require.Equal(t, other.Slug, found.Rows[0].AppSlug)
	}
	paged, err := b.verbs.Entitlements(viewer, project.ID, true, page.Args{First: 1})
	require.NoError(t, err)
	paged, err = b.verbs.Entitlements(viewer, project.ID, true, page.Args{First: 1, After: paged.Cursors[0]})
	require.NoError(t, err)
	require.Equal(t, app.Slug, paged.Rows[0].AppSlug)
	_, err = b.verbs.Entitlements(b.As(b.User(b.Tenant())), project.ID, true, page.Args{First: 1})
	platformtest.Refused(t, err, fault.NotFound)

	renewed, err := b.verbs.GrantEntitlement(b.operator, entitlement.GrantInput{ProjectID: project.ID,
		AppSlug: app.Slug})
	require.NoError(t, err)
	require.Equal(t, first.ID, renewed.ID, "one that has expired is renewed in its place")
	held, err = b.verbs.Entitled(viewer, project.ID, []string{app.Slug})
	require.NoError(t, err)
	require.True(t, held[app.Slug])
}

func TestBadLimitsAreNamedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	project, app := b.Project(b.Tenant()), b.App("apps")
	zero, many, past := 0, 100_001, time.Now().Add(-time.Hour)
	_, err := b.verbs.GrantEntitlement(b.operator, entitlement.GrantInput{ProjectID: project.ID, AppSlug: app.Slug,
		ExpiresAt: &past,
		Limits: entitlement.Limits{MaxInstances: &zero, MaxMembers: &many, MaxGpus: &many,
			Versions: []string{"1", "latest"}}})
	platformtest.Refused(t, err, fault.InvalidArgument, "expiresAt", "limits.maxInstances", "limits.maxMembers",
		"limits.maxGpus", "limits.versions.1")
	_, err = b.verbs.GrantEntitlement(b.operator, entitlement.GrantInput{ProjectID: project.ID, AppSlug: app.Slug,
		Limits: entitlement.Limits{Versions: make([]string, 21)}})
	platformtest.Refused(t, err, fault.InvalidArgument, "limits.versions")
	require.Zero(t, b.Count("entitlement", ""))
}

func TestAnEntitlementHoldsUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, other := b.Tenant(), b.Tenant()
	project, app, second := b.Project(tenant), b.App("apps"), b.App("apps")
	admin := b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	viewer := b.As(b.User(tenant, platformtest.In(authz.ProjectViewer, project)))
	stranger := b.As(b.User(other, platformtest.Across(authz.TenantAdmin, other)))

	_, err := b.verbs.GrantEntitlement(b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, project))),
		entitlement.GrantInput{ProjectID: project.ID, AppSlug: app.Slug})
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.verbs.GrantEntitlement(stranger, entitlement.GrantInput{ProjectID: project.ID, AppSlug: app.Slug})
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.verbs.GrantEntitlement(admin, entitlement.GrantInput{ProjectID: project.ID, AppSlug: "nothing"})
	platformtest.Refused(t, err, fault.NotFound, "appSlug")
	require.Zero(t, b.Count("entitlement", ""))

	granted, err := b.verbs.GrantEntitlement(admin, entitlement.GrantInput{ProjectID: project.ID, AppSlug: app.Slug})
	require.NoError(t, err)
	again, err := b.verbs.GrantEntitlement(b.operator, entitlement.GrantInput{ProjectID: project.ID, AppSlug: app.Slug})
	require.NoError(t, err)
	require.Equal(t, granted.ID, again.ID)
	held, err := b.verbs.Entitled(viewer, project.ID, []string{app.Slug, second.Slug})
	require.NoError(t, err)
	require.Equal(t, map[string]bool{app.Slug: true, second.Slug: false}, held)
	_, err = b.verbs.Entitled(stranger, project.ID, []string{app.Slug})
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.verbs.Entitlement(stranger, granted.ID)
	platformtest.Refused(t, err, fault.NotFound)

	_, err = b.verbs.RevokeEntitlement(stranger, project.ID, app.Slug, "")
	platformtest.Refused(t, err, fault.NotFound)
	revoked, err := b.verbs.RevokeEntitlement(admin, project.ID, app.Slug, "over budget")
	require.NoError(t, err)
	require.NotNil(t, revoked.RevokedAt)
	held, err = b.verbs.Entitled(viewer, project.ID, []string{app.Slug})
	require.NoError(t, err)
	require.False(t, held[app.Slug])
	_, err = b.verbs.RevokeEntitlement(admin, project.ID, app.Slug, "over budget")
	platformtest.Refused(t, err, fault.NotFound, "appSlug")
	_, err = b.verbs.GrantEntitlement(admin, entitlement.GrantInput{ProjectID: project.ID, AppSlug: app.Slug})
	require.NoError(t, err)
	require.Equal(t, 2, b.Count("entitlement", ""))
	read, err := b.verbs.Entitlement(viewer, granted.ID)
	require.NoError(t, err)
	require.NotNil(t, read.RevokedAt)
}
