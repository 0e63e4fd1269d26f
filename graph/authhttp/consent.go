package authhttp

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"io"
	"net/http"
	"net/url"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/sdk/logincode"
	"github.com/gpuaas/app-platform/transport"
)

// pageStyle is the style of the pages that request a click, in both colour schemes. The content security policy allows
// no other.
const pageStyle = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:12vh auto;padding:0 1.5rem}` +
	`h1{font-size:1.5rem;line-height:1.25}strong code{font-size:1.75rem;letter-spacing:.08em}` +
	`button{font:inherit;font-weight:600;padding:.6rem 1.2rem;border:0;border-radius:.5rem;background:#2563eb;color:#fff;cursor:pointer}` +
	`button:focus-visible{outline:3px solid #93c5fd;outline-offset:2px}`

// pagePolicy is the content security policy of those pages.
var pagePolicy = func() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; frame-ancestors 'none'"
}()

// consentPage asks a person whether a command line of their machine may log in as them. It has no script.
var consentPage = template.Must(template.New("consent").Parse(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<title>Log in a command line</title><style>` + pageStyle + `</style></head>
<body>
<h1>Log in a command line?</h1>
<p>A program on this machine asks to act as you for up to twelve hours. The command line that you started shows this code:</p>
<p><strong><code>{{.Code}}</code></strong></p>
<p>Go on only if you started <code>appctl login --browser</code> just now and it shows the same code. If it shows another code, or none, close this page.</p>
<form method="post" action="/auth/oidc/start">
<input type="hidden" name="cli" value="{{.Port}}">
<input type="hidden" name="challenge" value="{{.Challenge}}">
<button type="submit">The code is the same: log in</button>
</form>
</body>
</html>
`))

// askConsent shows the page. Nothing is begun before the person answers: a program that opens an address in the
// person's browser gets no login by the session that the browser has at the identity provider.
func (h *Handler) askConsent(w http.ResponseWriter, r *http.Request, target string) {
	port, bound, _ := commandLine(target)
	h.page(w, r, consentPage, map[string]string{"Code": logincode.Of(bound), "Port": port, "Challenge": bound})
}

// page shows a page that requests a click, which no other page can frame or send.
func (h *Handler) page(w http.ResponseWriter, r *http.Request, of *template.Template, data map[string]string) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", pagePolicy)
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin") // without a referrer, browsers do not say which page sent the form
	if err := of.Execute(w, data); err != nil {
		h.options.Log.WarnContext(r.Context(), "a page cannot be written", "page", of.Name(), "error", err)
	}
}

// form reads the fields that a page of page sends; REQUEST_INVALID for a body that is not a form.
func (h *Handler) form(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		var fields url.Values
		if fields, err = url.ParseQuery(string(body)); err == nil {
			return fields, nil
		}
	}
	return nil, fault.New(fault.RequestInvalid, "the form could not be read").Because(err)
}

// consented begins the login of a command line that a person has agreed to, on our own page alone.
func (h *Handler) consented(w http.ResponseWriter, r *http.Request) {
	if !transport.SameOrigin(r, nil) {
		h.fail(w, r, fault.New(fault.Forbidden, "a command line's login is confirmed on the platform's own page only"))
		return
	}
	form, err := h.form(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	target, err := targetOf(form)
	if err == nil && form.Get("cli") == "" {
		err = fault.New(fault.InvalidArgument, "cli must be a port from 1024 to 65535").At("cli")
	}
	if err != nil {
		h.failPage(w, r, "", err)
		return
	}
	h.begin(w, r, target, "")
}
