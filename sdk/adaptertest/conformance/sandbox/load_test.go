package sandbox_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
	"github.com/gpuaas/app-platform/sdk/publish"
)

func TestAFileAndALayoutAreLoadedAndFetched(t *testing.T) {
	t.Parallel()
	r, dir := newRig(t), t.TempDir()
	r.Artifacts = &sandbox.Artifacts{}
	file := filepath.Join(dir, "weights")
	require.NoError(t, os.WriteFile(file, []byte("weights"), 0o600))
	blob, err := r.Artifacts.Load("model", file)
	require.NoError(t, err)
	require.Equal(
		t,
		adapter.Artifact{
			Name: "model", Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("weights"))),
			MediaType: "application/octet-stream",
		},
		blob,
	)

	layout := filepath.Join(dir, "layout")
	digest, err := publish.Build(layout, publish.Image{Files: []publish.File{{From: file}}, Platform: "linux/amd64"})
	require.NoError(t, err)
	image, err := r.Artifacts.Load("image", layout)
	require.NoError(t, err)
	require.Equal(t, digest, image.Digest)
	require.Equal(t, "application/vnd.oci.image.manifest.v1+json", image.MediaType)
	for _, loaded := range []adapter.Artifact{blob, image} {
		out := r.do(adapter.TaskFetchArtifact, adapter.FetchArtifact{Digest: loaded.Digest,
			Path: "/srv/" + loaded.Name})
		require.Equal(t, adapter.TaskSucceeded, out.State, out.Message)
	}

	_, err = publish.Build(layout, publish.Image{Files: []publish.File{{From: file}}, Platform: "linux/arm64"})
	require.NoError(t, err)
	index, err := r.Artifacts.Load("image", layout)
	require.NoError(t, err)
	require.NotEqual(t, digest, index.Digest)
	require.Equal(t, "application/vnd.oci.image.index.v1+json", index.MediaType)
}

func TestWhatIsNoArtifactIsNotLoaded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o700))
	var artifacts sandbox.Artifacts
	load := func(want string) {
		t.Helper()
		_, err := artifacts.Load("image", dir)
		require.ErrorContains(t, err, "artifact image: ")
		require.ErrorContains(t, err, want)
	}
	load("not an OCI image layout")
	index := filepath.Join(dir, "index.json")
	require.NoError(t, os.WriteFile(index, []byte(`{"manifests":[]}`), 0o600))
	load("lists no manifest")
	require.NoError(t, os.WriteFile(index, []byte(`{"manifests":[{"digest":"sha256:00","size":1}]}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "blobs", "sha256", "00"), []byte("else"), 0o600))
	load("blob 00 has the digest sha256:")
	large, err := os.Create(filepath.Join(dir, "large"))
	require.NoError(t, err)
	require.NoError(t, large.Truncate(512<<20+1))
	require.NoError(t, large.Close())
	_, err = artifacts.Load("large", filepath.Join(dir, "large"))
	require.ErrorContains(t, err, "too large to be kept in memory")
}
