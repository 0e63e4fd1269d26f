package transport_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gpuaas/app-platform/transport"
)

// FuzzOrigin checks that a page that may use the cookie is of the host of the request, whatever it calls itself.
func FuzzOrigin(f *testing.F) {
	for _, seed := range []string{"https://console.test", "null", "http://console.test:80", "https://console.test.evil",
		"https://evil@console.test", "https://console.test@evil", "//console.test", "https://[::1]",
		"HTTPS://CONSOLE.TEST",
		"https://console.test:443"} {
		f.Add(seed, "console.test", "same-origin")
	}
	f.Fuzz(func(t *testing.T, origin, host, site string) {
		r := httptest.NewRequest(http.MethodPost, "/graphql", nil)
		r.Host = host
		r.Header = http.Header{"Origin": {origin}}
		if site != "" {
			r.Header.Set("Sec-Fetch-Site", site)
		}
		if !transport.SameOrigin(r, nil) {
			return
		}
		page, err := url.Parse(origin)
		if origin == "" && site == "same-origin" {
			return
		}
		bare := func(host string) string {
			return strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(host, ":443"), ":80"))
		}
		if err != nil || bare(page.Host) != bare(host) || page.User != nil || site != "" && site != "same-origin" {
			t.Fatalf("%q may act at %q (%s)", origin, host, site)
		}
	})
}

// FuzzRequestCredential: a credential has no space in it and an end, and a correlation id is fit for a log.
func FuzzRequestCredential(f *testing.F) {
	for _, seed := range []string{"Bearer x", "bearer  x", "Basic x", "Bearer", "Bearer a b", "Bearer \x00",
		strings.Repeat("x", 9000)} {
		f.Add(seed, seed, seed)
	}
	f.Fuzz(func(t *testing.T, authorization, cookie, correlation string) {
		r := httptest.NewRequest(http.MethodPost, "/graphql", nil)
		r.Header = http.Header{"Cookie": {"gpuaas_session=" + cookie}, "X-Correlation-Id": {correlation}}
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		shown, refused := transport.RequestCredential(r)
		if refused == nil && shown.Source != transport.SourceNone && (shown.Raw == "" || len(shown.Raw) > 8<<10) {
			t.Fatalf("took %q", shown.Raw)
		}
		if refused == nil && shown.Source == transport.SourceBearer && strings.ContainsAny(shown.Raw, " \t\r\n") {
			t.Fatalf("took %q", shown.Raw)
		}
		if id := transport.RequestCorrelationID(r); !transport.ValidCorrelationID(id) {
			t.Fatalf("took %q", id)
		}
	})
}
