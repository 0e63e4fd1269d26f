package artifact_test

import (
	"bytes"
	"context"
	"crypto"
	"encoding/json"
	"fmt"
	"io"
	"log"
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
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/fetch"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/signing"
	"github.com/gpuaas/app-platform/service/artifact"
	"github.com/gpuaas/app-platform/service/catalog/trust"
)

const (
	mediaType = "application/vnd.oci.image.manifest.v1+json"
	indexType = "application/vnd.oci.image.index.v1+json"
)

// bench is the service under test before a registry that can lie.
type bench struct {
	*platformtest.Kit
	verbs               *artifact.Service
	trust               *trust.Service
	operator, publisher context.Context
	host                string
	source              *db.ArtifactSource
	asked               *atomic.Int64
	lie                 *atomic.Pointer[http.HandlerFunc] // answers instead of the registry, when set
	honest              http.Handler
	t                   *testing.T
}

// newBench has one source of the platform: the registry, whose signatures are optional unless keys are given.
func newBench(t *testing.T, keys ...crypto.PublicKey) *bench {
	kit := platformtest.New(t)
	b := &bench{Kit: kit, t: t, asked: new(atomic.Int64), lie: new(atomic.Pointer[http.HandlerFunc]),
		operator: kit.As(kit.Operator()), publisher: kit.As(kit.User(nil, platformtest.OnPlatform(authz.AppPublisher)))}
	b.honest = registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
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
	b.source = kit.Source(nil, lifecycle.SourceOCI, b.host, keys...)
	vault, err := custody.Open(t.Context(), "", t.TempDir())
	require.NoError(t, err)
	b.trust = &trust.Service{DB: kit.DB}
	b.verbs = &artifact.Service{DB: kit.DB, Vault: vault, Reach: fetch.Reach{Insecure: []string{b.host}}}
	return b
}

// policy sets what becomes at the source of what is not signed.
func (b *bench) policy(policy lifecycle.SignaturePolicy) {
	b.SQL(`UPDATE artifact_source SET signature_policy = $2 WHERE id = $1`, b.source.ID, policy)
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

// put puts blobs and a manifest into the registry, under a tag or under its digest, and answers its digest.
func (b *bench) put(mediaType, tag string, manifest []byte, blobs ...[]byte) string {
	b.t.Helper()
	send := func(method, path, mediaType string, body []byte) {
		request := httptest.NewRequest(method, "http://"+b.host+"/v2/apps/demo/"+path, bytes.NewReader(body))
		request.Header.Set("Content-Type", mediaType)
		recorder := httptest.NewRecorder()
		b.honest.ServeHTTP(recorder, request)
		require.Equal(b.t, http.StatusCreated, recorder.Code, recorder.Body.String())
	}
	for _, blob := range blobs {
		send(http.MethodPost, "blobs/uploads/?digest="+platformtest.Digest(blob), "application/octet-stream", blob)
	}
	digest := platformtest.Digest(manifest)
	if tag == "" {
		tag = digest
	}
	send(http.MethodPut, "manifests/"+tag, mediaType, manifest)
	return digest
}

// at is the pinned reference to a digest of the one repository.
func (b *bench) at(digest string) string { return b.host + "/apps/demo@" + digest }

// sign pushes a signature of what a reference is pinned to.
func (b *bench) sign(ref string, key crypto.Signer, classic bool) {
	b.t.Helper()
	_, digest, _ := strings.Cut(ref, "@")
	signed, err := signing.Image(signing.Descriptor{MediaType: mediaType, Digest: digest, Size: 1}, key)
	if classic {
		signed, err = signing.ClassicImage(b.host+"/apps/demo", digest, key, nil)
	}
	require.NoError(b.t, err)
	b.put(mediaType, signed.Tag, signed.Manifest, signed.Blobs...)
}

func (b *bench) input(ref, key string) artifact.PublishArtifactInput {
	return artifact.PublishArtifactInput{Name: "demo", Ref: ref, IdempotencyKey: key}
}

func (b *bench) publish(ref, key string) error {
	_, err := b.verbs.PublishArtifact(b.publisher, b.input(ref, key))
	return err
}

// published publishes as the platform's publisher.
func (b *bench) published(ref, key string) *db.Artifact {
	b.t.Helper()
	made, err := b.verbs.PublishArtifact(b.publisher, b.input(ref, key))
	require.NoError(b.t, err)
	return made
}

func (b *bench) promote(as context.Context, id ids.ID, to lifecycle.Stage) error {
	_, err := b.verbs.PromoteArtifact(as, artifact.PromoteArtifactInput{ArtifactID: id, To: to, Reason: "tested"})
	return err
}

// smoked brings a passed report of a smoke of the artifact's kind.
func (b *bench) smoked(of *db.Artifact) {
	b.t.Helper()
	_, sign := b.runner("smokes")
	_, err := b.trust.SubmitSmoke(b.publisher, sign(of, smokeOf(b.t, of, "passed")))
	require.NoError(b.t, err)
}

// nothing asserts that nothing was written.
func (b *bench) nothing() {
	b.t.Helper()
	require.Zero(b.t, b.Count("artifact", "")+b.Count("artifact_part", "")+b.Count("idempotency", "")+
		b.Count("promotion",
			""))
}

func newKey(t *testing.T) crypto.Signer {
	key, err := signing.NewKey("ecdsa-p256")
	require.NoError(t, err)
	return key
}

func encode(t *testing.T, document any) []byte {
	data, err := json.Marshal(document)
	require.NoError(t, err)
	return data
}

type object = map[string]any

func descriptor(mediaType string, data []byte, more ...object) object {
	out := object{"mediaType": mediaType, "digest": platformtest.Digest(data), "size": len(data)}
	for _, one := range more {
		for key, value := range one {
			out[key] = value
		}
	}
	return out
}

func sumHex(data []byte) string { return strings.TrimPrefix(platformtest.Digest(data), "sha256:") }
