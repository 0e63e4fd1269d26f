package artifact_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/fetch"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/signing"
	"github.com/gpuaas/app-platform/service/artifact"
)

func (b *bench) parts(id ids.ID) []*db.ArtifactPart {
	b.t.Helper()
	parts, err := b.verbs.PartsOf(b.publisher, []ids.ID{id})
	require.NoError(b.t, err)
	return parts[id]
}

func TestAnIndexIsReadWithAllThatItLists(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	shared := []byte("a layer of both")
	image := func(architecture string) []byte {
		config := encode(t, object{"os": "linux", "architecture": architecture})
		manifest := encode(t, object{"schemaVersion": 2, "mediaType": mediaType,
			"config": descriptor("application/vnd.oci.image.config.v1+json", config),
			"layers": []object{descriptor("application/vnd.oci.image.layer.v1.tar", shared)}})
		b.put(mediaType, "", manifest, config, shared)
		return manifest
	}
	amd, arm := image("amd64"), image("arm64")
	index := encode(t, object{"schemaVersion": 2, "mediaType": indexType, "manifests": []object{
		descriptor(mediaType, amd, object{"platform": object{"os": "linux", "architecture": "amd64"}}),
		descriptor(mediaType, arm)}})
	made := b.published(b.at(b.put(indexType, "", index)), "k")
	require.Equal(t, lifecycle.ArtifactImage, made.Kind)
	require.Equal(t, indexType, made.MediaType)
	require.ElementsMatch(t, []string{"linux/amd64", "linux/arm64"}, made.Platforms)
	parts := b.parts(made.ID)
	require.Len(t, parts, 7)
	var roles []lifecycle.PartRole
	for i, part := range parts {
		require.Equal(t, i, part.Position)
		roles = append(roles, part.Role)
	}
	require.Equal(t, []lifecycle.PartRole{"MANIFEST", "MANIFEST", "CONFIG", "LAYER", "MANIFEST", "CONFIG",
		"LAYER"}, roles)
	require.Equal(t, "linux/amd64", parts[1].Platform)
	require.Equal(t, made.Digest, parts[4].Parent)
	require.Equal(t, parts[4].Digest, parts[6].Parent)
	total := len(index) + len(amd) + len(arm) + len(shared)
	require.EqualValues(t, int64(total)+parts[2].SizeBytes+parts[5].SizeBytes, made.SizeBytes,
		"what both use counts once")
}

func TestAnOCIArtifactKeepsItsTypeAndTheNamesOfItsFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	weights, words := []byte("weights"), []byte("words")
	title := func(name string) object {
		return object{"annotations": object{"org.opencontainers.image.title": name}}
	}
	manifest := encode(t, object{"schemaVersion": 2, "mediaType": mediaType,
		"artifactType": "application/vnd.test.model",
		"config":       descriptor("application/vnd.oci.empty.v1+json", []byte("{}")),
		"layers": []object{descriptor("application/octet-stream", weights, title("model/weights.bin")),
			descriptor("text/plain", words, title("words.txt"))}})
	made := b.published(b.at(b.put(mediaType, "v1", manifest, []byte("{}"), weights, words)), "k")
	require.Equal(t, lifecycle.ArtifactOCI, made.Kind)
	require.Equal(t, "application/vnd.test.model", made.MediaType)
	require.Empty(t, made.Platforms)
	parts := b.parts(made.ID)
	require.Equal(t, []string{"", "", "model/weights.bin", "words.txt"},
		[]string{parts[0].Title, parts[1].Title, parts[2].Title, parts[3].Title})
}

func TestWhatWasReadBeforeInASourceIsOnlyAskedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	layer := []byte("a large layer of two versions")
	version := func(n string) string {
		config := encode(t, object{"os": "linux", "architecture": "amd64", "version": n})
		return b.at(b.put(mediaType, "", encode(t, object{"schemaVersion": 2, "mediaType": mediaType,
			"config": descriptor("application/vnd.oci.image.config.v1+json", config),
			"layers": []object{descriptor("x/y", layer)}}), config, layer))
	}
	first, second := version("1"), version("2")
	var lock sync.Mutex
	reads := map[string]int{}
	count := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, platformtest.Digest(layer)) {
			lock.Lock()
			reads[r.Method]++
			lock.Unlock()
		}
		b.honest.ServeHTTP(w, r)
	})
	b.lie.Store(&count)
	made := b.published(first, "k1")
	b.published(second, "k2")
	require.Equal(t, map[string]int{http.MethodGet: 1, http.MethodHead: 1}, reads)
	_, err := b.verbs.Verify(b.publisher, made.ID)
	require.NoError(t, err)
	require.Equal(t, 2, reads[http.MethodGet], "what is verified is read, whatever was read before")
}

