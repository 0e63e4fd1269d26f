package authhttp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/authhttp"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/identity"
)

// bench is a server with a person who can log in.
type bench struct {
	*httptest.Server
	kit      *platformtest.Kit
	identity *identity.Service
	person   *db.User
	t        *testing.T
}

func newBench(t *testing.T) *bench { return newBenchWith(t, authhttp.Options{}) }

func newBenchWith(t *testing.T, options authhttp.Options) *bench {
	kit := platformtest.New(t)
	service := &identity.Service{DB: kit.DB, DevLogins: true, PublicURL: platformtest.Issuer, Keys: kit.Ring}
	options.Identity, options.Log = service, slog.New(slog.DiscardHandler)
	handler, err := authhttp.New(options)
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &bench{Server: server, kit: kit, identity: service, person: kit.User(kit.Tenant()), t: t}
}

func (b *bench) code() string {
	link, err := b.identity.CreateLoginLink(b.kit.As(b.kit.Operator()), b.person.ID)
	require.NoError(b.t, err)
	return link.Code
}

func (b *bench) post(path, body string, headers ...string) (*http.Response, string) {
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.URL+path, strings.NewReader(body))
	require.NoError(b.t, err)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := b.Client().Do(request)
	require.NoError(b.t, err)
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	return response, string(answer)
}

func TestACommandLineGetsATokenAndLogsOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	code := b.code()
	body := fmt.Sprintf(`{"code": %q, "client": "cli"}`, code)
	response, answer := b.post("/auth/login", body, "X-Correlation-ID", "my-login")
	require.Equal(t, 200, response.StatusCode, answer)
	require.Equal(t, "my-login", response.Header.Get("X-Correlation-ID"))
	require.Empty(t, response.Header.Values("Set-Cookie"))
	var session struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expiresAt"`
	}
	require.NoError(t, json.Unmarshal([]byte(answer), &session))
	require.WithinDuration(t, time.Now().Add(identity.SessionTTL), session.ExpiresAt, time.Minute)

	viewer, err := b.identity.Viewer(b.kit.With(session.Token))
	require.NoError(t, err)
	require.Equal(t, string(b.person.ID), viewer.Actor.ID)

	response, answer = b.post("/auth/login", body)
	require.Equal(t, 401, response.StatusCode, "a code works once")
	require.Contains(t, answer, `"code":"UNAUTHENTICATED"`)
	require.Contains(t, answer, response.Header.Get("X-Correlation-ID"))

	response, _ = b.post("/auth/logout", "{}", "Authorization", "Bearer "+session.Token)
	require.Equal(t, 204, response.StatusCode)
	_, err = b.identity.Viewer(b.kit.With(session.Token))
	require.ErrorContains(t, err, "UNAUTHENTICATED")
}

func TestABrowserGetsAStrictCookieFromOurOwnPageAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	code := b.code()
	body := fmt.Sprintf(`{"code": %q, "client": "browser"}`, code)
	for name, headers := range map[string][]string{
		"no page named": nil, "another page": {"Origin", "https://evil.test"},
		"fetched across": {"Sec-Fetch-Site", "cross-site"},
	} {
		response, answer := b.post("/auth/login", body, headers...)
		require.Equal(t, 403, response.StatusCode, name)
		require.Contains(t, answer, "FORBIDDEN")
	}
	response, answer := b.post("/auth/login", body, "Origin", b.URL)
	require.Equal(t, 204, response.StatusCode, answer)
	require.Empty(t, answer, "a page's script never sees the session")
	cookie := response.Cookies()[0]
	require.Equal(t, "gpuaas_session", cookie.Name)
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.Equal(t, "/", cookie.Path)
	require.False(t, cookie.Secure, "this server does not speak TLS")

	sent := "gpuaas_session=" + cookie.Value
	response, _ = b.post("/auth/logout", "", "Cookie", sent, "Origin", "https://evil.test")
	require.Equal(t, 403, response.StatusCode)
	require.Equal(t, 1, b.kit.Count("session", "user_id = $1 AND revoked_at IS NULL", b.person.ID))
	response, _ = b.post("/auth/logout", "", "Cookie", sent, "Origin", b.URL)
	require.Equal(t, 204, response.StatusCode)
	require.Negative(t, response.Cookies()[0].MaxAge)
	require.Zero(t, b.kit.Count("session", "user_id = $1 AND revoked_at IS NULL", b.person.ID))
}

