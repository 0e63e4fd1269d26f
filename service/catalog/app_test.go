package catalog_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/catalog/entry"
	"github.com/gpuaas/app-platform/service/kit/page"
)

func TestAPublisherAddsAnAppOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := entry.CreateAppInput{Slug: "notebooks", DisplayName: "Notebooks", Summary: "Live code",
		PermissionFamily: "apps", IdempotencyKey: "k"}
	made, err := b.entries.CreateApp(b.publisher, in)
	require.NoError(t, err)
	again, err := b.entries.CreateApp(b.publisher, in)
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)
	require.Equal(t, 1, b.audited("createApp", ""))

	in.IdempotencyKey = "k2"
	_, err = b.entries.CreateApp(b.publisher, in)
	platformtest.Refused(t, err, fault.Conflict, "input.slug")
	in.Slug, in.PermissionFamily = "x", "games"
	_, err = b.entries.CreateApp(b.publisher, in)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.slug", "input.permissionFamily")
	tenant := b.Tenant()
	in = entry.CreateAppInput{Slug: "mine", DisplayName: "Mine", PermissionFamily: "apps", IdempotencyKey: "k"}
	_, err = b.entries.CreateApp(b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))), in)
	platformtest.Refused(t, err, fault.Forbidden)
	require.Equal(t, 1, b.Count("app", ""))
	require.Equal(t, 1, b.audited("createApp", "FORBIDDEN"))
}

func TestAnAppIsGivenToTheProjectThatPublishesIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	project, gone := b.Project(b.Tenant()), b.Project(b.Tenant())
	b.SQL(`UPDATE project SET deleted_at = now() WHERE id = $1`, gone.ID)
	in := entry.CreateAppInput{Slug: "notebooks", DisplayName: "Notebooks", PermissionFamily: "apps",
		PublisherProjectID: &project.ID, IdempotencyKey: "k"}
	made, err := b.entries.CreateApp(b.publisher, in)
	require.NoError(t, err)
	require.Equal(t, []any{&project.TenantID, &project.ID}, []any{made.PublisherTenantID, made.PublisherProjectID})
	audited := false
	for _, entry := range b.Audit() {
		audited = audited || entry.Action == "createApp" && strings.Contains(string(entry.After), string(project.ID))
	}
	require.True(t, audited)
	again, err := b.entries.CreateApp(b.publisher, in)
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)
	in.PublisherProjectID = &gone.ID
	_, err = b.entries.CreateApp(b.publisher, in)
	platformtest.Refused(t, err, fault.IdempotencyKeyReused)

	_, credential := b.ServiceAccount(project, authz.ManifestRead, authz.AppsCatalogRead)
	publisher := b.With(credential)
	stranger := b.As(b.User(b.Tenant(), platformtest.In(authz.ProjectAdmin, b.Project(b.Tenant()))))
	for as, want := range map[context.Context]*ids.ID{b.operator: &project.ID, b.publisher: &project.ID,
		publisher: &project.ID, stranger: nil} {
		seen, err := b.verbs.App(as, made.Slug)
		require.NoError(t, err)
		require.Equal(t, want, seen.PublisherProjectID)
		list, err := b.verbs.Apps(as, "", nil, page.Args{First: 5})
		require.NoError(t, err)
		require.Equal(t, want, list.Rows[0].PublisherProjectID)
	}

	missing := ids.New(ids.Project)
	for _, id := range []*ids.ID{&gone.ID, &missing} {
		_, err = b.entries.CreateApp(b.publisher, entry.CreateAppInput{Slug: "others", DisplayName: "Others",
			PermissionFamily: "apps", PublisherProjectID: id, IdempotencyKey: "k2"})
		platformtest.Refused(t, err, fault.NotFound, "input.publisherProjectId")
	}
	require.Equal(t, 1, b.Count("app", ""))
	require.Equal(t, 1, b.Count("idempotency", ""))
}

