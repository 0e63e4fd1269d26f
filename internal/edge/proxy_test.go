package edge

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport"
)

// seen is what the handler beneath the proxies learns of a request.
func seen(t *testing.T, trusted []string, field string, r *http.Request) (address string, secure bool) {
	t.Helper()
	proxies, err := ParseProxies(trusted, field)
	require.NoError(t, err)
	proxies.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		address, secure = Address(r), transport.Secure(r)
	})).ServeHTTP(httptest.NewRecorder(), r)
	return address, secure
}

func TestTheCallerIsWhomOurProxiesName(t *testing.T) {
	t.Parallel()
	ours := []string{"10.0.0.0/8", "192.0.2.7", "fd00::/8"}
	for name, c := range map[string]struct {
		trusted []string
		field   string
		peer    string
		header  http.Header
		address string
		secure  bool
	}{
		"no proxy": {nil, XForwardedFor, "203.0.113.5:1", http.Header{}, "203.0.113.5", false},
		"nobody is trusted": {nil, XForwardedFor, "203.0.113.5:1",
			http.Header{"X-Forwarded-For": {"1.2.3.4"}, "X-Forwarded-Proto": {"https"}}, "203.0.113.5", false},
		"a stranger pretends": {ours, XForwardedFor, "203.0.113.5:1",
			http.Header{"X-Forwarded-For": {"1.2.3.4"}, "X-Forwarded-Proto": {"https"}}, "203.0.113.5", false},
		"a proxy": {ours, XForwardedFor, "10.1.1.1:1",
			http.Header{"X-Forwarded-For": {"203.0.113.5"}, "X-Forwarded-Proto": {"https"}}, "203.0.113.5", true},
		"a proxy spoken to without TLS": {ours, XForwardedFor, "10.1.1.1:1",
			http.Header{"X-Forwarded-For": {"203.0.113.5"}, "X-Forwarded-Proto": {"http"}}, "203.0.113.5", false},
		"the caller wrote the left end": {ours, XForwardedFor, "10.1.1.1:1",
			http.Header{"X-Forwarded-For": {"127.0.0.1, 10.9.9.9, 203.0.113.5"}, "X-Forwarded-Proto": {"https, http"}},
			"203.0.113.5", false},
		"two proxies": {ours, XForwardedFor, "10.1.1.1:1",
			http.Header{"X-Forwarded-For": {"6.6.6.6, 203.0.113.5", "192.0.2.7"}}, "203.0.113.5", false},
		"all of them ours": {ours, XForwardedFor, "10.1.1.1:1",
			http.Header{"X-Forwarded-For": {"10.2.2.2, 10.3.3.3"}}, "10.2.2.2", false},
		"nothing said": {ours, XForwardedFor, "10.1.1.1:1", http.Header{}, "10.1.1.1", false},
		"not an address": {ours, XForwardedFor, "10.1.1.1:1",
			http.Header{"X-Forwarded-For": {"203.0.113.5, unknown"}}, "10.1.1.1", false},
		"beyond what is no address": {ours, XForwardedFor, "10.1.1.1:1",
			http.Header{"X-Forwarded-For": {"203.0.113.5, x, 10.3.3.3"}}, "10.3.3.3", false},
		"with a port": {ours, XForwardedFor, "10.1.1.1:1", http.Header{"X-Forwarded-For": {"203.0.113.5:8443"}},
			"203.0.113.5", false},
		"IPv6": {ours, XForwardedFor, "[fd00::1]:1", http.Header{"X-Forwarded-For": {"2001:db8::1"}},
			"2001:db8::1", false},
		"IPv6 with a port": {ours, XForwardedFor, "[fd00::1]:1",
			http.Header{"X-Forwarded-For": {"[2001:db8::1]:443"}}, "2001:db8::1", false},
		"mapped": {ours, XForwardedFor, "[::ffff:10.1.1.1]:1",
			http.Header{"X-Forwarded-For": {"::ffff:203.0.113.5"}}, "203.0.113.5", false},
		"Forwarded is not what ours write": {ours, XForwardedFor, "10.1.1.1:1",
			http.Header{"Forwarded": {"for=1.2.3.4;proto=https"}, "X-Forwarded-For": {"203.0.113.5"}},
			"203.0.113.5", false},
		"Forwarded": {ours, Forwarded, "10.1.1.1:1",
			http.Header{"Forwarded": {`for=6.6.6.6;proto=http, for=203.0.113.5;proto=https;by=10.1.1.1`},
				"X-Forwarded-For": {"1.2.3.4"}}, "203.0.113.5", true},
		"Forwarded, quoted": {ours, Forwarded, "10.1.1.1:1",
			http.Header{"Forwarded": {`For="[2001:db8::1]:4711" ; Proto=HTTPS`}}, "2001:db8::1", true},
		"Forwarded, hidden": {ours, Forwarded, "10.1.1.1:1", http.Header{"Forwarded": {`for=_secret`}},
			"10.1.1.1", false},
		"a very long field": {ours, XForwardedFor, "10.1.1.1:1",
			http.Header{"X-Forwarded-For": {strings.Repeat("10.2.2.2,", 5000) + "203.0.113.5"}}, "203.0.113.5", false},
		"more hops than are read": {ours, XForwardedFor, "10.1.1.1:1",
			http.Header{"X-Forwarded-For": {"203.0.113.5" + strings.Repeat(",10.2.2.2", 500)}}, "10.2.2.2", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr, r.Header = c.peer, c.header
			address, secure := seen(t, c.trusted, c.field, r)
			require.Equal(t, c.address, strings.TrimPrefix(address, "::ffff:"))
			require.Equal(t, c.secure, secure)
		})
	}
}