// A page of a sibling host can set cookies for the whole domain. Where people reach the platform by TLS, none of
// those is read: such a page neither logs a person in as another, nor out.
func TestOverTLSOnlyACookieOfThisVeryHostIsASession(t *testing.T) {
	t.Parallel()
	b := newBenchWith(t, authhttp.Options{Secure: true})
	response, answer := b.post("/auth/login", fmt.Sprintf(`{"code": %q, "client": "browser"}`, b.code()),
		"Origin", b.URL)
	require.Equal(t, 204, response.StatusCode, answer)
	cookie := response.Cookies()[0]
	require.Equal(t, []any{"__Host-gpuaas_session", true, "/", ""},
		[]any{cookie.Name, cookie.Secure, cookie.Path, cookie.Domain})
	for name, sent := range map[string]string{
		"the name without the prefix": "gpuaas_session=" + cookie.Value,
		"two of them":                 "gpuaas_session=a; gpuaas_session=b",
	} {
		response, answer = b.post("/auth/refresh", "", "Cookie", sent, "Origin", b.URL)
		require.Equal(t, 401, response.StatusCode, "%s: %s", name, answer)
	}
	response, answer = b.post("/auth/refresh", "", "Cookie", "gpuaas_session=tossed; __Host-gpuaas_session="+
		cookie.Value, "Origin", b.URL)
	require.Equal(t, 200, response.StatusCode, "a tossed cookie locks no one out: %s", answer)
	response, _ = b.post("/auth/logout", "", "Cookie", "__Host-gpuaas_session="+cookie.Value, "Origin", b.URL)
	require.Equal(t, 204, response.StatusCode)
	require.Equal(t, "__Host-gpuaas_session", response.Cookies()[0].Name)
	require.Zero(t, b.kit.Count("session", "user_id = $1 AND revoked_at IS NULL", b.person.ID))
}

func TestMalformedLoginsAreRefusedByName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
		says    string
	}{
		"form": {"code=x", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415,
			"UNSUPPORTED_MEDIA_TYPE"},
		"no JSON":        {"{", nil, 400, "REQUEST_INVALID"},
		"unknown client": {`{"code":"x","client":"toaster"}`, nil, 400, "client must be cli or browser"},
		"no code":        {`{"client":"cli"}`, nil, 400, "code must be given"},
		"too large":      {`{"code":"` + strings.Repeat("x", 5_000) + `"}`, nil, 413, "MESSAGE_TOO_LARGE"},
	} {
		response, answer := b.post("/auth/login", c.body, c.headers...)
		require.Equal(t, c.status, response.StatusCode, name)
		require.Contains(t, answer, c.says, name)
	}
	response, err := b.Client().Get(b.URL + "/auth/login?code=x")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, 405, response.StatusCode)
}

func TestFailedLoginsOfAnAddressAreLimited(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	good := fmt.Sprintf(`{"code": %q, "client": "cli"}`, b.code())
	for i := range 11 {
		response, _ := b.post("/auth/login", fmt.Sprintf(`{"code": "gpu_lnk_guess%d", "client": "cli"}`, i))
		require.Equal(t, 401, response.StatusCode)
	}
	response, answer := b.post("/auth/login", good)
	require.Equal(t, 429, response.StatusCode)
	require.Contains(t, answer, `"code":"RATE_LIMITED"`)
	require.Equal(t, "1", response.Header.Get("Retry-After"))
	require.Equal(t, 1, b.kit.Count("login_code", "used_at IS NULL"), "the code is still good")
}