func TestTheCatalogIsPagedSearchedAndLimitedToFamiliesOfTheCaller(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, app := range []struct{ slug, name, family string }{
		{"alpha", "100% Alpha", "apps"}, {"beta", "Beta_one", "apps"}, {"gamma", "Gamma", "scheduler"},
		{"zeta", "Beta two", "apps"},
	} {
		_, err := b.entries.CreateApp(b.publisher, entry.CreateAppInput{Slug: app.slug, DisplayName: app.name,
			PermissionFamily: app.family, IdempotencyKey: app.slug})
		require.NoError(t, err)
	}
	tenant := b.Tenant()
	project := b.Project(tenant)
	viewer := b.As(b.User(tenant, platformtest.In(authz.ProjectViewer, project)))
	_, key := b.ServiceAccount(project, authz.AppsCatalogRead)
	bot := b.With(key)
	slugs := func(search string, as ...int) (out []string) {
		args := page.Args{First: 2}
		ctx := viewer
		if len(as) > 0 {
			ctx = bot
		}
		for {
			p, err := b.verbs.Apps(ctx, search, nil, args)
			require.NoError(t, err)
			for _, row := range p.Rows {
				out = append(out, row.Slug)
			}
			if !p.HasNext {
				return out
			}
			args.After = p.Cursors[len(p.Cursors)-1]
		}
	}
	require.Equal(t, []string{"alpha", "beta", "gamma", "zeta"}, slugs(""))
	require.Equal(t, []string{"alpha", "beta", "zeta"}, slugs("", 1), "another family's apps are left out")
	require.Equal(t, []string{"beta", "zeta"}, slugs("BETA"))
	require.Equal(t, []string{"alpha"}, slugs("%"), "a percent sign stands for itself")
	require.Equal(t, []string{"beta"}, slugs("a_o"), "an underscore stands for itself")
	require.Empty(t, slugs(`\`))

	gamma, err := b.verbs.App(viewer, "gamma")
	require.NoError(t, err)
	_, err = b.verbs.App(bot, "gamma")
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.verbs.AppByID(bot, gamma.ID)
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.verbs.App(viewer, "nothing")
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.verbs.Apps(b.As(b.User(tenant)), "", nil, page.Args{First: 2})
	platformtest.Refused(t, err, fault.Forbidden)
}

func TestManifestsAreListedWithTheirArtifacts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	first := b.Manifest(lifecycle.StageDeprecated, w.document("1.0.0"))
	second := b.Manifest(lifecycle.StageActive, w.document("1.1.0"))
	viewer := b.As(b.User(b.Tenant(), platformtest.In(authz.ProjectViewer, b.Project(b.Tenant()))))

	p, err := b.verbs.Manifests(viewer, w.app.Slug, page.Args{First: 1})
	require.NoError(t, err)
	require.Equal(t, second.ID, p.Rows[0].ID, "newest first")
	require.True(t, p.HasNext)
	p, err = b.verbs.Manifests(viewer, w.app.Slug, page.Args{First: 1, After: p.Cursors[0]})
	require.NoError(t, err)
	require.Equal(t, first.ID, p.Rows[0].ID)
	require.False(t, p.HasNext)

	active, err := b.verbs.ActiveManifests(viewer, []string{w.app.Slug, "nothing"})
	require.NoError(t, err)
	require.Len(t, active, 1)
	require.Equal(t, second.Document, active[w.app.Slug].Document)
	pins, err := b.verbs.ArtifactsOf(viewer, []ids.ID{first.ID, second.ID})
	require.NoError(t, err)
	require.Equal(t, w.artifact.ID, pins[first.ID][0].ID)
	require.Equal(t, w.artifact.ID, pins[second.ID][0].ID)
	many, err := b.verbs.Many(viewer, []ids.ID{first.ID, ids.New(ids.Manifest)})
	require.NoError(t, err)
	require.Len(t, many, 1)

	nobody := b.As(b.User(b.Tenant()))
	_, err = b.verbs.Manifests(nobody, w.app.Slug, page.Args{First: 1})
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.verbs.Manifest(nobody, first.ID)
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.verbs.Manifest(viewer, ids.New(ids.Manifest))
	platformtest.Refused(t, err, fault.NotFound)
}
