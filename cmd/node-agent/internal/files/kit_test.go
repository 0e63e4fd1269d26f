package files_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/files"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/sdk/tunnel/tunneltest"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

const (
	mib      = 1 << 20
	patience = 60 * time.Second
	// person is the id of the user that writes, on the volume.
	person = 1004
)

// ground is an agent that serves a shared volume, whose folder the test sees, and a local one.
type ground struct {
	t       *testing.T
	store   *volume.Store
	dir     string // of the shared volume
	spec    volumefiles.Spec
	session *tunnel.Session
}

func newGround(t *testing.T) *ground {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("volumes need root")
	}
	shared, local := filepath.Join(t.TempDir(), "shared"), filepath.Join(t.TempDir(), "local")
	storages, err := volume.Parse([]string{"parallel=shared:" + shared, "disk=local:" + local})
	require.NoError(t, err)
	g := &ground{t: t, store: volume.Open(t.Context(), storages, slog.New(slog.DiscardHandler)),
		dir:  filepath.Join(shared, "vol_a"),
		spec: volumefiles.Spec{Volume: "vol_a", Storage: "parallel", SizeBytes: 1 << 30, Write: true, ID: person}}
	g.restart()
	return g
}

// restart is an agent that has just started.
func (g *ground) restart() {
	g.t.Helper()
	platform, agent := tunneltest.Pair(g.t)
	served := &files.Server{Volumes: g.store, Log: slog.New(slog.DiscardHandler)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = agent.Serve(context.WithoutCancel(g.t.Context()), served.Serve)
	}()
	g.t.Cleanup(func() {
		_ = platform.Close()
		<-ended
	})
	g.session = platform
}

// stream opens a stream for a request.
func (g *ground) stream() (net.Conn, error) {
	spec, err := json.Marshal(g.spec)
	require.NoError(g.t, err)
	return g.session.Open(g.t.Context(), tunnel.Open{Kind: volumefiles.Kind, Spec: spec})
}

// do sends a request; pairs are headers. The body is read.
func (g *ground) do(method, path string, body io.Reader, pairs ...string) (*http.Response, string) {
	g.t.Helper()
	folder := path == "" || path[len(path)-1] == '/'
	if folder && path != "" {
		path = path[:len(path)-1]
	}
	return g.raw(method, volumefiles.Address(g.spec.Volume, path, folder), body, pairs...)
}

func (g *ground) raw(method, address string, body io.Reader, pairs ...string) (*http.Response, string) {
	g.t.Helper()
	conn, err := g.stream()
	require.NoError(g.t, err)
	web := &http.Transport{DisableKeepAlives: true, DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	request, err := http.NewRequestWithContext(g.t.Context(), method, "http://volume"+address, body)
	require.NoError(g.t, err)
	for i := 0; i < len(pairs); i += 2 {
		request.Header.Set(pairs[i], pairs[i+1])
	}
	response, err := web.RoundTrip(request)
	require.NoError(g.t, err)
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	require.NoError(g.t, err)
	return response, string(got)
}

// digest is the header's value.
func digest(content []byte) string { return volumefiles.Digest(sha256.Sum256(content)).String() }

// put brings a part of a file.
func (g *ground) put(path string, content []byte, from, to int) (status int, offset, said string) {
	g.t.Helper()
	part := volumefiles.Part{From: int64(from), Length: int64(to - from), Total: int64(len(content))}
	pairs := []string{volumefiles.ReprDigest, digest(content)}
	if part.Length < part.Total {
		pairs = append(pairs, "Content-Range", part.String())
	}
	response, body := g.do(http.MethodPut, path, bytes.NewReader(content[from:to]), pairs...)
	return response.StatusCode, response.Header.Get(volumefiles.UploadOffset), body
}

// progress is how much of an upload is there.
func (g *ground) progress(path string, content []byte) string {
	g.t.Helper()
	response, _ := g.do(http.MethodHead, path, nil, volumefiles.ReprDigest, digest(content), volumefiles.UploadLength,
		strconv.Itoa(len(content)))
	return response.Header.Get(volumefiles.UploadOffset)
}

// refused asserts a refusal by its code and words.
func (g *ground) refused(body, code, words string) {
	g.t.Helper()
	var said volumefiles.Failure
	require.NoError(g.t, json.Unmarshal([]byte(body), &said), "%s", body)
	require.Equal(g.t, code, said.Code, "%s", body)
	require.Contains(g.t, said.Message, words)
	require.NotContains(g.t, said.Message, "/proc/", "no path of the node")
}

// at is a path of the shared volume as the node's root has it.
func (g *ground) at(parts ...string) string {
	return filepath.Join(append([]string{g.dir}, parts...)...)
}

// uploads are what waits.
func (g *ground) uploads() (names []string) {
	g.t.Helper()
	entries, err := os.ReadDir(g.at(volumefiles.UploadsFolder))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(g.t, err)
	for _, one := range entries {
		names = append(names, one.Name())
	}
	return names
}
