package load_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/bench/load"
)

const get = "GET /%s HTTP/1.1\r\nHost: bench\r\n\r\n"

func TestAnswersWithALengthAndInChunksAreReadToTheirEnd(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refused" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		for range 3 {
			_, _ = w.Write([]byte(strings.Repeat("x", 1000)))
			if r.URL.Path == "/chunks" {
				_ = http.NewResponseController(w).Flush()
			}
		}
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	for _, path := range []string{"length", "chunks"} {
		body, err := load.Once(address, []byte(strings.Replace(get, "%s", path, 1)))
		require.NoError(t, err, path)
		require.Equal(t, strings.Repeat("x", 3000), string(body), path)
	}
	_, err := load.Once(address, []byte(strings.Replace(get, "%s", "refused", 1)))
	require.ErrorContains(t, err, "status 403: no")
	result, err := load.HTTP{Address: address, Connections: 2, Requests: func(_, n int) load.Request {
		return load.Request{Bytes: []byte(strings.Replace(get, "%s", []string{"chunks", "length"}[n%2], 1)),
			Writes: n%2 == 1}
	}}.Run(t.Context(), 100*time.Millisecond)
	require.NoError(t, err, "an answer in chunks is followed by another on the same connection")
	require.Positive(t, result.Writes)
	require.Equal(t, 3000*result.Requests, result.Bytes)
	require.Greater(t, result.Requests, result.Writes)
}
