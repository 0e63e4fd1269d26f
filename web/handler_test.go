package web

import (
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/andybalholm/brotli"
	"github.com/stretchr/testify/require"
)

// script is long enough to be worth compressing.
var script = strings.Repeat("console.log('hello');\n", 200)

// setup returns a site with an index, a hashed asset, an unhashed file and the place-holder.
func setup(t *testing.T) *site {
	t.Helper()
	return newSite(fstest.MapFS{
		"index.html": {Data: []byte(
			`<!doctype html><title>console</title><meta property="csp-nonce" nonce="CSP_NONCE">`)},
		"theme.js":             {Data: []byte("1")},
		"assets/index-abcd.js": {Data: []byte(script)},
		".gitkeep":             {Data: []byte("place-holder")},
	}, "index.html", consolePolicy)
}

// ask sends one request to the handler and returns its response.
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

// text returns the body of the response.
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
		require.Equal(t, "no-store", answer.Header.Get("Cache-Control"), target)
	}
}

func TestHandlerForbidsInlineScriptsAndOtherOrigins(t *testing.T) {
	t.Parallel()
	policy := ask(t, setup(t), http.MethodGet, "/", nil).Header.Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'; script-src 'self';")
	require.Contains(t, policy, "frame-ancestors 'none'")
	require.NotContains(t, policy, "unsafe-")
}

func TestEveryPageHasANonceOfItsOwnThatThePolicyNames(t *testing.T) {
	t.Parallel()
	site, seen := setup(t), map[string]bool{}
	for range 3 {
		answer := ask(t, site, http.MethodGet, "/", map[string]string{"If-None-Match": "*"})
		require.Empty(t, answer.Header.Get("ETag"), "a page kept by the client would bear the nonce of another answer")
		_, rest, found := strings.Cut(text(t, answer), `nonce="`)
		require.True(t, found)
		nonce, _, _ := strings.Cut(rest, `"`)
		require.GreaterOrEqual(t, len(nonce), 22, "128 bits")
		require.False(t, seen[nonce])
		seen[nonce] = true
		require.Contains(t, answer.Header.Get("Content-Security-Policy"), "style-src 'self' 'nonce-"+nonce+"';")
	}
}

// TestTheBuiltPageBearsTheNonce checks the build that this binary embeds, where there is one.
func TestTheBuiltPageBearsTheNonce(t *testing.T) {
	t.Parallel()
	page, err := fs.ReadFile(built(), "index.html")
	if err != nil {
		t.Skip("the console is not built")
	}
	require.Contains(t, string(page), `nonce="`+noncePlace+`"`)
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
	first := ask(t, setup(t), http.MethodGet, "/theme.js", nil)
	again := ask(t, setup(t), http.MethodGet, "/theme.js", map[string]string{"If-None-Match": first.Header.Get("ETag")})
	require.Equal(t, http.StatusNotModified, again.StatusCode)
	require.Empty(t, text(t, again))
}

func TestHandlerCompressesForClientsThatTakeIt(t *testing.T) {
	t.Parallel()
	tags := map[string]bool{}
	for accepted, want := range map[string]string{
		"": "", "identity": "", "gzip": "gzip", "gzip, br;q=0": "gzip", "gzip, br": "br",
		"gzip;q=0.5, br;q=0.4": "gzip", "zstd": "",
	} {
		answer := ask(t, setup(t), http.MethodGet, "/assets/index-abcd.js",
			map[string]string{"Accept-Encoding": accepted})
		require.Equal(t, want, answer.Header.Get("Content-Encoding"), accepted)
		require.Equal(t, "Accept-Encoding", answer.Header.Get("Vary"))
		tags[answer.Header.Get("ETag")] = true
		var body io.Reader = answer.Body
		switch want {
		case "gzip":
			zipped, err := gzip.NewReader(body)
			require.NoError(t, err)
			body = zipped
		case "br":
			body = brotli.NewReader(body)
		}
		read, err := io.ReadAll(body)
		require.NoError(t, err)
		require.Equal(t, script, string(read), accepted)
	}
	require.Len(t, tags, 3, "each form has a tag of its own")
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
