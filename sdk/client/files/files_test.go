package files_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/files"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

// node plays the platform with one file; cut is after how many bytes it breaks a request off, by the request's number.
type node struct {
	t      *testing.T
	volume *files.Volume

	mu      sync.Mutex
	part    []byte
	content []byte
	tag     string
	lie     bool // about the digest
	asked   int
	ranges  []string
	cut     map[int]int
	before  func(request int)
}

func newNode(t *testing.T) *node {
	n := &node{t: t, tag: `"1"`, cut: map[int]int{}, before: func(int) {}}
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	api, err := client.New(server.URL, client.Options{Token: "secret"})
	require.NoError(t, err)
	n.volume = &files.Volume{Client: api, ID: "vol_1"}
	return n
}

func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	header := w.Header()
	upload := r.Header.Get(volumefiles.ReprDigest)
	switch {
	case r.Method == http.MethodHead && upload != "":
		header.Set(volumefiles.UploadOffset, strconv.Itoa(len(n.part)))
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodHead:
		header.Set("ETag", n.tag)
		header.Set("Content-Length", strconv.Itoa(len(n.content)))
	case r.Method == http.MethodPut:
		n.take(w, r)
	case r.Method == http.MethodGet:
		n.give(w, r)
	}
}

// take takes a part, as far as it is not cut.
func (n *node) take(w http.ResponseWriter, r *http.Request) {
	n.asked++
	n.ranges = append(n.ranges, r.Header.Get("Content-Range"))
	part, err := volumefiles.ParsePart(r.Header.Get("Content-Range"), r.ContentLength)
	if err != nil || part.From != int64(len(n.part)) {
		n.t.Errorf("a part from %d where %d bytes are there: %v", part.From, len(n.part), err)
	}
	if most, ok := n.cut[n.asked]; ok {
		got, _ := io.ReadAll(io.LimitReader(r.Body, int64(most)))
		n.part = append(n.part, got...)
		panic(http.ErrAbortHandler)
	}
	got, _ := io.ReadAll(r.Body)
	n.content, n.part = append(n.part, got...), nil
	w.WriteHeader(http.StatusCreated)
}

// give answers the file from where it is wanted, as far as it is not cut.
func (n *node) give(w http.ResponseWriter, r *http.Request) {
	n.asked++
	n.before(n.asked)
	n.ranges = append(n.ranges, r.Header.Get("Range"))
	if r.Header.Get("If-Match") != n.tag {
		w.WriteHeader(http.StatusPreconditionFailed)
		_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]any{"message": "it has changed",
			"extensions": map[string]any{"code": "CONFLICT"}}}})
		return
	}
	from := 0
	if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(n.content)-1, len(n.content)))
		w.WriteHeader(http.StatusPartialContent)
	}
	w.Header().Set("Trailer", volumefiles.ReprDigest)
	if most, ok := n.cut[n.asked]; ok {
		_, _ = w.Write(n.content[from : from+most])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(n.content[from:])
	digest := volumefiles.Digest(sha256.Sum256(n.content))
	if n.lie {
		digest[0]++
	}
	w.Header().Set(http.TrailerPrefix+volumefiles.ReprDigest, digest.String())
}

func random(t *testing.T, size int) []byte {
	t.Helper()
	out := make([]byte, size)
	_, err := rand.Read(out)
	require.NoError(t, err)
	return out
}

func TestAnUploadGoesOnWhereItWasCut(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	content := random(t, 1<<20)
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	n.cut = map[int]int{1: 1_000, 2: 0, 3: 5_000}
	require.NoError(t, n.volume.Upload(t.Context(), file, "x", 0o600))
	require.True(t, bytes.Equal(content, n.content))
	require.Equal(t, []string{"", "bytes 1000-1048575/1048576", "bytes 1000-1048575/1048576",
		"bytes 6000-1048575/1048576"},
		n.ranges)
}

func TestADownloadGoesOnWhereItWasCutAlsoInAnotherProcess(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.content = random(t, 1<<20)
	to := filepath.Join(t.TempDir(), "x")
	ctx, kill := context.WithCancel(t.Context())
	n.cut = map[int]int{1: 300_000, 2: 0, 3: 100_000}
	n.before = func(request int) {
		if request == 2 {
			kill()
		}
	}
	require.Error(t, n.volume.Download(ctx, "x", to))
	require.NoFileExists(t, to)
	require.NoError(t, n.volume.Download(t.Context(), "x", to))
	got, err := os.ReadFile(to)
	require.NoError(t, err)
	require.True(t, bytes.Equal(n.content, got))
	require.Equal(t, []string{"", "bytes=300000-", "bytes=300000-", "bytes=400000-"}, n.ranges)
	left, err := os.ReadDir(filepath.Dir(to))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestAFileThatChangesIsBegunAgain(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.content = random(t, 1<<20)
	n.cut = map[int]int{1: 300_000}
	n.before = func(request int) {
		if request == 2 {
			n.content, n.tag = random(t, 2<<20), `"2"`
		}
	}
	to := filepath.Join(t.TempDir(), "x")
	require.NoError(t, n.volume.Download(t.Context(), "x", to))
	got, err := os.ReadFile(to)
	require.NoError(t, err)
	require.True(t, bytes.Equal(n.content, got))
	left, err := os.ReadDir(filepath.Dir(to))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing of the earlier one is left")
}

func TestAWrongDigestLeavesNoFile(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.content, n.lie = random(t, 100), true
	to := filepath.Join(t.TempDir(), "x")
	err := n.volume.Download(t.Context(), "x", to)
	require.Equal(t, client.CodeDigestMismatch, client.CodeOf(err))
	left, err := os.ReadDir(filepath.Dir(to))
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, 1, n.asked, "it is not tried again")
}

// An answer to HEAD has no body: what is refused says why by the request that has one.
func TestARefusalSaysWhyThoughHEADCannot(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.Header.Get("Range"))
		code, status := "FAILED_PRECONDITION", http.StatusPreconditionFailed
		if r.URL.Path == "/v1/volumes/vol_1/files/none" {
			code, status = "NOT_FOUND", http.StatusNotFound
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]any{"message": "why of " + r.Method,
			"extensions": map[string]any{"code": code}}}})
	}))
	t.Cleanup(server.Close)
	api, err := client.New(server.URL, client.Options{Token: "secret"})
	require.NoError(t, err)
	volume := &files.Volume{Client: api, ID: "vol_1"}
	for path, code := range map[string]string{"x": client.CodeFailedPrecondition, "none": client.CodeNotFound} {
		err = volume.Download(t.Context(), path, filepath.Join(t.TempDir(), "x"))
		require.Equal(t, code, client.CodeOf(err))
		require.ErrorContains(t, err, "why of GET")
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "x"))
	require.NoError(t, err)
	defer file.Close()
	err = volume.Upload(t.Context(), file, "x", 0o600)
	require.Equal(t, client.CodeFailedPrecondition, client.CodeOf(err))
	require.ErrorContains(t, err, "why of PUT")
	require.Equal(t, []string{"HEAD ", "GET bytes=0-0", "HEAD ", "GET bytes=0-0", "HEAD ", "PUT "}, asked)
}
