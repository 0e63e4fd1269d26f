package artifact_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/platformtest"
	"github.com/gpuaas/app-platform/service/artifact"
	"github.com/gpuaas/app-platform/service/page"
)

const mediaType = "application/vnd.oci.image.manifest.v1+json"

// bench is the service under test before a registry that can be made to lie.
type bench struct {
	*platformtest.Kit
	verbs               *artifact.Service
	operator, publisher context.Context
	host                string
	asked               *atomic.Int64
	lie                 *atomic.Pointer[http.HandlerFunc] // answers instead of the registry, when set
	honest              http.Handler
	t                   *testing.T
}

func newBench(t *testing.T) *bench {
	kit := platformtest.New(t)
	b := &bench{Kit: kit, t: t, asked: new(atomic.Int64), lie: new(atomic.Pointer[http.HandlerFunc]),
		operator: kit.As(kit.Operator()), publisher: kit.As(kit.User(nil, platformtest.OnPlatform(authz.AppPublisher)))}
	b.honest = registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.asked.Add(1)
		if lie := b.lie.Load(); lie != nil && strings.Count(r.URL.Path, "/") > 2 {
			(*lie)(w, r)
			return
		}
		b.honest.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b.host = server.Listener.Addr().String()
	b.verbs = &artifact.Service{DB: kit.DB, Registries: artifact.Registries{Insecure: []string{b.host}}}
	return b
}

// push puts an image of two layers into the registry and answers its pinned reference.
func (b *bench) push() (ref string, image v1.Image) {
	image, err := random.Image(1_000, 2)
	require.NoError(b.t, err)
	digest, err := image.Digest()
	require.NoError(b.t, err)
	ref = fmt.Sprintf("%s/apps/demo@%s", b.host, digest)
	pinned, err := name.NewDigest(ref, name.Insecure)
	require.NoError(b.t, err)
	require.NoError(b.t, remote.Write(pinned.Tag("latest"), image, remote.WithContext(b.t.Context())))
	return ref, image
}

func (b *bench) publish(ref, key string) error {
	_, err := b.verbs.PublishArtifact(b.publisher, artifact.PublishArtifactInput{Name: "demo", MediaType: mediaType, Ref: ref, IdempotencyKey: key})
	return err
}

func refused(t *testing.T, err error, code fault.Code, path ...string) {
	t.Helper()
	got, ok := fault.As(err)
	require.True(t, ok, "want %s, got %v", code, err)
	require.Equal(t, code, got.Code, err.Error())
	for _, p := range path {
		require.Contains(t, err.Error(), "(at "+p+")")
	}
}

func TestAnArtifactIsCheckedAndPublishedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, image := b.push()
	in := artifact.PublishArtifactInput{Name: "demo", MediaType: mediaType, Ref: ref, IdempotencyKey: "k"}
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
	require.Contains(t, string(made.Evidence), `"parts":3`)

	asked := b.asked.Load()
	again, err := b.verbs.PublishArtifact(b.publisher, in)
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)
	require.Equal(t, asked, b.asked.Load(), "a repeat asks no registry")
	refused(t, b.publish(ref, "k2"), fault.Conflict, "input.ref")
	in.Name = "other"
	_, err = b.verbs.PublishArtifact(b.publisher, in)
	refused(t, err, fault.IdempotencyKeyReused)
	require.Equal(t, 1, b.Count("artifact", "")*b.Count("idempotency", ""))
}

func TestWhatIsNotPinnedOrNotThereIsNotPublished(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	repository, digest, _ := strings.Cut(ref, "@")
	refused(t, b.publish(repository+":latest", "k"), fault.InvalidArgument, "input.ref")
	require.ErrorContains(t, b.publish(repository, "k"), "not pinned")
	refused(t, b.publish("nonsense@"+digest, "k"), fault.InvalidArgument, "input.ref")
	refused(t, b.publish("//@"+digest+"0", "k"), fault.InvalidArgument, "input.ref")
	refused(t, b.publish(repository+"@"+platformtest.Digest([]byte("nothing")), "k"), fault.ArtifactUnavailable, "input.ref")
	_, err := b.verbs.PublishArtifact(b.publisher, artifact.PublishArtifactInput{Name: "", MediaType: "x y", Ref: ref, IdempotencyKey: "k"})
	refused(t, err, fault.InvalidArgument, "input.name", "input.mediaType")

	asked := b.asked.Load()
	tenant := b.Tenant()
	_, err = b.verbs.PublishArtifact(b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))),
		artifact.PublishArtifactInput{Name: "demo", MediaType: mediaType, Ref: ref, IdempotencyKey: "k"})
	refused(t, err, fault.Forbidden)
	require.Equal(t, asked, b.asked.Load(), "whoever may not publish makes us ask nobody")
	require.Zero(t, b.Count("artifact", "")+b.Count("idempotency", ""))
}

func TestALyingRegistryIsFoundOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, image := b.push()
	raw, err := image.RawManifest()
	require.NoError(t, err)
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(elsewhere.Close)
	for says, lie := range map[string]http.HandlerFunc{
		"other bytes": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(append(bytes.Clone(raw), ' '))
		},
		"larger than": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 5<<20))
		},
		"does not allow": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
		},
		"does not give": func(w http.ResponseWriter, r *http.Request) { // the manifest, but not its layers
			if strings.Contains(r.URL.Path, "/blobs/") {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write(raw)
		},
		"should have": func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				w.Header().Set("Content-Length", "7")
				return
			}
			_, _ = w.Write(raw)
		},
	} {
		b.lie.Store(&lie)
		err := b.publish(ref, "k")
		require.ErrorContains(t, err, says)
		if says == "does not allow" {
			refused(t, err, fault.DialRefused)
		} else {
			refused(t, err, fault.ArtifactUnavailable)
		}
	}
	require.Zero(t, b.Count("artifact", ""))
	b.lie.Store(nil)
	require.NoError(t, b.publish(ref, "k"))
}

func TestRegistriesAreReachedByTheOperatorsWordAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	b.verbs.Registries.Dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, fault.New(fault.DialRefused, "not there")
	}
	refused(t, b.publish(ref, "k"), fault.DialRefused)
	b.verbs.Registries = artifact.Registries{}
	refused(t, b.publish(ref, "k"), fault.ArtifactUnavailable) // plain HTTP was not allowed, though the host is local
	require.Zero(t, b.Count("artifact", ""))
}

func TestAnArtifactEarnsItsStages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	made, err := b.verbs.PublishArtifact(b.publisher, artifact.PublishArtifactInput{Name: "demo", MediaType: mediaType, Ref: ref, IdempotencyKey: "k"})
	require.NoError(t, err)
	promote := func(as context.Context, to lifecycle.Stage) error {
		_, err := b.verbs.PromoteArtifact(as, artifact.PromoteArtifactInput{ArtifactID: made.ID, To: to, Reason: "tested"})
		return err
	}
	refused(t, promote(b.publisher, lifecycle.StageStaged), fault.Forbidden)
	err = promote(b.operator, lifecycle.StageActive)
	refused(t, err, fault.FailedPrecondition, "input.to")
	require.ErrorContains(t, err, "DRAFT")

	gone := http.HandlerFunc(http.NotFound)
	b.lie.Store(&gone)
	refused(t, promote(b.operator, lifecycle.StageStaged), fault.ArtifactUnavailable)
	b.lie.Store(nil)
	for _, to := range []lifecycle.Stage{lifecycle.StageStaged, lifecycle.StageCanary, lifecycle.StageActive} {
		require.NoError(t, promote(b.operator, to))
	}

	app := b.App("apps")
	pinned := b.Manifest(lifecycle.StageActive, platformtest.Document(app, "1.0.0", b.Adapter("http://adapter.test", nil), made))
	err = promote(b.operator, lifecycle.StageDeprecated)
	refused(t, err, fault.FailedPrecondition, "input.to")
	require.ErrorContains(t, err, string(pinned.ID))
	instance := b.Instance(b.Project(b.Tenant()), pinned, lifecycle.InstanceRunning)
	b.SQL(`UPDATE manifest SET stage = 'DEPRECATED'`)
	require.NoError(t, promote(b.operator, lifecycle.StageDeprecated))
	err = promote(b.operator, lifecycle.StageRetired)
	refused(t, err, fault.FailedPrecondition, "input.to")
	require.ErrorContains(t, err, string(instance.ID))
	b.SQL(`UPDATE instance SET released_at = now()`)
	require.NoError(t, promote(b.operator, lifecycle.StageRetired))

	steps := 0
	for _, entry := range b.Audit() {
		if entry.Action == "promoteArtifact" && entry.Allowed {
			steps++
			require.Equal(t, "tested", entry.Reason)
			require.NotEqual(t, string(entry.Before), string(entry.After))
		}
	}
	require.Equal(t, 5, steps)
	made.ID = ids.New(ids.Artifact)
	refused(t, promote(b.operator, lifecycle.StageStaged), fault.NotFound)
}

