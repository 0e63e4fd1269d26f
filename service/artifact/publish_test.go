package artifact_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/fetch"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/artifact"
	"github.com/gpuaas/app-platform/service/kit/page"
)

func TestAnArtifactIsReadWholeAndPublishedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, image := b.push()
	in := b.input(ref, "k")
	made, err := b.verbs.PublishArtifact(b.publisher, in)
	require.NoError(t, err)

	parsed, err := image.Manifest()
	require.NoError(t, err)
	raw, err := image.RawManifest()
	require.NoError(t, err)
	size := int64(len(raw)) + parsed.Config.Size
	for _, layer := range parsed.Layers {
		size += layer.Size
	}
	require.Equal(t, size, made.SizeBytes)
	require.Equal(t, lifecycle.StageDraft, made.Stage)
	require.Equal(t, lifecycle.ArtifactImage, made.Kind)
	require.Equal(t, b.source.ID, *made.SourceID)
	require.Equal(t, lifecycle.SignatureNotChecked, made.Signature)
	require.Nil(t, made.QuarantinedAt)
	require.NotNil(t, made.VerifiedAt)
	require.Contains(t, string(made.Evidence), `"parts":4`)
	parts, err := b.verbs.PartsOf(b.publisher, []ids.ID{made.ID})
	require.NoError(t, err)
	require.Len(t, parts[made.ID], 4)
	require.Equal(t, made.Digest, parts[made.ID][0].Digest)
	require.Equal(t, lifecycle.PartConfig, parts[made.ID][1].Role)
	require.Equal(t, made.Digest, parts[made.ID][3].Parent)

	asked := b.asked.Load()
	again, err := b.verbs.PublishArtifact(b.publisher, in)
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)
	require.Equal(t, asked, b.asked.Load(), "a repeat asks no registry")
	platformtest.Refused(t, b.publish(ref, "k2"), fault.Conflict, "input.ref")
	in.Name = "other"
	_, err = b.verbs.PublishArtifact(b.publisher, in)
	platformtest.Refused(t, err, fault.IdempotencyKeyReused)
	require.Equal(t, 1, b.Count("artifact", "")*b.Count("idempotency", ""))
}

func TestATagIsLookedUpOnceAndPinned(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, _ := b.push()
	in := b.input(b.host+"/apps/demo:latest", "k")
	made, err := b.verbs.PublishArtifact(b.publisher, in)
	require.NoError(t, err)
	require.Equal(t, first, made.Ref)
	second, _ := b.push() // the tag moves
	again, err := b.verbs.PublishArtifact(b.publisher, in)
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)
	require.Equal(t, first, again.Ref, "a tag that has moved since changes nothing")
	in.IdempotencyKey, in.Digest = "k2", made.Digest
	_, err = b.verbs.PublishArtifact(b.publisher, in)
	platformtest.Refused(t, err, fault.DigestMismatch, "input.ref")
	in.Digest = ""
	made, err = b.verbs.PublishArtifact(b.publisher, in)
	require.NoError(t, err)
	require.Equal(t, second, made.Ref)
}

func TestATagThatMovesWhileItIsReadChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, _ := b.push()
	var once sync.Once
	hook := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			once.Do(func() { b.lie.Store(nil); b.push() })
		}
		b.honest.ServeHTTP(w, r)
	})
	b.lie.Store(&hook)
	require.Equal(t, first, b.published(b.host+"/apps/demo:latest", "k").Ref)
}

