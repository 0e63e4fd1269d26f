package authhttp_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

const form = "application/x-www-form-urlencoded"

// exchanged is the answer of POST /auth/token.
type exchanged struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in"`
	Scope       string `json:"scope"`
	Error       string `json:"error"`
}

func (b *bench) token(t *testing.T, body string, headers ...string) (int, exchanged) {
	t.Helper()
	response, raw := b.post("/auth/token", body, headers...)
	var out exchanged
	require.NoError(t, json.Unmarshal([]byte(raw), &out), raw)
	return response.StatusCode, out
}

func TestAKeyIsExchangedForAShortToken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	project := b.kit.Project(b.kit.Tenant())
	account, key := b.kit.ServiceAccount(project, authz.ProjectRead, authz.AppsInstanceRead)
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("any:"+key))
	var made exchanged
	for name, how := range map[string]struct {
		body    string
		headers []string
	}{
		"bearer, form": {"grant_type=client_credentials", []string{"Content-Type", form, "Authorization",
			"Bearer " + key}},
		"basic, form": {"grant_type=client_credentials", []string{"Content-Type", form, "Authorization", basic}},
		"secret, form": {"grant_type=client_credentials&client_secret=" + url.QueryEscape(key),
			[]string{"Content-Type", form}},
		"secret, JSON": {fmt.Sprintf(`{"grant_type":"client_credentials","client_secret":%q,"expires_in":900}`,
			key), nil},
		"token exchange": {"grant_type=urn:ietf:params:oauth:grant-type:token-exchange&subject_token=" +
			url.QueryEscape(key), []string{"Content-Type", form}},
	} {
		status, got := b.token(t, how.body, how.headers...)
		require.Equal(t, 200, status, "%s: %+v", name, got)
		require.Equal(t, "Bearer", got.TokenType, name)
		require.InDelta(t, 900, got.ExpiresIn, 5, name)
		require.Equal(t, "apps.instance.read project.read", got.Scope, name)
		made = got
	}
	actor, err := b.kit.DB.Read(b.kit.With(made.AccessToken))
	require.NoError(t, err)
	require.Equal(t, account.ID, actor.ID)
	require.True(t, actor.Allows(authz.AppsInstanceRead, project.TenantID, project.ID))
	require.WithinDuration(t, time.Now().Add(15*time.Minute), actor.ExpiresAt, time.Minute)

	status, narrow := b.token(t, "grant_type=client_credentials&scope=project.read&expires_in=300",
		"Content-Type", form, "Authorization", "Bearer "+key)
	require.Equal(t, 200, status)
	less, err := b.kit.DB.Read(b.kit.With(narrow.AccessToken))
	require.NoError(t, err)
	require.True(t, less.Allows(authz.ProjectRead, project.TenantID, project.ID))
	require.False(t, less.Allows(authz.AppsInstanceRead, project.TenantID, project.ID), "it asked for less")
	status, _ = b.token(t, "grant_type=client_credentials", "Content-Type", form, "Authorization",
		"Bearer "+made.AccessToken)
	require.Equal(t, 403, status, "a token is not exchanged for another: it would never end")

	b.kit.SQL(`UPDATE service_account SET permission_keys = '["project.read"]'`)
	actor, err = b.kit.DB.Read(b.kit.With(made.AccessToken))
	require.NoError(t, err)
	require.False(t, actor.Allows(authz.AppsInstanceRead, project.TenantID, project.ID),
		"what the account loses the token loses")
	b.kit.SQL(`UPDATE service_account_key SET revoked_at = now()`)
	for _, token := range []string{made.AccessToken, narrow.AccessToken} {
		_, err = b.kit.DB.Read(b.kit.With(token))
		require.True(t, fault.Is(err, fault.Unauthenticated), "it is revoked with its key: %v", err)
	}
	for _, entry := range b.kit.Audit() {
		require.NotContains(t, string(entry.After), made.AccessToken[:40])
	}
	require.Equal(t, 6, b.kit.Count("audit_entry", "action = 'exchangeKey' AND allowed AND actor_id = $1", account.ID))
}

func TestATokenNeverOutlivesItsKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, key := b.kit.ServiceAccount(b.kit.Project(b.kit.Tenant()), authz.ProjectRead)
	b.kit.SQL(`UPDATE service_account_key SET expires_at = now() + interval '7 minutes'`)
	status, got := b.token(t, `{"grant_type":"client_credentials","client_secret":"`+key+`","expires_in":3600}`)
	require.Equal(t, 200, status)
	require.InDelta(t, 420, got.ExpiresIn, 5)
}

