package authhttp_test

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
)

// denied is how many refused logins the audit counts under a code.
func (b *bench) denied(code fault.Code) (n int) {
	for _, entry := range b.kit.Audit() {
		if entry.Action == "login" && !entry.Allowed && entry.Code == string(code) {
			n += entry.Repeats
		}
	}
	return n
}

// refusedWith wants that a login ended on the login page with the code, and wrote no session.
func (o *opened) refusedWith(ended *http.Response, code fault.Code, what string) {
	o.t.Helper()
	require.Equal(o.t, "/login", ended.Request.URL.Path, what)
	require.Equal(o.t, string(code), ended.Request.URL.Query().Get("error"), what)
	require.NotEmpty(o.t, ended.Request.URL.Query().Get("correlation_id"), what)
	require.Zero(o.t, o.kit.Count("session", ""), what)
}

func TestAPersonLogsInAtTheProviderAndIsKnownByItsSubjectFromThenOn(t *testing.T) {
	t.Parallel()
	o := withProvider(t)
	person := o.kit.User(o.kit.Tenant())
	o.people.add("subject-1", strings.ToUpper(person.Email), true)
	first := o.browser()
	ended := first.login("subject-1", "?returnTo=/instances%3Ftab%3Dlive")
	require.Equal(t, o.URL+"/instances?tab=live", ended.Request.URL.String())
	viewer, err := o.identity.Viewer(o.kit.With(first.session()))
	require.NoError(t, err)
	require.Equal(t, string(person.ID), viewer.Actor.ID)
	require.Equal(t, 1, o.kit.Count("external_identity", "user_id = $1 AND issuer = $2 AND subject = 'subject-1'",
		person.ID, o.provider.URL))
	require.Equal(t, 1, o.kit.Count("session",
		"method = 'oidc' AND origin = '127.0.0.1' AND length(agent) = 120 AND agent LIKE 'Browser/1 %'"))
	require.Equal(t, 1, o.kit.Count("person", "id = $1 AND last_login_at IS NOT NULL", person.ID))

	// The address does not identify a person: it changes at the provider, and the person stays the same.
	o.people.add("subject-1", "somebody-else@example.test", false)
	second := o.browser()
	ended = second.login("subject-1", "")
	require.Equal(t, "/", ended.Request.URL.Path)
	require.NotEqual(t, first.session(), second.session())
	viewer, err = o.identity.Viewer(o.kit.With(second.session()))
	require.NoError(t, err)
	require.Equal(t, string(person.ID), viewer.Actor.ID)
	allowed := 0
	for _, entry := range o.kit.Audit() {
		require.NotContains(t, string(entry.After), first.session())
		if entry.Action == "login" && entry.Allowed {
			allowed++
			require.Equal(t, string(person.ID), entry.ActorID)
		}
	}
	require.Equal(t, 2, allowed)
}

func TestTheSessionCookieIsStrictAndTheAttemptsIsLax(t *testing.T) {
	t.Parallel()
	o := withProvider(t)
	person := o.kit.User(nil)
	o.people.add("s", person.Email, true)
	b := o.browser()
	b.holds = true
	b.login("s", "")
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	back, _ := b.get(b.held)
	require.Equal(t, http.StatusSeeOther, back.StatusCode)
	require.Equal(t, "no-store", back.Header.Get("Cache-Control"))
	session, attempt := back.Cookies()[1], back.Cookies()[0]
	require.Equal(t, "gpuaas_session", session.Name)
	require.True(t, session.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, session.SameSite)
	require.True(t, strings.HasPrefix(attempt.Name, "gpuaas_login_"))
	require.Negative(t, attempt.MaxAge, "it is taken back")
	start, _ := b.get(o.URL + "/auth/oidc/start")
	begun := start.Cookies()[0]
	require.True(t, begun.HttpOnly)
	require.Equal(t, http.SameSiteLaxMode, begun.SameSite)
	require.Equal(t, "/auth/oidc/", begun.Path)
	sent, err := url.Parse(start.Header.Get("Location"))
	require.NoError(t, err)
	for name, want := range map[string]string{"code_challenge_method": "S256", "response_type": "code",
		"client_id": clientID} {
		require.Equal(t, want, sent.Query().Get(name))
	}
	require.NotEmpty(t, sent.Query().Get("nonce"))
	require.NotContains(t, start.Header.Get("Location"), begun.Value, "what binds the browser never leaves it")
}

