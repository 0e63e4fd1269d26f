package publish_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/publish"
)

// write writes a file with a mode and an age.
func write(t *testing.T, path, text string, mode os.FileMode, age time.Duration) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-age)))
	return path
}

// read reads the JSON of a layout's blob.
func read(t *testing.T, dir, digest string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "blobs", "sha256", strings.TrimPrefix(digest, "sha256:")))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, into))
}

func TestAnImageHoldsItsFilesAndNothingOfWhoBuiltIt(t *testing.T) {
	t.Parallel()
	folder, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	image := publish.Image{Platform: "linux/arm64/v8", User: "65532:65532", Env: []string{"A=b"}, Files: []publish.File{
		{From: write(t, filepath.Join(folder, "server"), "program", 0o700, time.Hour), To: "/usr/bin/server"},
		{From: write(t, filepath.Join(folder, "server.conf"), "port", 0o640, 0), To: "/etc/server/server.conf"},
	}}
	digest, err := publish.Build(out, image)
	require.NoError(t, err)
	var manifest struct {
		Config struct{ Digest string }
		Layers []struct{ Digest, MediaType string }
	}
	read(t, out, digest, &manifest)
	var config struct {
		Architecture, OS, Variant string
		Config                    struct {
			User            string
			Env, Entrypoint []string
		}
	}
	read(t, out, manifest.Config.Digest, &config)
	require.Equal(t, []string{"linux", "arm64", "v8", "65532:65532"},
		[]string{config.OS, config.Architecture, config.Variant, config.Config.User})
	require.Equal(t, []string{"/usr/bin/server"}, config.Config.Entrypoint, "the first file")
	require.Equal(t, []string{"A=b"}, config.Config.Env)

	file, err := os.Open(filepath.Join(out, "blobs", "sha256", strings.TrimPrefix(manifest.Layers[0].Digest,
		"sha256:")))
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	packed, err := gzip.NewReader(file)
	require.NoError(t, err)
	found := map[string]int64{}
	for archive := tar.NewReader(packed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.Zero(t, header.ModTime.Unix())
		require.Zero(t, header.Uid+header.Gid)
		require.Empty(t, header.Uname)
		found[header.Name] = header.Mode
	}
	require.Equal(t, map[string]int64{"etc/": 0o755, "etc/server/": 0o755, "etc/server/server.conf": 0o644,
		"usr/": 0o755, "usr/bin/": 0o755, "usr/bin/server": 0o755}, found)

	left, err := filepath.Glob(filepath.Join(out, ".blob-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	write(t, filepath.Join(folder, "server"), "program", 0o755, 0)
	again, err := publish.Build(filepath.Join(t.TempDir(), "other"), image)
	require.NoError(t, err)
	require.Equal(t, digest, again)
}

func TestALayoutThatWasTamperedWithIsNotPushed(t *testing.T) {
	t.Parallel()
	folder, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	digest, err := publish.Build(out, publish.Image{Platform: "linux/amd64",
		Files: []publish.File{{From: write(t, filepath.Join(folder, "p"), "p", 0o755, 0)}}})
	require.NoError(t, err)
	manifest := filepath.Join(out, "blobs", "sha256", strings.TrimPrefix(digest, "sha256:"))
	write(t, manifest, "{}", 0o644, 0)
	_, err = publish.Registry{PlainHTTP: true}.PushLayout(t.Context(), out, "127.0.0.1:1/app:1")
	require.ErrorContains(t, err, "do not match the digest in its name")
	write(t, filepath.Join(out, "index.json"), "garbage", 0o644, 0)
	_, err = publish.Registry{PlainHTTP: true}.PushLayout(t.Context(), out, "127.0.0.1:1/app:1")
	require.ErrorContains(t, err, "is not an OCI image layout")
}
