package authhttp

import (
	"html/template"
	"net/http"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/edge"
	"github.com/gpuaas/app-platform/transport"
)

// invitationPage asks a person whether they want to belong to a tenant. It has no script.
var invitationPage = template.Must(template.New("invitation").Parse(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<title>Invitation</title><style>` + pageStyle + `</style></head>
<body>
<h1>{{.Tenant}} invites you</h1>
<p>You log in with an account of your own. Its verified address must be the one that was invited, and it will belong to {{.Tenant}}.</p>
<form method="post" action="/auth/oidc/accept">
<input type="hidden" name="invitation" value="{{.Code}}">
<button type="submit">Accept and log in</button>
</form>
<p>If you do not know {{.Tenant}}, close this page.</p>
</body>
</html>
`))

// invitation shows an invitation to the person it was sent to. Opening the link accepts nothing: a person can be
// tricked into that.
func (h *Handler) invitation(w http.ResponseWriter, r *http.Request) {
	code := r.URL.Query().Get("invitation")
	if tenant, ok := h.invites(w, r, code); ok {
		h.page(w, r, invitationPage, map[string]string{"Tenant": tenant, "Code": code})
	}
}

// accept begins the login of a person who has accepted on the page of invitation, and on no other site's.
func (h *Handler) accept(w http.ResponseWriter, r *http.Request) {
	if !transport.SameOrigin(r, nil) {
		h.fail(w, r, fault.New(fault.Forbidden, "an invitation is accepted on the platform's own page only"))
		return
	}
	form, err := h.form(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	code := form.Get("invitation")
	if _, ok := h.invites(w, r, code); ok {
		h.begin(w, r, "/", code)
	}
}

// invites returns the name of the tenant that a code is an invitation of, or answers the request. Who tries codes is
// slowed down.
func (h *Handler) invites(w http.ResponseWriter, r *http.Request, code string) (tenant string, ok bool) {
	if h.provider == nil {
		h.failPage(w, r, "", fault.New(fault.FailedPrecondition, "this installation has no identity provider"))
		return "", false
	}
	guess := edge.Attempt{Address: edge.Address(r), Secret: code}
	if err := h.options.Guesses.Check(guess); err != nil {
		edge.Refuse(w, r, err)
		return "", false
	}
	tenant, err := h.options.Identity.InvitationOf(r.Context(), code)
	if fault.Is(err, fault.Unauthenticated) {
		h.options.Guesses.Failed(guess)
	}
	if err != nil {
		h.failPage(w, r, "", err)
		return "", false
	}
	return tenant, true
}