func TestOfTwoPromotionsOfAnArtifactOneWins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	made, err := b.verbs.PublishArtifact(b.publisher, artifact.PublishArtifactInput{Name: "demo", MediaType: mediaType, Ref: ref, IdempotencyKey: "k"})
	require.NoError(t, err)
	results := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := b.verbs.PromoteArtifact(b.operator, artifact.PromoteArtifactInput{ArtifactID: made.ID, To: lifecycle.StageStaged, Reason: "tested"})
			results <- err
		}()
	}
	first, second := <-results, <-results
	require.True(t, (first == nil) != (second == nil), "%v, %v", first, second)
}

func TestArtifactsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, second := b.Artifact(lifecycle.StageDraft), b.Artifact(lifecycle.StageActive)
	viewer := b.As(b.User(b.Tenant(), platformtest.In(authz.ProjectViewer, b.Project(b.Tenant()))))
	p, err := b.verbs.Artifacts(viewer, artifact.Filter{}, page.Args{First: 1})
	require.NoError(t, err)
	require.Equal(t, second.ID, p.Rows[0].ID)
	p, err = b.verbs.Artifacts(viewer, artifact.Filter{}, page.Args{First: 1, After: p.Cursors[0]})
	require.NoError(t, err)
	require.Equal(t, first.ID, p.Rows[0].ID)
	require.False(t, p.HasNext)
	one, err := b.verbs.Artifact(viewer, first.ID)
	require.NoError(t, err)
	require.Equal(t, first.Digest, one.Digest)
	_, err = b.verbs.Artifacts(b.As(b.User(b.Tenant())), artifact.Filter{}, page.Args{First: 1})
	refused(t, err, fault.Forbidden)
}

// meanwhile does something once, while the registry is asked for a manifest.
func (b *bench) meanwhile(do func()) {
	var begun atomic.Bool
	hook := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if begun.CompareAndSwap(false, true) {
			do()
		}
		b.honest.ServeHTTP(w, r)
	})
	b.lie.Store(&hook)
}

func TestTheSameCallAtOnceMakesOneArtifact(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	in := artifact.PublishArtifactInput{Name: "demo", MediaType: mediaType, Ref: ref, IdempotencyKey: "k"}
	var inner ids.ID
	b.meanwhile(func() {
		made, err := b.verbs.PublishArtifact(b.publisher, in)
		if err == nil {
			inner = made.ID
		}
	})
	outer, err := b.verbs.PublishArtifact(b.publisher, in)
	require.NoError(t, err)
	require.NotEmpty(t, inner)
	require.Equal(t, inner, outer.ID)
	require.Equal(t, 1, b.Count("artifact", ""))
}

func TestAPromotionThatWasOvertakenWhileTheRegistryWasAskedIsAConflict(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ref, _ := b.push()
	made, err := b.verbs.PublishArtifact(b.publisher, artifact.PublishArtifactInput{Name: "demo", MediaType: mediaType, Ref: ref, IdempotencyKey: "k"})
	require.NoError(t, err)
	b.meanwhile(func() {
		b.SQL(`UPDATE artifact SET stage = 'STAGED'`)
		b.SQL(`UPDATE artifact SET stage = 'CANARY'`)
	})
	_, err = b.verbs.PromoteArtifact(b.operator, artifact.PromoteArtifactInput{ArtifactID: made.ID, To: lifecycle.StageStaged, Reason: "tested"})
	refused(t, err, fault.Conflict, "input.artifactId")
	require.Equal(t, 1, b.Count("artifact", "stage = 'CANARY'"), "a first staging does not roll a canary back")
}