func TestRefusedExchangesSayWhyInBothLanguagesAndWriteNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	person := b.kit.Session(b.kit.User(nil, platformtest.OnPlatform(authz.PlatformOperator)))
	_, key := b.kit.ServiceAccount(b.kit.Project(b.kit.Tenant()), authz.ProjectRead)
	_, revoked := b.kit.ServiceAccount(b.kit.Project(b.kit.Tenant()), authz.ProjectRead)
	b.kit.SQL(`UPDATE service_account_key SET revoked_at = now() WHERE id = (SELECT max(id) FROM service_account_key)`)
	bearer := func(key string) []string { return []string{"Content-Type", form, "Authorization", "Bearer " + key} }
	for name, c := range map[string]struct {
		body    string
		headers []string
		code    fault.Code
		word    string
	}{
		"no key": {"grant_type=client_credentials", []string{"Content-Type", form}, fault.Unauthenticated,
			"invalid_client"},
		"two keys": {"grant_type=client_credentials&client_secret=" + key, bearer(key), fault.Unauthenticated,
			"invalid_client"},
		"a cookie": {"grant_type=client_credentials",
			[]string{"Content-Type", form, "Cookie", "gpuaas_session=" + key}, fault.Unauthenticated, "invalid_client"},
		"garbage":       {"grant_type=client_credentials", bearer("garbage"), fault.Unauthenticated, "invalid_client"},
		"revoked":       {"grant_type=client_credentials", bearer(revoked), fault.Unauthenticated, "invalid_client"},
		"a person":      {"grant_type=client_credentials", bearer(person), fault.Forbidden, "unauthorized_client"},
		"another grant": {"grant_type=password", bearer(key), fault.InvalidArgument, "unsupported_grant_type"},
		"too long": {"grant_type=client_credentials&expires_in=3601", bearer(key), fault.InvalidArgument,
			"invalid_request"},
		"too short": {"grant_type=client_credentials&expires_in=299", bearer(key), fault.InvalidArgument,
			"invalid_request"},
		"no number": {"grant_type=client_credentials&expires_in=soon", bearer(key), fault.InvalidArgument,
			"invalid_request"},
		"more than it has": {"grant_type=client_credentials&scope=apps.instance.create", bearer(key),
			fault.InvalidArgument, "invalid_scope"},
		"given twice": {"grant_type=client_credentials&scope=a&scope=b", bearer(key), fault.RequestInvalid,
			"invalid_request"},
		"another type": {"grant_type=client_credentials", []string{"Content-Type", "text/plain"},
			fault.UnsupportedMediaType, "invalid_request"},
		"no object":         {"[]", nil, fault.RequestInvalid, "invalid_request"},
		"an object in JSON": {`{"grant_type":{}}`, nil, fault.RequestInvalid, "invalid_request"},
	} {
		response, body := b.post("/auth/token", c.body, c.headers...)
		require.Contains(t, body, `"code":"`+string(c.code)+`"`, name)
		require.Contains(t, body, `"error":"`+c.word+`"`, name)
		require.Equal(t, fault.Lookup(c.code).HTTP, response.StatusCode, name)
	}
	require.Zero(t, b.kit.Count("audit_entry", "action = 'exchangeKey' AND allowed"))
	require.NotEmpty(t, b.kit.Audit())
	require.Positive(t, b.kit.Count("audit_entry",
		"action = 'exchangeKey' AND NOT allowed AND code = 'UNAUTHENTICATED'"))
}

func TestABrowserRefreshesItsSessionFromOurOwnPages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.identity.RotateAfter = time.Nanosecond
	response, _ := b.post("/auth/login", fmt.Sprintf(`{"code": %q, "client": "browser"}`, b.code()), "Origin", b.URL)
	session := "gpuaas_session=" + response.Cookies()[0].Value
	for name, headers := range map[string][]string{
		"another page": {"Cookie", session, "Origin", "https://evil.test"},
		"no page":      {"Cookie", session},
		"a bearer":     {"Authorization", "Bearer " + response.Cookies()[0].Value, "Origin", b.URL},
	} {
		refused, body := b.post("/auth/refresh", "", headers...)
		require.Equal(t, http.StatusForbidden, refused.StatusCode, "%s: %s", name, body)
	}
	refused, _ := b.post("/auth/refresh", "", "Origin", b.URL)
	require.Equal(t, http.StatusUnauthorized, refused.StatusCode)
	require.Equal(t, 1, b.kit.Count("session", "user_id = $1", b.person.ID), "nothing was written")
	fresh, body := b.post("/auth/refresh", "", "Cookie", session, "Origin", b.URL)
	require.Equal(t, http.StatusOK, fresh.StatusCode, body)
	require.Contains(t, body, `"rotated":true`)
	require.NotContains(t, body, fresh.Cookies()[0].Value, "a page's script never sees the session")
	require.True(t, fresh.Cookies()[0].HttpOnly)
	require.NotEqual(t, response.Cookies()[0].Value, fresh.Cookies()[0].Value)
	again, body := b.post("/auth/refresh", "", "Cookie", session, "Origin", b.URL)
	require.Equal(t, http.StatusOK, again.StatusCode)
	require.Contains(t, body, `"rotated":false`)
	require.Empty(t, again.Cookies())
}
