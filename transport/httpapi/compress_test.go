package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/compress"
	"github.com/gpuaas/app-platform/transport/httpapi"
	"github.com/gpuaas/app-platform/transport/internal/testschema"
)

// compressing serves the test schema with compression; answers that select these fields are never compressed.
func compressing(t testing.TB, pool *compress.Pool, uncompressed ...string) *httpapi.Handler {
	t.Helper()
	engine, err := transport.NewEngine(transport.Config{
		Schema: testschema.New().Executable(), Present: testschema.Present, Uncompressed: uncompressed,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	require.NoError(t, err)
	handler, err := httpapi.New(httpapi.Options{Engine: engine, Authenticate: authenticate, Compress: pool})
	require.NoError(t, err)
	return handler
}

// large is a query whose answer is longer than n bytes.
func large(n int) string { return `{"query":"{ hello(name: \"` + strings.Repeat("ab", n/2) + `\") }"}` }

// asked returns a handler's answer to a body.
func asked(handler http.Handler, accept, body string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(body))
	r.Header.Set("Content-Type", legacy)
	if accept != "" {
		r.Header.Set("Accept-Encoding", accept)
	}
	handler.ServeHTTP(w, r)
	return w
}

func TestAnswersAreCompressedForWhoPrefersIt(t *testing.T) {
	t.Parallel()
	handler := compressing(t, compress.NewPool(1))
	plain := asked(handler, "", large(5000))
	require.Empty(t, plain.Header().Get("Content-Encoding"))
	require.Equal(t, "Accept-Encoding", plain.Header().Get("Vary"))
	for coding, reader := range map[string]func(io.Reader) io.Reader{
		"gzip": func(r io.Reader) io.Reader {
			unzip, err := gzip.NewReader(r)
			require.NoError(t, err)
			return unzip
		},
		"br": func(r io.Reader) io.Reader { return brotli.NewReader(r) },
	} {
		w := asked(handler, "identity;q=0.1, "+coding, large(5000))
		require.Equal(t, coding, w.Header().Get("Content-Encoding"))
		require.Equal(t, "Accept-Encoding", w.Header().Get("Vary"))
		require.Equal(t, plain.Header().Get("Content-Type"), w.Header().Get("Content-Type"))
		require.Less(t, w.Body.Len(), plain.Body.Len()/10)
		decoded, err := io.ReadAll(reader(w.Body))
		require.NoError(t, err)
		require.Equal(t, plain.Body.Bytes(), decoded)
	}
	require.Empty(t, asked(handler, "gzip", `{"query":"{ hello }"}`).Header().Get("Content-Encoding"), "it is short")
}

func TestAGoClientNoticesNothing(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(compressing(t, compress.NewPool(1)))
	t.Cleanup(server.Close)
	response, err := http.Post(server.URL, legacy, strings.NewReader(large(5000)))
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.True(t, response.Uncompressed, "net/http asked for gzip by itself, and undid it")
	require.Equal(t, asked(compressing(t, nil), "", large(5000)).Body.Bytes(), body)
}

// What a mutation answers may be a credential, and what a refusal answers is short.
func TestWhatMayHoldASecretIsNeverCompressed(t *testing.T) {
	t.Parallel()
	handler := compressing(t, compress.NewPool(1), "Item.tags")
	long := strings.Repeat("x", 3000)
	item := func(fields string) string {
		return `{"query":"query($i: ID!) { item(id: $i) { id ` + fields +
			` } } fragment F on Item { peers { tags } }",` +
			`"operationName":null,"variables":{"i":"` + long + `"}}`
	}
	for name, c := range map[string]struct {
		body, coding string
	}{
		"a mutation":                {`{"query":"mutation { touch(id: \"` + long + `\") { id name } }"}`, ""},
		"a field that is skipped":   {item("...F @skip(if: true)"), ""}, // the document asks, whatever this answer has
		"a query without the field": {strings.Replace(item("...F"), "peers { tags }", "id", 1), "gzip"},
		"a query with the field":    {strings.Replace(item("tags ...F"), "peers { tags }", "id", 1), ""},
		"deep within a fragment":    {item("...F"), ""},
		"within an inline fragment": {strings.Replace(item("... on Item { tags } ...F"), "peers { tags }",
			"id", 1), ""},
		"a document of no short text": {strings.Replace(item("...F")+strings.Repeat(" ", 20_000), `"query":"`,
			`"query":"`+strings.Repeat(" ", 20_000), 1), ""},
	} {
		for range 2 { // the second comes from the cache of documents
			w := asked(handler, "br;q=0.5, gzip", c.body)
			require.Equal(t, http.StatusOK, w.Code, name)
			require.NotContains(t, w.Body.String(), "errors", name)
			require.Equal(t, c.coding, w.Header().Get("Content-Encoding"), name)
			if c.coding == "" {
				require.Greater(t, w.Body.Len(), compress.MinBytes, name)
			}
		}
	}
}

// A request that does not accept compression does not pay for it.
func TestThePlainPathAllocatesNoMore(t *testing.T) { //nolint:paralleltest // it counts allocations of the whole process
	allocations := func(pool *compress.Pool) float64 {
		handler, body := compressing(t, pool, "Item.tags"), []byte(large(5000))
		return testing.AllocsPerRun(200, func() {
			r := httptest.NewRequest(http.MethodPost, "/graphql", bytes.NewReader(body))
			r.Header.Set("Content-Type", legacy)
			handler.ServeHTTP(&counted{header: make(http.Header, 16)}, r)
		})
	}
	require.InDelta(t, allocations(nil), allocations(compress.NewPool(1)), 0.5)
}

// counted takes an answer and drops it.
type counted struct{ header http.Header }

func (c *counted) Header() http.Header            { return c.header }
func (c *counted) WriteHeader(int)                {}
func (c *counted) Write(body []byte) (int, error) { return len(body), nil }
