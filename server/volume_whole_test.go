package server

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

// A browser does not compare the digest of what it downloads, so that the platform does.
func TestAWholeFileThatIsNotWhatItsNodeSaysBreaksOff(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	content := strings.Repeat("0123456789", 50_000)
	download := func() (*http.Response, string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			s.far.url+volumefiles.Prefix+string(s.volume)+"/files/x", nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+s.admin)
		response, err := http.DefaultTransport.RoundTrip(request)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		got, err := io.ReadAll(response.Body)
		return response, string(got), err
	}
	var seen http.Header
	s.answers = func(w http.ResponseWriter, request *http.Request) {
		seen = request.Header
		give(w, content, digestOf(content))
	}
	response, got, err := download()
	require.NoError(t, err)
	require.Equal(t, []any{http.StatusOK, int64(len(content)), ""}, []any{response.StatusCode, response.ContentLength,
		response.Header.Get("Content-Range")}, "a browser shows how much is there")
	require.True(t, got == content)
	require.Equal(t, volumefiles.WantSHA256, seen.Get(volumefiles.WantReprDigest))
	require.Equal(t, 1, s.Count("audit_entry", `action = 'readVolumeFile' AND after @> '{"bytes": 500000, "from": 0}'`))
	for _, other := range []string{digestOf("other"), ""} {
		s.answers = func(w http.ResponseWriter, _ *http.Request) { give(w, content, other) }
		_, got, err = download()
		require.Error(t, err, "a digest of %q", other)
		require.Less(t, len(got), len(content), "nobody takes it for the file")
	}
	s.answers = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", volumefiles.ReprDigest)
		w.Header().Set(volumefiles.ReprDigest, digestOf(""))
	}
	_, got, err = download()
	require.NoError(t, err, "an empty file is one")
	require.Empty(t, got)
}
