package catalog_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/kit/page"
)

// listed is the versions of one page.
func (b *bench) listed(ctx context.Context, filter catalog.ManifestFilter) (versions []string) {
	b.t.Helper()
	p, err := b.verbs.ManifestList(ctx, filter, page.Args{First: 100})
	require.NoError(b.t, err)
	for _, row := range p.Rows {
		versions = append(versions, row.Version)
	}
	return versions
}

func TestManifestsOfAllAppsAreListedNewestFirstAndNarrowed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	other := b.world()
	for i := range 5 {
		b.Manifest(lifecycle.StageDeprecated, w.document(fmt.Sprintf("1.0.%d", i)))
	}
	active := w.document("2.0.0")
	active["displayName"] = "50% off_sale"
	b.Manifest(lifecycle.StageActive, active)
	b.Manifest(lifecycle.StageCanary, other.document("3.0.0"))
	viewer := b.As(b.User(b.Tenant(), platformtest.In(authz.ProjectViewer, b.Project(b.Tenant()))))
	require.Equal(t, []string{"3.0.0", "2.0.0", "1.0.4", "1.0.3", "1.0.2", "1.0.1", "1.0.0"},
		b.listed(viewer, catalog.ManifestFilter{}))
	require.Equal(t, []string{"3.0.0"}, b.listed(viewer, catalog.ManifestFilter{AppSlug: other.app.Slug}))
	require.Equal(t, []string{"3.0.0", "2.0.0"}, b.listed(viewer,
		catalog.ManifestFilter{Stages: []lifecycle.Stage{lifecycle.StageActive, lifecycle.StageCanary}}))
	require.Equal(t, []string{"2.0.0"}, b.listed(viewer, catalog.ManifestFilter{Search: "0% OFF_"}))
	require.Empty(t, b.listed(viewer, catalog.ManifestFilter{Search: "0_ OFF"}),
		"what is searched for stands for itself")

	first, err := b.verbs.ManifestList(viewer, catalog.ManifestFilter{}, page.Args{First: 4})
	require.NoError(t, err)
	require.True(t, first.HasNext)
	rest, err := b.verbs.ManifestList(viewer, catalog.ManifestFilter{}, page.Args{First: 4, After: first.Cursors[3]})
	require.NoError(t, err)
	require.Len(t, rest.Rows, 3)
	require.Equal(t, "1.0.2", rest.Rows[0].Version)
	_, err = b.verbs.ManifestList(b.As(b.User(b.Tenant())), catalog.ManifestFilter{}, page.Args{First: 4})
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.verbs.ManifestList(viewer, catalog.ManifestFilter{Search: fmt.Sprintf("%0101d", 1)}, page.Args{First: 4})
	platformtest.Refused(t, err, fault.InvalidArgument, "search")
}

func TestManifestsOfFamiliesThatTheCallerDoesNotSeeAreLeftOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	hidden := b.App("scheduler")
	b.Manifest(lifecycle.StageActive, w.document("1.0.0"))
	b.Manifest(lifecycle.StageActive, platformtest.Document(hidden, "2.0.0", w.adapter, w.artifact))
	project := b.Project(b.Tenant())
	_, credential := b.ServiceAccount(project, authz.ManifestRead, authz.AppsCatalogRead)
	require.Equal(t, []string{"1.0.0"}, b.listed(b.With(credential), catalog.ManifestFilter{}))
	require.Equal(t, []string{"2.0.0", "1.0.0"}, b.listed(b.operator, catalog.ManifestFilter{}))
	_, credential = b.ServiceAccount(project, authz.ManifestRead)
	require.Empty(t, b.listed(b.With(credential), catalog.ManifestFilter{}))
}

func TestAppsTellTheirCanaryAndTheirPicture(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, two, three := b.world(), b.world(), b.world()
	icon := func(w world, version, picture string) map[string]any {
		document := w.document(version)
		document["icon"] = "data:image/png;base64," + picture
		return document
	}
	b.Manifest(lifecycle.StageActive, icon(one, "1.0.0", "AAAA"))
	b.Manifest(lifecycle.StageCanary, icon(one, "1.1.0", "BBBB"))
	b.Manifest(lifecycle.StageDraft, icon(two, "1.0.0", "CCCC"))
	b.Manifest(lifecycle.StageDraft, icon(two, "1.1.0", "DDDD"))
	slugs := []string{one.app.Slug, two.app.Slug, three.app.Slug}
	icons, err := b.verbs.Icons(b.operator, slugs)
	require.NoError(t, err)
	require.Equal(t, map[string]string{one.app.Slug: "data:image/png;base64,AAAA",
		two.app.Slug: "data:image/png;base64,DDDD", three.app.Slug: ""}, icons)
	canaries, err := b.verbs.CanaryManifests(b.operator, slugs)
	require.NoError(t, err)
	require.Len(t, canaries, 1)
	require.Equal(t, "1.1.0", canaries[one.app.Slug].Version)
	stranger := b.As(b.User(b.Tenant()))
	_, err = b.verbs.Icons(stranger, slugs)
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.verbs.CanaryManifests(stranger, slugs)
	platformtest.Refused(t, err, fault.Forbidden)
}

func TestAnArtifactTellsWhatPinsIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.world()
	lonely := b.Artifact(lifecycle.StageDraft)
	var newest *db.Manifest
	for i := range 52 {
		newest = b.Manifest(lifecycle.StageDraft, w.document(fmt.Sprintf("1.0.%d", i)))
	}
	pinned, err := b.verbs.PinnedBy(b.operator, []ids.ID{w.artifact.ID, lonely.ID})
	require.NoError(t, err)
	require.Len(t, pinned[w.artifact.ID], 50)
	require.Equal(t, newest.ID, pinned[w.artifact.ID][0].ID)
	require.Empty(t, pinned[lonely.ID])
	_, err = b.verbs.PinnedBy(b.As(b.User(b.Tenant())), []ids.ID{w.artifact.ID})
	platformtest.Refused(t, err, fault.Forbidden)
	parts, err := b.verbs.ArtifactsOf(b.operator, ids1(newest))
	require.NoError(t, err)
	require.Equal(t, w.artifact.Digest, parts[newest.ID][0].Digest)
}
