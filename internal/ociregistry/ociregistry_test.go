package ociregistry_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/ociregistry"
)

// serve opens the registry in dir and answers its host.
func serve(t *testing.T, dir string) string {
	t.Helper()
	handler, err := ociregistry.New(dir)
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func reference(t *testing.T, host, rest string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(host + "/" + rest)
	require.NoError(t, err)
	return ref
}

func TestPushedImageIsStillThereByTagAndDigestAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	image, err := random.Image(2048, 2)
	require.NoError(t, err)
	digest, err := image.Digest()
	require.NoError(t, err)
	require.NoError(t, remote.Write(reference(t, serve(t, dir), "apps/one:v1"), image))

	host := serve(t, dir)
	for _, rest := range []string{"apps/one:v1", "apps/one@" + digest.String()} {
		got, err := remote.Image(reference(t, host, rest))
		require.NoError(t, err)
		layers, err := got.Layers()
		require.NoError(t, err)
		require.Len(t, layers, 2)
	}
}

func TestIndexIsRestoredAfterTheManifestsItLists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var index v1.ImageIndex = empty.Index
	for range 3 {
		image, err := random.Image(64, 1)
		require.NoError(t, err)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image})
	}
	// "a" sorts before the digests, so that the index comes first on disk.
	require.NoError(t, remote.WriteIndex(reference(t, serve(t, dir), "apps/many:a"), index))
	_, err := remote.Index(reference(t, serve(t, dir), "apps/many:a"))
	require.NoError(t, err)
}

func TestDeletedManifestStaysDeleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	image, err := random.Image(64, 1)
	require.NoError(t, err)
	ref := reference(t, serve(t, dir), "apps/gone:v1")
	require.NoError(t, remote.Write(ref, image))
	require.NoError(t, remote.Delete(ref))
	_, err = remote.Head(reference(t, serve(t, dir), "apps/gone:v1"))
	require.ErrorContains(t, err, "404")
}

func TestOversizedAndMalformedManifestsAreRefusedAndNotStored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host := serve(t, dir)
	for _, bad := range []struct {
		reference string
		body      []byte
		status    int
		why       string
	}{
		{"v1", bytes.Repeat([]byte(" "), 4<<20+1), http.StatusRequestEntityTooLarge, "larger than 4 MiB"},
		{"v1", []byte("{"), http.StatusBadRequest, "not JSON"},
		{"sha256:" + strings.Repeat("0", 64), []byte("{}"), http.StatusBadRequest,
			"manifest has digest sha256:44136fa3"},
	} {
		url, body := "http://"+host+"/v2/apps/bad/manifests/"+bad.reference, bad.body
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, bytes.NewReader(body))
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		said, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, bad.status, answer.StatusCode)
		require.Contains(t, string(said), bad.why)
	}
	serve(t, dir) // nothing stored that keeps it from opening
}
