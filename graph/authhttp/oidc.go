package authhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/edge"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/transport"
)

const (
	// attemptCookie names the cookie that binds a login to its browser; the attempt's id follows.
	attemptCookie = "gpuaas_login_"
	// oidcPath is where that cookie is sent over plain HTTP; a cookie of this host alone is sent everywhere.
	oidcPath = "/auth/oidc/"
	// loginPage is the console's page that shows what became of a login.
	loginPage = "/login"
	// maxTarget bounds the path that follows a login, in bytes.
	maxTarget = 512
	// maxParameter bounds what comes back from the provider in one parameter, in bytes.
	maxParameter = 4 << 10
)

// challenge is an S256 code challenge (RFC 7636).
var challenge = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// methods says how people may log in.
func (h *Handler) methods(w http.ResponseWriter, _ *http.Request) {
	var at any
	if h.provider != nil {
		at = map[string]string{"name": h.provider.Name}
	}
	answer(w, http.StatusOK, map[string]any{"link": h.options.Identity.DevLogins, "oidc": at})
}

// start sends the browser to the identity provider; for a command line, once the person has agreed.
func (h *Handler) start(w http.ResponseWriter, r *http.Request) {
	target, err := targetOf(r.URL.Query())
	if err != nil {
		h.failPage(w, r, "", err)
		return
	}
	if _, _, cli := commandLine(target); cli && h.provider != nil {
		h.askConsent(w, r, target)
		return
	}
	h.begin(w, r, target, "")
}

// begin begins a login at the identity provider, by the code of an invitation if there is one.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request, target, invitation string) {
	if h.provider == nil {
		h.failPage(w, r, target, fault.New(fault.FailedPrecondition, "this installation has no identity provider"))
		return
	}
	// The provider comes first: while it is away nothing is written.
	if _, err := h.provider.discover(r.Context()); err != nil {
		h.failPage(w, r, target, err)
		return
	}
	attempt, err := h.options.Identity.BeginOIDC(r.Context(), target)
	if err != nil {
		h.failPage(w, r, target, err)
		return
	}
	if invitation != "" {
		if err := h.options.Identity.Accepting(r.Context(), attempt.ID, invitation); err != nil {
			h.failPage(w, r, target, err)
			return
		}
	}
	address, err := h.provider.address(r.Context(), attempt)
	if err != nil {
		h.failPage(w, r, target, err)
		return
	}
	// Lax: the provider's redirect back is a navigation from another site.
	http.SetCookie(w, h.attemptCookie(r, attempt, attempt.Browser, int(identity.AttemptTTL.Seconds())))
	http.Redirect(w, r, address, http.StatusSeeOther)
}

func (h *Handler) attemptCookie(r *http.Request, attempt *identity.Attempt, value string, seconds int) *http.Cookie {
	path := oidcPath
	if transport.HostCookies(r) {
		path = "/"
	}
	return &http.Cookie{Name: transport.CookieName(r, attemptCookie+attempt.ID.Suffix()), Value: value, Path: path,
		MaxAge: seconds, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: transport.HostCookies(r)}
}

// targetOf is what follows the login: a path of the console, or "cli:PORT:CHALLENGE" for a command line that waits
// at a port of the person's own machine.
func targetOf(query url.Values) (string, error) {
	if port := query.Get("cli"); port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n < 1024 {
			return "", fault.New(fault.InvalidArgument, "cli must be a port from 1024 to 65535").At("cli")
		}
		if !challenge.MatchString(query.Get("challenge")) {
			return "", fault.New(fault.InvalidArgument, "challenge must be an S256 code challenge").At("challenge")
		}
		return fmt.Sprintf("cli:%d:%s", n, query.Get("challenge")), nil
	}
	target := query.Get("returnTo")
	if target == "" {
		return "/", nil
	}
	if !localPath(target) {
		return "", fault.New(fault.InvalidArgument, "returnTo must be a path of this site, such as /instances").
			At("returnTo")
	}
	return target, nil
}

// localPath reports whether a browser that is sent there stays on this site: an absolute path that no browser reads
// as another host, and none of ours that would log in or out.
func localPath(target string) bool {
	if len(target) > maxTarget || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") ||
		strings.HasPrefix(target, "/auth/") {
		return false
	}
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c == '\\' || c >= 0x7f {
			return false
		}
	}
	parsed, err := url.Parse(target)
	return err == nil && parsed.Scheme == "" && parsed.Host == "" && parsed.User == nil
}

// callback is where the identity provider sends the browser back.
func (h *Handler) callback(w http.ResponseWriter, r *http.Request) {
	if h.provider == nil {
		h.failPage(w, r, "", fault.New(fault.FailedPrecondition, "this installation has no identity provider"))
		return
	}
	query := r.URL.Query()
	guess := edge.Attempt{Address: edge.Address(r), Secret: query.Get("state")}
	if err := h.options.Guesses.Check(guess); err != nil {
		edge.Refuse(w, r, err)
		return
	}
	attempt, err := h.take(w, r, query.Get("state"))
	if err != nil {
		if fault.Is(err, fault.Unauthenticated) {
			h.options.Guesses.Failed(guess)
		}
		h.failPage(w, r, "", err)
		return
	}
	person, err := h.vouched(r.Context(), query, attempt)
	if err != nil {
		h.options.Identity.DenyLogin(r.Context(), fault.From(err).Code)
		h.failPage(w, r, attempt.Target, err)
		return
	}
	person.Attempt = attempt.ID
	if port, bound, cli := commandLine(attempt.Target); cli {
		code, err := h.options.Identity.OIDCCode(r.Context(), person, bound)
		if err != nil {
			h.failPage(w, r, attempt.Target, err)
			return
		}
		http.Redirect(w, r, loopback(port, url.Values{"code": {code}}), http.StatusSeeOther)
		return
	}
	session, err := h.options.Identity.OIDCSession(r.Context(), person)
	if err != nil {
		h.failPage(w, r, attempt.Target, err)
		return
	}
	http.SetCookie(w, h.cookie(r, session.Token, session.ExpiresAt))
	http.Redirect(w, r, attempt.Target, http.StatusSeeOther)
}

