package artifact_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/artifact"
	"github.com/gpuaas/app-platform/service/kit/page"
)

// house is a tenant with the callers that publish in it.
type house struct {
	tenant         *db.Tenant
	project        *db.Project
	admin, account context.Context
}

func (b *bench) house() house {
	tenant := b.Tenant()
	h := house{tenant: tenant, project: b.Project(tenant),
		admin: b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))}
	_, credential := b.ServiceAccount(h.project, authz.ArtifactRead, authz.ArtifactPublish, authz.ArtifactPromote,
		authz.ArtifactQuarantine)
	h.account = b.With(credential)
	return h
}

func (h house) publish(b *bench, as context.Context, ref, key string) (*db.Artifact, error) {
	in := b.input(ref, key)
	in.ProjectID = &h.project.ID
	return b.verbs.PublishArtifact(as, in)
}

func TestATenantsPeopleAndMachinesTakeTheirOwnArtifactsAllTheWay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.house()
	for name, as := range map[string]context.Context{"a project's service account": h.account,
		"a tenant's admin": h.admin} {
		ref, _ := b.push()
		made, err := h.publish(b, as, ref, "k")
		require.NoError(t, err, name)
		require.Equal(t, h.tenant.ID, *made.TenantID)
		require.Equal(t, h.project.ID, *made.ProjectID)
		again, err := h.publish(b, as, ref, "k")
		require.NoError(t, err, name)
		require.Equal(t, made.ID, again.ID)
		_, err = h.publish(b, as, ref, "k2")
		platformtest.Refused(t, err, fault.Conflict, "input.ref")
		for _, to := range []lifecycle.Stage{lifecycle.StageStaged, lifecycle.StageCanary, lifecycle.StageActive} {
			require.NoError(t, b.promote(as, made.ID, to), name)
		}
		_, err = b.verbs.Verify(as, made.ID)
		require.NoError(t, err, name)
		_, err = b.verbs.Quarantine(as, made.ID, "mine")
		require.NoError(t, err, name)
		_, err = b.verbs.Release(as, made.ID, "mine")
		require.NoError(t, err, name)
		parts, err := b.verbs.PartsOf(as, []ids.ID{made.ID})
		require.NoError(t, err, name)
		require.Len(t, parts[made.ID], 4)
		found, err := b.verbs.ByDigest(as, made.Digest, &h.tenant.ID)
		require.NoError(t, err, name)
		require.Equal(t, made.ID, found.ID)
		require.Equal(t, 3, b.Count("promotion", "object_id = $1 AND tenant_id = $2", made.ID, h.tenant.ID))
	}
}

func TestAnotherTenantSeesAndFeelsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	mine, theirs := b.house(), b.house()
	ref, _ := b.push()
	made, err := theirs.publish(b, theirs.account, ref, "k")
	require.NoError(t, err)
	for name, as := range map[string]context.Context{"account": mine.account, "admin": mine.admin} {
		_, err := theirs.publish(b, as, ref, "k")
		platformtest.Refused(t, err, fault.NotFound)
		platformtest.Refused(t, b.promote(as, made.ID, lifecycle.StageStaged), fault.NotFound)
		for _, verb := range []func() error{
			func() error { _, err := b.verbs.Verify(as, made.ID); return err },
			func() error { _, err := b.verbs.Quarantine(as, made.ID, "theirs"); return err },
			func() error { _, err := b.verbs.Release(as, made.ID, "theirs"); return err },
			func() error { _, err := b.verbs.Artifact(as, made.ID); return err },
			func() error { _, err := b.verbs.ByDigest(as, made.Digest, &theirs.tenant.ID); return err },
		} {
			platformtest.Refused(t, verb(), fault.NotFound)
		}
		list, err := b.verbs.Artifacts(as, artifact.Filter{}, page.Args{First: 10})
		require.NoError(t, err)
		require.Empty(t, list.Rows, name)
		parts, err := b.verbs.PartsOf(as, []ids.ID{made.ID})
		require.NoError(t, err)
		require.Empty(t, parts)
	}
	var heads atomic.Int64
	count := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			heads.Add(1)
		}
		b.honest.ServeHTTP(w, r)
	})
	b.lie.Store(&count)
	own, err := mine.publish(b, mine.account, ref, "k")
	require.NoError(t, err, "the same bytes and the same key are nobody else's business")
	require.NotEqual(t, made.ID, own.ID)
	require.Zero(t, heads.Load(), "what another tenant has read is read again, as if nobody had")
	require.NoError(t, b.publish(ref, "k"), "nor the platform's")
	require.Equal(t, 1, b.Count("artifact", "stage = 'DRAFT' AND quarantined_at IS NULL AND id = $1", made.ID))
}

