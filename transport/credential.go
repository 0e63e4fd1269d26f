package transport

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	// SessionCookie is the name of the browser's HttpOnly session cookie where browsers speak plain HTTP to us.
	SessionCookie = "gpuaas_session"
	// HostPrefix begins the names of cookies where browsers speak TLS to us. A browser takes such a cookie only from
	// this very host, so that no sibling host can set one (RFC 6265bis, 4.1.3.2).
	HostPrefix = "__Host-"
)

// Source says where a credential came from.
type Source string

const (
	// SourceNone: the request carries no credential.
	SourceNone Source = ""
	// SourceBearer: the Authorization header.
	SourceBearer Source = "bearer"
	// SourceCookie: the session cookie of a browser.
	SourceCookie Source = "cookie"
	// SourceInit: the payload of connection_init.
	SourceInit Source = "init"
)

// Credential is what a caller presented, not yet checked. Raw is a secret: never log it.
type Credential struct {
	Raw    string
	Source Source
}

// maxCredential bounds a presented token, in bytes.
const maxCredential = 8 << 10

// Bearer takes the token out of an Authorization value. ok is false when the value is
// anything else than "Bearer <token>".
func Bearer(value string) (token string, ok bool) {
	scheme, token, found := strings.Cut(value, " ")
	token = strings.TrimSpace(token)
	if !found || !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxCredential {
		return "", false
	}
	return token, !strings.ContainsAny(token, " \t\r\n")
}

// RequestCredential reads the Authorization header, else the session cookie. A header
// that is present but malformed is refused, never passed over in favour of a cookie.
func RequestCredential(r *http.Request) (Credential, *Error) {
	if values := r.Header.Values("Authorization"); len(values) > 0 {
		token, ok := Bearer(values[0])
		if !ok || len(values) > 1 {
			return Credential{}, Refuse(CodeUnauthenticated, "the Authorization header must be: Bearer <token>")
		}
		return Credential{Raw: token, Source: SourceBearer}, nil
	}
	cookies := r.CookiesNamed(CookieName(r, SessionCookie))
	if len(cookies) == 0 {
		return Credential{}, nil
	}
	if len(cookies) > 1 || cookies[0].Value == "" || len(cookies[0].Value) > maxCredential {
		return Credential{}, Refuse(CodeUnauthenticated, "the session cookie is malformed")
	}
	return Credential{Raw: cookies[0].Value, Source: SourceCookie}, nil
}

type hostCookiesKey struct{}

// WithHostCookies notes that browsers speak TLS to us, whether or not this request came so: every cookie has
// HostPrefix.
func WithHostCookies(ctx context.Context) context.Context {
	return context.WithValue(ctx, hostCookiesKey{}, true)
}

// HostCookies reports whether the cookies of the request have HostPrefix; the names without it are then not read at
// all.
func HostCookies(r *http.Request) bool {
	noted, _ := r.Context().Value(hostCookiesKey{}).(bool)
	return noted || Secure(r)
}

// CookieName returns the name of a cookie of ours as the caller's browser keeps it.
func CookieName(r *http.Request, name string) string {
	if HostCookies(r) {
		return HostPrefix + name
	}
	return name
}

type secureKey struct{}

// WithSecure notes that the caller speaks TLS, to a proxy that we trust when not to us.
func WithSecure(ctx context.Context) context.Context {
	return context.WithValue(ctx, secureKey{}, true)
}

// Secure reports whether the caller speaks TLS, as far as is known.
func Secure(r *http.Request) bool {
	noted, _ := r.Context().Value(secureKey{}).(bool)
	return noted || r.TLS != nil
}

// OriginAllowed reports whether a browser on this page may talk to us: the page's origin is the requested host, and not
// under http where the caller speaks TLS, or is on the allow-list ("https://console.example:8443"). Without an Origin
// header it returns absent.
func OriginAllowed(r *http.Request, allowed []string, absent bool) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return absent
	}
	if len(origins) > 1 {
		return false
	}
	if slices.Contains(allowed, origins[0]) {
		return true
	}
	u, err := url.Parse(origins[0])
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return false // "null", which sandboxed and local pages send, among others
	}
	if u.Scheme != "https" && (u.Scheme != "http" || Secure(r)) {
		return false
	}
	return strings.EqualFold(withoutDefaultPort(u.Host, u.Scheme), withoutDefaultPort(r.Host, u.Scheme))
}

// withoutDefaultPort is the host as browsers write it.
func withoutDefaultPort(host, scheme string) string {
	if scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

// SameOrigin reports whether a cookie may authenticate this request: its Origin is on the allow-list, or the browser
// states, in Sec-Fetch-Site or Origin, that our own page sent it. Each of the two that is present must agree.
func SameOrigin(r *http.Request, allowed []string) bool {
	if origin := r.Header.Get("Origin"); origin != "" && slices.Contains(allowed, origin) {
		return OriginAllowed(r, allowed, false)
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if site != "" && site != "same-origin" {
		return false
	}
	return OriginAllowed(r, allowed, site == "same-origin")
}