func TestTLSOfOurOwnIsSecureWhateverTheHeadersSay(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("GET", "/", nil)
	r.TLS = new(tls.ConnectionState)
	r.Header.Set("X-Forwarded-Proto", "http")
	_, secure := seen(t, nil, XForwardedFor, r)
	require.True(t, secure)
}

func TestProxiesThatCannotBeReadAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"proxy.test", "10.0.0.0/33", "*", ""} {
		_, err := ParseProxies([]string{text}, XForwardedFor)
		require.Error(t, err, text)
	}
	_, err := ParseProxies(nil, "X-Real-IP")
	require.Error(t, err)
}

func TestHeadersBindToTLSOnlyWhatCameOverIt(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		r := httptest.NewRequest("GET", "/graphql", nil)
		if secure {
			r = r.WithContext(transport.WithSecure(r.Context()))
		}
		w := httptest.NewRecorder()
		Headers(http.NotFoundHandler()).ServeHTTP(w, r)
		h := w.Header()
		require.Equal(t, secure, h.Get("Strict-Transport-Security") != "")
		for name, value := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff",
			"X-Frame-Options":         "DENY",
			"Referrer-Policy":         "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			require.Equal(t, value, h.Get(name), name)
		}
		require.Contains(t, h.Get("Permissions-Policy"), "camera=()")
	}
}

// FuzzForwarded: whatever a peer that we trust passes on, the caller is an address, and a peer that
// we do not trust is itself.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{"1.2.3.4", `for="[2001:db8::1]:4711";proto=https`, "a, b, c", "1.2.3.4, 10.0.0.1",
		`for=";"`, "[", "[]:1", "fe80::1%eth0", strings.Repeat(",", 5000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, field := range []string{XForwardedFor, Forwarded} {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header = http.Header{field: {value}, "X-Forwarded-Proto": {value}}
			r.RemoteAddr = "10.1.1.1:1"
			address, _ := seen(t, []string{"10.0.0.0/8"}, field, r)
			if _, ok := hopAddress(address); !ok {
				t.Fatalf("%q is no address", address)
			}
			r.RemoteAddr = "203.0.113.5:1"
			if address, secure := seen(t, []string{"10.0.0.0/8"}, field, r); address != "203.0.113.5" || secure {
				t.Fatalf("a stranger became %q", address)
			}
		}
	})
}