func TestWhatTheProviderDidNotSayIsNotBelieved(t *testing.T) {
	t.Parallel()
	o := withProvider(t)
	person := o.kit.User(o.kit.Tenant())
	o.people.add("s", person.Email, true)
	key := o.key()
	public := &key.Key().(*rsa.PrivateKey).PublicKey
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	signedBy := func(algorithm jose.SignatureAlgorithm, with any) func(string) string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: with},
			(&jose.SignerOptions{}).WithHeader("kid", key.ID()))
		require.NoError(t, err)
		return func(raw string) string {
			parsed, _ := jwt.ParseSigned(raw, []jose.SignatureAlgorithm{key.SignatureAlgorithm()})
			claims := map[string]any{}
			_ = parsed.UnsafeClaimsWithoutVerification(&claims)
			text, _ := jwt.Signed(signer).Claims(claims).Serialize()
			return text
		}
	}
	other := withProvider(t)
	now := time.Now()
	for name, forge := range map[string]func(string) string{
		"another nonce":                  o.resigned(map[string]any{"nonce": "another"}),
		"no nonce":                       o.resigned(map[string]any{"nonce": nil}),
		"another issuer":                 o.resigned(map[string]any{"iss": "https://evil.test"}),
		"issuer with a slash":            o.resigned(map[string]any{"iss": o.provider.URL + "/"}),
		"another audience":               o.resigned(map[string]any{"aud": "another-client"}),
		"several audiences":              o.resigned(map[string]any{"aud": []string{clientID, "another"}, "azp": nil}),
		"another party":                  o.resigned(map[string]any{"azp": "another-client"}),
		"expired":                        o.resigned(map[string]any{"exp": now.Add(-time.Minute).Unix()}),
		"not yet valid":                  o.resigned(map[string]any{"nbf": now.Add(time.Hour).Unix()}),
		"no subject":                     o.resigned(map[string]any{"sub": ""}),
		"another access token":           o.resigned(map[string]any{"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}),
		"HS256 with the client's secret": signedBy(jose.HS256, []byte(fmt.Sprintf("%-32s", clientSecret))),
		"HS256 with the public key":      signedBy(jose.HS256, der),
		"another key":                    signedBy(jose.RS256, other.key().Key()),
		"RS512":                          signedBy(jose.RS512, key.Key()),
		"alg none": func(raw string) string {
			return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
				strings.Split(raw, ".")[1] + "."
		},
		"tampered signature": func(raw string) string {
			parts := strings.Split(raw, ".")
			return parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2]))
		},
		"tampered claims": func(raw string) string {
			parts := strings.Split(raw, ".")
			claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
			return parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(claims),
				`"s"`, `"t"`,
				1))) + "." + parts[2]
		},
		"no ID token": func(string) string { return "" },
	} {
		o.forge.Store(&forge)
		ended := o.browser().login("s", "")
		o.refusedWith(ended, fault.Unauthenticated, name)
		require.Zero(t, o.kit.Count("external_identity", ""), name)
	}
	require.Equal(t, 19, o.denied(fault.Unauthenticated))
	honest := o.resigned(nil)
	o.forge.Store(&honest)
	require.Equal(t, "/", o.browser().login("s", "").Request.URL.Path, "the forger's tools work")
}

func TestOnlyTheInvitedAreLetIn(t *testing.T) {
	t.Parallel()
	o := withProvider(t)
	tenant := o.kit.Tenant()
	invited, disabled := o.kit.User(tenant), o.kit.User(tenant)
	o.people.add("unverified", invited.Email, false)
	o.people.add("stranger", "nobody-knows-me@example.test", true)
	o.people.add("no-address", "", true)
	o.people.add("disabled", disabled.Email, true)
	o.kit.SQL(`UPDATE person SET disabled_at = now() WHERE id = $1`, disabled.ID)
	for _, subject := range []string{"unverified", "stranger", "no-address", "disabled"} {
		ended := o.browser().login(subject, "")
		o.refusedWith(ended, fault.LoginRefused, subject)
		require.NotEmpty(t, ended.Request.URL.Query().Get("message"))
		require.Zero(t, o.kit.Count("external_identity", ""), subject)
	}
	require.Equal(t, 4, o.denied(fault.LoginRefused))

	o.people.add("rightful", invited.Email, true)
	require.Equal(t, "/", o.browser().login("rightful", "").Request.URL.Path)
	o.people.add("second", invited.Email, true)
	ended := o.browser().login("second", "")
	require.Equal(t, string(fault.LoginRefused), ended.Request.URL.Query().Get("error"),
		"an address claims a person once")
	require.Equal(t, 1, o.kit.Count("external_identity", ""))
	require.Equal(t, 1, o.kit.Count("session", ""))

	o.kit.SQL(`UPDATE person SET disabled_at = now() WHERE id = $1`, invited.ID)
	ended = o.browser().login("rightful", "")
	require.Equal(t, string(fault.LoginRefused), ended.Request.URL.Query().Get("error"),
		"who is disabled is not let in again")
	require.Equal(t, 1, o.kit.Count("session", ""))
}

