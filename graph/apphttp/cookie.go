package apphttp

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/transport"
)

// cookieName is the name of the cookie of an endpoint's host, behind transport.HostPrefix where browsers speak TLS to
// us.
const cookieName = "app_platform_endpoint"

// redeem trades a ticket for the cookie of this host.
func (h *Handler) redeem(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodGet {
		header.Set("Allow", http.MethodGet)
		h.page(w, http.StatusMethodNotAllowed, "This page can only be read", "Open the endpoint from the console.", "")
		return
	}
	opened, err := h.Endpoints.Redeem(r.Context(), r.URL.Query().Get("ticket"))
	if err != nil {
		h.refuse(w, r, err, "")
		return
	}
	http.SetCookie(w, &http.Cookie{ // #nosec G124 -- Secure where browsers speak TLS to us
		Name: h.cookie(), Value: opened.Secret, Path: "/", Expires: opened.ExpiresAt, HttpOnly: true,
		Secure:   h.secure(),
		SameSite: http.SameSiteLaxMode,
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// secure reports whether browsers reach the apps by TLS.
func (h *Handler) secure() bool { return h.Endpoints.Apps.Scheme == "https" }

// cookie is the name of the cookie as browsers keep it.
func (h *Handler) cookie() string {
	if h.secure() {
		return transport.HostPrefix + cookieName
	}
	return cookieName
}

// openings are the secrets that a browser shows. A sibling host may have set a cookie of the same name where there is
// no TLS, so that all are tried.
func (h *Handler) openings(r *http.Request) []token.Secret {
	var out []token.Secret
	for _, cookie := range r.CookiesNamed(h.cookie()) {
		if secret, err := token.ParseSecret(cookie.Value); err == nil && secret.Kind == token.Opening && len(out) < 4 {
			out = append(out, secret)
		}
	}
	return out
}

// foreign refuses what a page of another origin makes a browser send with its cookie, other than a plain visit: a
// sibling app is of the same site, so that the cookie's own rule does not keep it out.
func foreign(r *http.Request, origin string) error {
	refused := fault.New(fault.Forbidden, "a page of another origin may not call this app")
	site, mode := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Sec-Fetch-Mode")
	visit := r.Method == http.MethodGet && mode == "navigate" && r.Header.Get("Upgrade") == ""
	switch {
	case site == "same-site" || site == "cross-site":
		if !visit {
			return refused
		}
	case site == "": // an old browser, or a program
		sent := r.Header.Get("Origin")
		if sent != "" && sent != origin || sent == "" && r.Method != http.MethodGet && r.Method != http.MethodHead {
			return refused
		}
	}
	return nil
}

// strip takes the platform's credentials out of what goes to an app.
func (h *Handler) strip(header http.Header, bearer bool) {
	if bearer {
		header.Del("Authorization")
	}
	header.Del(CallerHeader)
	var kept []string
	for _, line := range header.Values("Cookie") {
		for pair := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if !ours(name) && name != "" {
				kept = append(kept, strings.TrimSpace(pair))
			}
		}
	}
	header.Del("Cookie")
	if len(kept) > 0 {
		header.Set("Cookie", strings.Join(kept, "; "))
	}
}

// ours reports whether a cookie's name is one of the platform's.
func ours(name string) bool {
	name = strings.TrimPrefix(name, transport.HostPrefix)
	return strings.EqualFold(name, cookieName) || strings.EqualFold(name, transport.SessionCookie)
}

// keepCookies leaves of an app's cookies those of its own host alone.
func keepCookies(header http.Header) {
	lines := header.Values("Set-Cookie")
	header.Del("Set-Cookie")
	for _, line := range lines {
		cookie, err := http.ParseSetCookie(line)
		if err != nil || ours(cookie.Name) {
			continue
		}
		cookie.Domain = ""
		header.Add("Set-Cookie", cookie.String())
	}
}

// towards reports whether a redirect leads to the console or the API, which an app may not send its people to: they are
// logged in there.
func towards(console *url.URL, location string) bool {
	to, err := url.Parse(location)
	return err == nil && to.Host != "" && strings.EqualFold(to.Host, console.Host)
}