func TestWhatIsMalformedOrNotThereIsNotPublished(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	digest := platformtest.Digest([]byte("nothing"))
	for name, test := range map[string]struct {
		in   artifact.PublishArtifactInput
		code fault.Code
		path string
	}{
		"no tag and no digest": {b.input(b.host+"/apps/demo@", "k"), fault.InvalidArgument, "input.ref"},
		"no host":              {b.input("nonsense@"+digest, "k"), fault.InvalidArgument, "input.ref"},
		"a digest too long":    {b.input("//@"+digest+"0", "k"), fault.InvalidArgument, "input.ref"},
		"a user in it": {artifact.PublishArtifactInput{Name: "demo", Ref: "https://me:secret@files.test/x",
			Digest: digest, IdempotencyKey: "k"}, fault.InvalidArgument, "input.ref"},
		"a file's digest": {b.input("https://files.test/x", "k"), fault.InvalidArgument, "input.digest"},
		"two digests": {artifact.PublishArtifactInput{Name: "demo", Ref: ref, Digest: digest, IdempotencyKey: "k"},
			fault.DigestMismatch, "input.digest"},
		"half a digest": {artifact.PublishArtifactInput{Name: "demo", Ref: ref, Digest: "sha256:00",
			IdempotencyKey: "k"}, fault.InvalidArgument, "input.digest"},
		"no such digest": {b.input(b.at(digest), "k"), fault.ArtifactUnavailable, "input.ref"},
		"no such tag":    {b.input(b.host+"/apps/demo:none", "k"), fault.ArtifactUnavailable, "input.ref"},
		"no such source": {b.input("registry.test/apps/demo:latest", "k"), fault.SourceUnknown, "input.ref"},
		"no name": {artifact.PublishArtifactInput{MediaType: "x y", Ref: ref, IdempotencyKey: "k"},
			fault.InvalidArgument, "input.mediaType"},
		"no key": {b.input(ref, ""), fault.InvalidArgument, "input.idempotencyKey"},
	} {
		_, err := b.verbs.PublishArtifact(b.publisher, test.in)
		require.Error(t, err, name)
		platformtest.RefusedAlso(t, err, test.code, test.path)
	}
	asked := b.asked.Load()
	tenant := b.Tenant()
	_, err := b.verbs.PublishArtifact(b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))),
		b.input(ref, "k"))
	platformtest.Refused(t, err, fault.Forbidden)
	b.SQL(`UPDATE artifact_source SET disabled_at = now()`)
	platformtest.Refused(t, b.publish(ref, "k"), fault.SourceUnknown, "input.ref")
	require.Equal(t, asked, b.asked.Load(), "whoever may not publish makes us ask nobody")
	b.nothing()
}

func TestThePlatformsPolicyRulesWhereArtifactsComeFrom(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	asked := b.asked.Load()
	b.Policy(nil, `{"artifactSources":{"allow":["`+b.host+`/other"]}}`)
	err := b.publish(ref, "k")
	platformtest.Refused(t, err, fault.PolicyDenied, "input.ref")
	require.Equal(t, fault.SourceDenied, fault.From(err).Reasons[0].Code)
	b.Policy(nil, `{"final":{"artifactSources":["`+b.host+`"]}}`)
	err = b.publish(ref, "k")
	platformtest.Refused(t, err, fault.PolicyDenied, "input.ref")
	require.Equal(t, fault.PlatformFinal, fault.From(err).Reasons[0].Code)
	require.Equal(t, asked, b.asked.Load(), "a registry that is not allowed is not asked")
	b.nothing()
	b.Policy(nil, `{"artifactSources":{"allow":["`+b.host+`/apps"]}}`)
	require.NoError(t, b.publish(ref, "k"))
}

func TestSourcesAreReachedByTheOperatorsWordAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	b.verbs.Reach.Dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, fault.New(fault.DialRefused, "not there")
	}
	platformtest.Refused(t, b.publish(ref, "k"), fault.DialRefused, "input.ref")
	b.verbs.Reach = fetch.Reach{}
	// plain HTTP was not allowed, though the host is local
	platformtest.Refused(t, b.publish(ref, "k"), fault.ArtifactUnavailable, "input.ref")
	b.nothing()
}