func TestATenantsOwnSourceComesBeforeThePlatforms(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h, other := b.house(), b.house()
	own := b.Source(h.tenant, lifecycle.SourceOCI, b.host+"/apps", newKey(t).Public())
	ref, _ := b.push()
	_, err := h.publish(b, h.account, ref, "k")
	platformtest.Refused(t, err, fault.SignatureMissing, "input.ref")
	made, err := other.publish(b, other.account, ref, "k")
	require.NoError(t, err)
	require.Equal(t, b.source.ID, *made.SourceID)
	b.SQL(`UPDATE artifact_source SET signature_policy = 'OPTIONAL' WHERE id = $1`, own.ID)
	made, err = h.publish(b, h.account, ref, "k")
	require.NoError(t, err)
	require.Equal(t, own.ID, *made.SourceID)
	b.Policy(h.project, `{"artifactSources":{"deny":["`+b.host+`"]}}`)
	ref, _ = b.push()
	_, err = h.publish(b, h.account, ref, "k2")
	platformtest.Refused(t, err, fault.PolicyDenied, "input.ref")
}

func TestAnAccountOfAnotherProjectAndOneWithoutTheKeyMayNot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.house()
	ref, _ := b.push()
	made, err := h.publish(b, h.account, ref, "k")
	require.NoError(t, err)
	_, credential := b.ServiceAccount(b.Project(h.tenant), authz.ArtifactRead, authz.ArtifactPublish,
		authz.ArtifactPromote)
	platformtest.Refused(t, b.promote(b.With(credential), made.ID, lifecycle.StageStaged), fault.NotFound)
	_, credential = b.ServiceAccount(h.project, authz.ArtifactRead)
	platformtest.Refused(t, b.promote(b.With(credential), made.ID, lifecycle.StageStaged), fault.Forbidden)
	_, err = b.verbs.Quarantine(b.With(credential), made.ID, "mine")
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = h.publish(b, b.With(credential), ref, "k3")
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.verbs.PublishArtifact(h.account, b.input(ref, "k"))
	platformtest.Refused(t, err, fault.Forbidden)
	platforms := b.Artifact(lifecycle.StageDraft)
	platformtest.Refused(t, b.promote(h.admin, platforms.ID, lifecycle.StageStaged), fault.Forbidden)
	require.Equal(t, 2, b.Count("artifact", "stage = 'DRAFT'"))
}

func TestARetirementCountsTheInstancesOfOtherTenantsAndNamesNone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h, other := b.house(), b.house()
	ref, _ := b.push()
	made, err := h.publish(b, h.account, ref, "k")
	require.NoError(t, err)
	pinned := b.Manifest(lifecycle.StageDeprecated,
		platformtest.Document(b.App("apps"), "1.0.0", b.Adapter("http://adapter.test", nil), made))
	own, foreign := b.Instance(h.project, pinned, lifecycle.InstanceRunning),
		b.Instance(other.project, pinned, lifecycle.InstanceRunning)
	for _, to := range []lifecycle.Stage{"STAGED", "CANARY", "ACTIVE", "DEPRECATED"} {
		require.NoError(t, b.promote(h.account, made.ID, to))
	}
	err = b.promote(h.account, made.ID, lifecycle.StageRetired)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.to")
	require.ErrorContains(t, err, string(own.ID))
	require.ErrorContains(t, err, "1 more")
	require.NotContains(t, err.Error(), string(foreign.ID))
	require.NotContains(t, err.Error(), foreign.Name)
	b.SQL(`UPDATE instance SET released_at = now() WHERE id = $1`, own.ID)
	platformtest.Refused(t, b.promote(h.account, made.ID, lifecycle.StageRetired), fault.FailedPrecondition, "input.to")
	err = b.promote(b.operator, made.ID, lifecycle.StageRetired)
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.to")
	require.ErrorContains(t, err, string(foreign.ID))
	b.SQL(`UPDATE instance SET released_at = now() WHERE id = $1`, foreign.ID)
	require.NoError(t, b.promote(h.admin, made.ID, lifecycle.StageRetired))
	shown, err := b.verbs.Artifact(other.account, made.ID)
	require.NoError(t, err, "what a manifest pins is part of the catalog")
	require.Equal(t, lifecycle.StageRetired, shown.Stage)
}