// take spends the attempt that the state names, for the browser that shows its cookie, and takes the cookie back.
func (h *Handler) take(w http.ResponseWriter, r *http.Request, state string) (*identity.Attempt, error) {
	if len(state) > maxParameter {
		state = ""
	}
	var shown string
	if id, err := identity.AttemptOf(state); err == nil {
		if cookie, err := r.Cookie(transport.CookieName(r, attemptCookie+id.Suffix())); err == nil &&
			len(cookie.Value) <= maxParameter {
			shown = cookie.Value
		}
	}
	attempt, err := h.options.Identity.TakeOIDC(r.Context(), state, shown)
	if err != nil {
		return nil, err
	}
	http.SetCookie(w, h.attemptCookie(r, attempt, "", -1))
	return attempt, nil
}

// vouched is whom the provider vouches for in what it sent the browser back with.
func (h *Handler) vouched(ctx context.Context, query url.Values, attempt *identity.Attempt) (identity.Person, error) {
	if problem := query.Get("error"); problem != "" {
		return identity.Person{}, fault.New(fault.LoginRefused,
			"the identity provider did not log you in").Because(fmt.Errorf("it reported %.100q", problem))
	}
	if issuer := query.Get("iss"); issuer != "" && issuer != h.provider.Issuer { // RFC 9207
		return identity.Person{}, unproved(errors.New("the answer is of another issuer"))
	}
	code := query.Get("code")
	if code == "" || len(code) > maxParameter {
		return identity.Person{}, fault.New(fault.RequestInvalid, "the identity provider sent no code")
	}
	return h.provider.person(ctx, code, attempt)
}

// commandLine returns the port and the challenge of a command line's target; false for a path.
func commandLine(target string) (port, bound string, is bool) {
	rest, is := strings.CutPrefix(target, "cli:")
	port, bound, _ = strings.Cut(rest, ":")
	return port, bound, is
}

// loopback returns the address at which a command line waits on the person's own machine.
func loopback(port string, query url.Values) string {
	return "http://127.0.0.1:" + port + "/?" + query.Encode()
}

// failPage ends a browser's failed login: on the console's login page, or at the command line that waits, with
// a code and the correlation id. A client that accepts JSON alone gets the one envelope.
func (h *Handler) failPage(w http.ResponseWriter, r *http.Request, target string, err error) {
	if accept := r.Header.Get("Accept"); strings.Contains(accept, "application/json") &&
		!strings.Contains(accept, "text/html") {
		h.fail(w, r, err)
		return
	}
	refused := fault.From(err)
	h.logFailure(r.Context(), refused, err)
	query := url.Values{"error": {string(refused.Code)}, "correlation_id": {transport.CorrelationID(r.Context())}}
	if refused.Code == fault.LoginRefused {
		query.Set("message", refused.Message)
	}
	if port, _, cli := commandLine(target); cli {
		http.Redirect(w, r, loopback(port, query), http.StatusSeeOther)
		return
	}
	http.Redirect(w, r, loginPage+"?"+query.Encode(), http.StatusSeeOther)
}

// logFailure logs what is not answered: failures of ours, and why a provider was not believed or not reached.
func (h *Handler) logFailure(ctx context.Context, refused *fault.Fault, err error) {
	cause := refused.Unwrap()
	if errors.Is(err, context.Canceled) || (refused.Code != fault.Internal && cause == nil) {
		return
	}
	h.options.Log.WarnContext(ctx, "a login failed", "correlation_id", transport.CorrelationID(ctx), "code",
		refused.Code, "error", err, "cause", cause)
}

// refresh gives a browser's session a new secret when the one it has is old enough.
func (h *Handler) refresh(w http.ResponseWriter, r *http.Request) {
	credential, refused := transport.RequestCredential(r)
	if refused != nil || credential.Raw == "" {
		h.fail(w, r, fault.New(fault.Unauthenticated, "a session cookie is required"))
		return
	}
	if credential.Source != transport.SourceCookie || !transport.SameOrigin(r, h.options.Origins) {
		h.fail(w, r, fault.New(fault.Forbidden,
			"a session is refreshed by its cookie, from the platform's own pages only"))
		return
	}
	session, err := h.options.Identity.RefreshSession(r.Context(), credential.Raw)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if session.Token != "" {
		http.SetCookie(w, h.cookie(r, session.Token, session.ExpiresAt))
	}
	answer(w, http.StatusOK, map[string]any{"rotated": session.Token != "",
		"expiresAt": session.ExpiresAt.UTC().Format(time.RFC3339)})
}