func TestTheSameCallAtOnceMakesOneArtifact(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	made := make(chan ids.ID, 4)
	for range cap(made) {
		go func() {
			row, err := b.verbs.PublishArtifact(b.publisher, b.input(ref, "k"))
			if err != nil {
				t.Error(err)
				made <- ""
				return
			}
			made <- row.ID
		}()
	}
	first := <-made
	for range cap(made) - 1 {
		require.Equal(t, first, <-made)
	}
	require.Equal(t, 1, b.Count("artifact", ""))
	require.Equal(t, 4, b.Count("artifact_part", ""))
}

func TestAReadingThatOutlastsItsRequestIsWaitedForByARepeat(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(begun) })
		<-goOn
		b.honest.ServeHTTP(w, r)
	})
	b.lie.Store(&slow)
	impatient, giveUp := context.WithCancel(b.publisher)
	answered := make(chan error)
	go func() {
		_, err := b.verbs.PublishArtifact(impatient, b.input(ref, "k"))
		answered <- err
	}()
	<-begun
	giveUp()
	err := <-answered
	platformtest.Refused(t, err, fault.Unavailable)
	require.True(t, fault.From(err).CanRetry())
	b.nothing()
	asked := b.asked.Load()
	close(goOn)
	require.Equal(t, ref, b.published(ref, "k").Ref)
	require.Equal(t, asked+3, b.asked.Load(), "config and two layers, and no second manifest: it was one reading")
}

func TestArtifactsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, second := b.Artifact(lifecycle.StageDraft), b.Artifact(lifecycle.StageActive)
	b.SQL(`UPDATE artifact SET quarantined_at = now(), name = '50%_off' WHERE id = $1`, first.ID)
	viewer := b.As(b.User(b.Tenant(), platformtest.In(authz.ProjectViewer, b.Project(b.Tenant()))))
	p, err := b.verbs.Artifacts(viewer, artifact.Filter{}, page.Args{First: 1})
	require.NoError(t, err)
	require.Equal(t, second.ID, p.Rows[0].ID)
	p, err = b.verbs.Artifacts(viewer, artifact.Filter{}, page.Args{First: 1, After: p.Cursors[0]})
	require.NoError(t, err)
	require.Equal(t, first.ID, p.Rows[0].ID)
	require.False(t, p.HasNext)
	yes, no := true, false
	for name, test := range map[string]struct {
		filter artifact.Filter
		want   ids.ID
	}{
		"by name":         {artifact.Filter{Search: "%_OFF"}, first.ID},
		"by address":      {artifact.Filter{Search: second.Ref}, second.ID},
		"by stage":        {artifact.Filter{Stages: []lifecycle.Stage{lifecycle.StageActive}}, second.ID},
		"in quarantine":   {artifact.Filter{Quarantined: &yes}, first.ID},
		"not quarantined": {artifact.Filter{Quarantined: &no}, second.ID},
	} {
		p, err := b.verbs.Artifacts(viewer, test.filter, page.Args{First: 10})
		require.NoError(t, err, name)
		require.Len(t, p.Rows, 1, name)
		require.Equal(t, test.want, p.Rows[0].ID, name)
	}
	_, err = b.verbs.Artifacts(viewer, artifact.Filter{Search: string(make([]byte, 101))}, page.Args{First: 1})
	platformtest.Refused(t, err, fault.InvalidArgument, "search")
	one, err := b.verbs.Artifact(viewer, first.ID)
	require.NoError(t, err)
	require.Equal(t, first.Digest, one.Digest)
	one, err = b.verbs.ByDigest(viewer, second.Digest, nil)
	require.NoError(t, err)
	require.Equal(t, second.ID, one.ID)
	_, err = b.verbs.ByDigest(viewer, "latest", nil)
	platformtest.Refused(t, err, fault.InvalidArgument, "digest")
	_, err = b.verbs.ByDigest(viewer, platformtest.Digest(nil), nil)
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.verbs.Artifacts(b.As(b.User(b.Tenant())), artifact.Filter{}, page.Args{First: 1})
	platformtest.Refused(t, err, fault.Forbidden)
}