func TestALoginComesBackOnceAndToTheBrowserThatBeganIt(t *testing.T) {
	t.Parallel()
	o := withProvider(t)
	person := o.kit.User(nil)
	o.people.add("s", person.Email, true)
	begun := o.browser()
	begun.holds = true
	begun.login("s", "")
	require.NotEmpty(t, begun.held)
	begun.holds = false

	ended, _ := o.browser().get(begun.held)
	o.refusedWith(ended, fault.Unauthenticated, "another browser: somebody was lured into a login that is not theirs")
	for name, state := range map[string]string{
		"no state": "", "garbage": "gpu_lat_x", "long": strings.Repeat("x", 10_000),
		"a session": o.kit.Session(o.kit.User(nil)),
	} {
		address, err := url.Parse(begun.held)
		require.NoError(t, err)
		query := address.Query()
		query.Set("state", state)
		address.RawQuery = query.Encode()
		ended, _ := begun.get(address.String())
		require.Equal(t, string(fault.Unauthenticated), ended.Request.URL.Query().Get("error"), name)
	}
	o.kit.SQL(`DELETE FROM session`)
	require.Equal(t, 1, o.kit.Count("login_attempt", "used_at IS NULL"), "nobody has spent it")
	ended, _ = begun.get(begun.held + "&iss=" + url.QueryEscape("https://evil.test"))
	o.refusedWith(ended, fault.Unauthenticated, "another issuer (RFC 9207)")
	ended, _ = begun.get(begun.held)
	o.refusedWith(ended, fault.Unauthenticated, "replayed")

	late := o.browser()
	late.holds = true
	late.login("s", "")
	o.kit.SQL(`UPDATE login_attempt SET expires_at = now() - interval '1 second' WHERE used_at IS NULL`)
	_, _ = late.get(late.held)
	late.holds = false
	ended, _ = late.get(late.held)
	o.refusedWith(ended, fault.Unauthenticated, "too late")

	good := o.browser()
	good.holds = true
	good.login("s", "")
	good.holds = false
	ended, _ = good.get(good.held)
	require.Equal(t, "/", ended.Request.URL.Path)
	ended, _ = good.get(good.held)
	require.Equal(t, string(fault.Unauthenticated), ended.Request.URL.Query().Get("error"),
		"replayed by the same browser")
	require.Equal(t, 1, o.kit.Count("session", ""))
}

func TestALoginGoesOnToPathsOfThisSiteAlone(t *testing.T) {
	t.Parallel()
	o := withProvider(t)
	for _, target := range []string{
		"https://evil.test/", "//evil.test", "/\\evil.test", "\\/evil.test", "javascript:alert(1)", "instances",
		"/\t/evil.test", "/\n//evil.test",
		"/auth/logout", "/é", strings.Repeat("/x", 400), "http:evil.test", "/a b",
	} {
		ended := o.browser().login("s", "?returnTo="+url.QueryEscape(target))
		o.refusedWith(ended, fault.InvalidArgument, target)
	}
	require.Zero(t, o.kit.Count("login_attempt", ""), "nothing was written")
	for query, path := range map[string]string{"?cli=80&challenge=" + strings.Repeat("a", 43): "cli", "?cli=x": "cli",
		"?cli=4000&challenge=short": "challenge"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.URL+"/auth/oidc/start"+query, nil)
		require.NoError(t, err)
		request.Header.Set("Accept", "application/json")
		response, body := o.browser().do(request)
		require.Equal(t, http.StatusBadRequest, response.StatusCode)
		require.Contains(t, body, `"code":"INVALID_ARGUMENT"`)
		require.Contains(t, body, `"path":"`+path+`"`)
	}
}

func TestWhileTheProviderIsAwayNothingIsWrittenAndThenItWorks(t *testing.T) {
	t.Parallel()
	o := withProvider(t)
	person := o.kit.User(nil)
	o.people.add("s", person.Email, true)
	o.away.Store(true)
	o.refusedWith(o.browser().login("s", ""), fault.Unavailable, "away")
	require.Zero(t, o.kit.Count("login_attempt", ""))
	o.away.Store(false)
	b := o.browser()
	b.holds = true
	require.Eventually(t, func() bool { b.login("s", ""); return b.held != "" }, 20*time.Second, 100*time.Millisecond,
		"it is asked again")
	b.holds = false
	o.away.Store(true)
	ended, _ := b.get(b.held)
	o.refusedWith(ended, fault.Unavailable, "away in the middle")
	o.away.Store(false)
	require.Equal(t, "/", o.browser().login("s", "").Request.URL.Path)
	cancelled := o.browser()
	cancelled.holds = true
	cancelled.login("s", "")
	cancelled.holds = false
	address, err := url.Parse(cancelled.held)
	require.NoError(t, err)
	ended, _ = cancelled.get(o.URL + "/auth/oidc/callback?error=access_denied&state=" +
		url.QueryEscape(address.Query().Get("state")))
	require.Equal(t, string(fault.LoginRefused), ended.Request.URL.Query().Get("error"))
}
