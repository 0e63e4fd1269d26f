package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// script is long enough to be worth compressing.
var script = strings.Repeat("console.log('hello');\n", 200)

// setup is a site with an index, a hashed asset, an unhashed file and the place-holder.
func setup(t *testing.T) *site {
	t.Helper()
	return newSite(fstest.MapFS{
		"index.html":           {Data: []byte("<!doctype html><title>console</title>")},
		"theme.js":             {Data: []byte("1")},
		"assets/index-abcd.js": {Data: []byte(script)},
		".gitkeep":             {Data: []byte("place-holder")},
	}, "index.html", consolePolicy)
}

// ask sends one request to the handler.
func ask(t *testing.T, h http.Handler, method, target string, header map[string]string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// text reads the answer's body.
func text(t *testing.T, answer *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(body)
}

func TestHandlerServesIndexForPathsOfTheRouter(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"/", "/workloads/ins_1", "/login", "/.gitkeep", "/../../etc/passwd"} {
		answer := ask(t, setup(t), http.MethodGet, target, nil)
		require.Equal(t, http.StatusOK, answer.StatusCode, target)
		require.Contains(t, text(t, answer), "<title>console</title>", target)
		require.Equal(t, "no-cache", answer.Header.Get("Cache-Control"), target)
	}
}

func TestHandlerForbidsInlineScriptsAndOtherOrigins(t *testing.T) {
	t.Parallel()
	policy := ask(t, setup(t), http.MethodGet, "/", nil).Header.Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'; script-src 'self';")
	require.Contains(t, policy, "frame-ancestors 'none'")
	require.NotContains(t, policy, "unsafe-eval")
	require.NotContains(t, strings.Split(policy, "style-src")[0], "unsafe-inline")
}

func TestHandlerLetsHashedAssetsBeKeptForAYearAndOthersNot(t *testing.T) {
	t.Parallel()
	hashed := ask(t, setup(t), http.MethodGet, "/assets/index-abcd.js", nil)
	require.Equal(t, "public, max-age=31536000, immutable", hashed.Header.Get("Cache-Control"))
	require.Equal(t, "text/javascript; charset=utf-8", hashed.Header.Get("Content-Type"))
	require.Equal(t, script, text(t, hashed))
	require.Equal(t, "no-cache", ask(t, setup(t), http.MethodGet, "/theme.js", nil).Header.Get("Cache-Control"))
}

func TestHandlerAnswersNotFoundForAMissingAsset(t *testing.T) {
	t.Parallel()
	require.Equal(t, http.StatusNotFound, ask(t, setup(t), http.MethodGet, "/assets/gone-1234.js", nil).StatusCode)
}

func TestHandlerAnswersNotModifiedForTheSameTag(t *testing.T) {
	t.Parallel()
	first := ask(t, setup(t), http.MethodGet, "/", nil)
	again := ask(t, setup(t), http.MethodGet, "/", map[string]string{"If-None-Match": first.Header.Get("ETag")})
	require.Equal(t, http.StatusNotModified, again.StatusCode)
	require.Empty(t, text(t, again))
}

func TestHandlerCompressesForClientsThatTakeIt(t *testing.T) {
	t.Parallel()
	plain := ask(t, setup(t), http.MethodGet, "/assets/index-abcd.js", nil)
	zipped := ask(t, setup(t), http.MethodGet, "/assets/index-abcd.js", map[string]string{"Accept-Encoding": "gzip, br"})
	require.Equal(t, "gzip", zipped.Header.Get("Content-Encoding"))
	require.NotEqual(t, plain.Header.Get("ETag"), zipped.Header.Get("ETag"))
	reader, err := gzip.NewReader(zipped.Body)
	require.NoError(t, err)
	body, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Equal(t, script, string(body))
}

func TestHandlerRefusesOtherMethods(t *testing.T) {
	t.Parallel()
	answer := ask(t, setup(t), http.MethodPost, "/", nil)
	require.Equal(t, http.StatusMethodNotAllowed, answer.StatusCode)
	require.Equal(t, "GET, HEAD", answer.Header.Get("Allow"))
}

func TestHandlerSaysHowToBuildWhenNothingIsBuilt(t *testing.T) {
	t.Parallel()
	empty := newSite(fstest.MapFS{".gitkeep": {}}, "index.html", consolePolicy)
	answer := ask(t, empty, http.MethodGet, "/workloads", nil)
	require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
	require.Contains(t, text(t, answer), "npm run build")
}

func TestGraphiQLPageIsServedAtAnyPathWithItsOwnPolicy(t *testing.T) {
	t.Parallel()
	page := newPage(fstest.MapFS{"graphiql.html": {Data: []byte("graphiql here")}}, "graphiql.html", graphiqlPolicy)
	answer := ask(t, page, http.MethodGet, "/graphql", nil)
	require.Equal(t, "graphiql here", text(t, answer))
	require.Contains(t, answer.Header.Get("Content-Security-Policy"), "worker-src 'self' blob:")
}

func TestExportedHandlersAnswerWhetherBuiltOrNot(t *testing.T) {
	t.Parallel()
	for _, handler := range []http.Handler{Handler(), GraphiQL()} {
		answer := ask(t, handler, http.MethodGet, "/", nil)
		require.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, answer.StatusCode)
		require.Equal(t, "text/html; charset=utf-8", answer.Header.Get("Content-Type"))
	}
}