// files serves one file with what lies beside it, and answers its address.
func (b *bench) files(kind lifecycle.SourceKind, handler http.HandlerFunc) (address string) {
	server := httptest.NewServer(handler)
	b.t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	b.source = b.Source(nil, kind, "https://"+host+"/models/")
	b.verbs.Reach = fetch.Reach{Insecure: []string{b.host, host}}
	return "https://" + host + "/models/Weights-1.bin"
}

func TestAFileIsPublishedByItsAddressAndDigest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	body := []byte("weights")
	key := newKey(t)
	bundle, err := signing.Blob(platformtest.Digest(body), key)
	require.NoError(t, err)
	address := b.files(lifecycle.SourceHTTPS, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, ".sigstore.json"):
			_, _ = w.Write(bundle)
		case strings.HasSuffix(r.URL.Path, ".sig"):
			http.NotFound(w, r)
		default:
			_, _ = w.Write(body)
		}
	})
	b.SignerKey(b.source, key.Public())
	b.policy(lifecycle.SignatureRequired)
	in := artifact.PublishArtifactInput{Name: "weights", Ref: address, Digest: platformtest.Digest([]byte("others")),
		IdempotencyKey: "k"}
	_, err = b.verbs.PublishArtifact(b.publisher, in)
	platformtest.Refused(t, err, fault.DigestMismatch, "input.ref")
	b.nothing()
	in.Digest = platformtest.Digest(body)
	made, err := b.verbs.PublishArtifact(b.publisher, in)
	require.NoError(t, err)
	require.Equal(t, lifecycle.ArtifactBlob, made.Kind)
	require.Equal(t, address, made.Ref)
	require.EqualValues(t, len(body), made.SizeBytes)
	require.Equal(t, lifecycle.SignatureVerified, made.Signature)
	parts := b.parts(made.ID)
	require.Len(t, parts, 1)
	require.Equal(t, lifecycle.PartBlob, parts[0].Role)
	require.EqualValues(t, len(body), parts[0].SizeBytes)
}

// zeros gives a file of zeros, by Range too.
func zeros(size int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, &zeroFile{size: size})
	}
}

type zeroFile struct{ size, at int64 }

func (z *zeroFile) Read(into []byte) (int, error) {
	n := min(int64(len(into)), z.size-z.at)
	clear(into[:n])
	z.at += n
	if n == 0 {
		return 0, http.ErrBodyReadAfterClose // never reached: ServeContent copies exactly
	}
	return int(n), nil
}

func (z *zeroFile) Seek(offset int64, whence int) (int64, error) {
	z.at = map[int]int64{0: 0, 1: z.at, 2: z.size}[whence] + offset
	return z.at, nil
}

// alone is the variable that is set in the process that measures itself, and not in the one that starts it.
const alone = "ARTIFACT_TEST_ALONE"

func TestALargeFileIsReadInLittleMemory(t *testing.T) {
	t.Parallel()
	if os.Getenv(alone) == "" { // what is measured is a whole process, which other tests would share
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestALargeFileIsReadInLittleMemory$",
			"-test.v") // #nosec G204 G702 -- this very test
		child.Env = append(os.Environ(), alone+"=1")
		out, err := child.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), "--- PASS: TestALargeFileIsReadInLittleMemory")
		return
	}
	b := newBench(t)
	const size = 256 << 20
	// The SHA-256 of 256 MiB of zeros.
	const digest = "sha256:a6d72ac7690f53be6ae46ba88506bd97302a093f7108472bd9efc3cefda06484"
	address := b.files(lifecycle.SourceHTTPS, zeros(size))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	made, err := b.verbs.PublishArtifact(b.publisher,
		artifact.PublishArtifactInput{Name: "zeros", Ref: address, Digest: digest, IdempotencyKey: "k"})
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	require.EqualValues(t, size, made.SizeBytes)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "of %s bytes read", strconv.Itoa(size))
}
