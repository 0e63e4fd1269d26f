package server

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/internal/edge"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// viewer asks who is calling, which every credential may.
const viewer = `{ viewer { actor { id } } }`

// asked sends viewer with these headers.
func (b *bench) asked(headers ...string) (*http.Response, string) {
	b.t.Helper()
	return b.sent(viewer, headers...)
}

// sent sends a document with these headers; Content-Type is application/json unless one is given.
func (b *bench) sent(document string, headers ...string) (*http.Response, string) {
	b.t.Helper()
	body, err := json.Marshal(map[string]string{"query": document})
	require.NoError(b.t, err)
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+"/graphql", bytes.NewReader(body))
	require.NoError(b.t, err)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Content-Type" {
			request.Header.Del("Content-Type")
		}
		request.Header.Add(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(b.t, err)
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	return response, string(answer)
}

// crossings are pages that may or may not act with the session cookie. HOST is replaced by the server's host.
var crossings = map[string]struct {
	headers []string
	allowed bool
}{
	"our page":                    {[]string{"Origin", "http://HOST", "Sec-Fetch-Site", "same-origin"}, true},
	"our page, no Sec-Fetch-Site": {[]string{"Origin", "http://HOST"}, true},
	"our page behind a TLS proxy": {[]string{"Origin", "https://HOST"}, true},
	"a page that is allowed": {[]string{"Origin", "https://console.test:8443", "Sec-Fetch-Site", "cross-site"},
		true},
	"nothing said":                 {nil, false},
	"another site":                 {[]string{"Origin", "https://evil.test", "Sec-Fetch-Site", "cross-site"}, false},
	"another site, no Sec-Fetch":   {[]string{"Origin", "https://evil.test"}, false},
	"null":                         {[]string{"Origin", "null"}, false},
	"null that claims to be ours":  {[]string{"Origin", "null", "Sec-Fetch-Site", "same-origin"}, false},
	"a subdomain":                  {[]string{"Origin", "http://x.HOST", "Sec-Fetch-Site", "same-site"}, false},
	"a name that begins like ours": {[]string{"Origin", "http://HOST.evil.test"}, false},
	"a name that ends like ours":   {[]string{"Origin", "http://evilHOST"}, false},
	"ours as a user":               {[]string{"Origin", "http://HOST@evil.test"}, false},
	"a user at ours":               {[]string{"Origin", "http://evil@HOST"}, false},
	"another port":                 {[]string{"Origin", "http://127.0.0.1:1"}, false},
	"no port":                      {[]string{"Origin", "http://127.0.0.1"}, false},
	"another scheme":               {[]string{"Origin", "ftp://HOST"}, false},
	"no scheme":                    {[]string{"Origin", "HOST"}, false},
	"with a path":                  {[]string{"Origin", "http://HOST/x"}, false},
	"two origins":                  {[]string{"Origin", "http://HOST", "Origin", "https://evil.test"}, false},
	"an allowed page's subdomain":  {[]string{"Origin", "https://x.console.test:8443"}, false},
	"an allowed page's other port": {[]string{"Origin", "https://console.test"}, false},
}

// at replaces HOST by the server's host.
func (b *bench) at(headers []string) []string {
	out := make([]string, len(headers))
	for i, text := range headers {
		out[i] = strings.ReplaceAll(text, "HOST", strings.TrimPrefix(b.url, "http://"))
	}
	return out
}

func newCrossed(t *testing.T) (b *bench, cookie string) {
	b = newBench(t, func(c *Config) { c.Origins = []string{"https://console.test:8443"} })
	return b, "__Host-gpuaas_session=" + b.Session(b.User(b.Tenant()))
}

func TestTheCookieActsForOurOwnPagesAlone(t *testing.T) {
	t.Parallel()
	b, cookie := newCrossed(t)
	for name, c := range crossings {
		response, answer := b.asked(append(b.at(c.headers), "Cookie", cookie)...)
		want := http.StatusForbidden
		if c.allowed {
			want = http.StatusOK
		}
		require.Equal(t, want, response.StatusCode, "%s: %s", name, answer)
		require.Equal(t, c.allowed, strings.Contains(answer, `"viewer"`), name)
	}
	response, _ := b.asked("Cookie", cookie, "Origin", b.url, "Sec-Fetch-Site", "cross-site")
	require.Equal(t, http.StatusForbidden, response.StatusCode, "what the browser says twice must agree")
	for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
		"text/plain; application/json"} {
		response, answer := b.asked("Cookie", cookie, "Origin", b.url, "Content-Type", media)
		require.Equal(t, http.StatusUnsupportedMediaType, response.StatusCode, "%s: %s", media, answer)
	}
	response, _ = b.asked("Authorization", "Bearer "+strings.TrimPrefix(cookie, "__Host-gpuaas_session="), "Origin",
		"https://evil.test")
	require.Equal(t, http.StatusOK, response.StatusCode,
		"a token is sent by whoever holds it, and by no browser of itself")
}

func TestACookieThatASiblingHostSetsIsNotRead(t *testing.T) {
	t.Parallel()
	b, cookie := newCrossed(t)
	tossed := strings.Replace(cookie, "__Host-", "", 1)
	response, answer := b.asked("Cookie", tossed, "Origin", b.url)
	require.Equal(t, http.StatusUnauthorized, response.StatusCode, answer)
	require.NotZero(t, b.socket(`{"type":"connection_init"}`, "Cookie", tossed, "Origin", b.url))
	response, answer = b.asked("Cookie", "gpuaas_session=tossed; "+cookie, "Origin", b.url)
	require.Equal(t, http.StatusOK, response.StatusCode, "nor does it lock its victim out: %s", answer)
}

// socket opens a socket with these headers and says hello; it answers the close code, the HTTP status
// of a refused handshake, or 0 when it was acknowledged.
func (b *bench) socket(hello string, headers ...string) int {
	b.t.Helper()
	given := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		given.Add(headers[i], headers[i+1])
	}
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}, HandshakeTimeout: patience}
	conn, response, err := dialer.Dial("ws"+strings.TrimPrefix(b.url, "http")+"/graphql", given)
	if err != nil {
		require.NotNil(b.t, response, "%v", err)
		return response.StatusCode
	}
	defer func() { _ = conn.Close() }()
	require.NoError(b.t, conn.SetReadDeadline(time.Now().Add(patience)))
	require.NoError(b.t, conn.WriteMessage(websocket.TextMessage, []byte(hello)))
	var in frame
	if err := conn.ReadJSON(&in); err != nil {
		closed := new(websocket.CloseError)
		require.ErrorAs(b.t, err, &closed)
		return closed.Code
	}
	require.Equal(b.t, "connection_ack", in.Type)
	return 0
}

func TestASocketWithTheCookieOpensForOurOwnPagesAlone(t *testing.T) {
	t.Parallel()
	b, cookie := newCrossed(t)
	const hello = `{"type":"connection_init"}`
	for name, c := range crossings {
		code := b.socket(hello, append(b.at(c.headers), "Cookie", cookie)...)
		if c.allowed {
			require.Zero(t, code, name)
		} else {
			require.Contains(t, []int{http.StatusForbidden, 4403}, code, name)
		}
	}
	token := strings.TrimPrefix(cookie, "__Host-gpuaas_session=")
	require.Zero(t, b.socket(`{"type":"connection_init","payload":{"authorization":"Bearer `+token+`"}}`),
		"a program names no page")
	require.Equal(t, http.StatusForbidden, b.socket(hello, "Origin", "https://evil.test", "Authorization",
		"Bearer "+token))
}

func TestACallerThatFloodsIsSlowedAndNobodyElse(t *testing.T) {
	t.Parallel()
	// one at once, and then one in five seconds
	b := newBench(t, func(c *Config) { c.Edge.Limits = edge.Config{SubjectRate: 0.2} })
	tenant := b.Tenant()
	loud, quiet := b.Session(b.User(tenant)), b.Session(b.User(tenant))
	response, answer := b.asked("Authorization", "Bearer "+loud)
	require.Equal(t, http.StatusOK, response.StatusCode, answer)
	for range 20 {
		response, answer = b.asked("Authorization", "Bearer "+loud)
		require.Equal(t, http.StatusTooManyRequests, response.StatusCode, answer)
		require.Contains(t, answer, `"code":"RATE_LIMITED"`)
		require.Regexp(t, `^[1-5]$`, response.Header.Get("Retry-After"))
	}
	response, answer = b.asked("Authorization", "Bearer "+quiet)
	require.Equal(t, http.StatusOK, response.StatusCode, answer)
	got := b.watch(quiet, viewer, nil)
	require.Equal(t, "RATE_LIMITED", got.code(), "an operation of a socket counts like another")
}

func TestGarbageIsRefusedByItsAddressWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Edge.Limits = edge.Config{AddressRate: 4, SocketRate: 0.2} })
	b.DB.Close() // whatever still reaches it fails as UNAVAILABLE or INTERNAL
	for i := range 20 {
		response, answer := b.asked("Authorization", "Bearer gpu_ses_"+fmt.Sprint(i))
		require.Equal(t, http.StatusUnauthorized, response.StatusCode, answer)
		if i >= 10 {
			break
		}
	}
	response, answer := b.asked("Authorization", "Bearer gpu_ses_another")
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode, answer)
	require.Contains(t, answer, "too many wrong credentials")
	for range 10 {
		response, answer = b.asked("Authorization", "Bearer x")
	}
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode)
	require.Contains(t, answer, "slow down", "in the end the address itself is refused")
	require.Equal(t, 4401, b.socket(`{"type":"connection_init"}`))
	require.Equal(t, http.StatusTooManyRequests, b.socket(`{"type":"connection_init"}`))
	response, err := http.Post(b.url+"/auth/login", "text/plain", strings.NewReader("x"))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode, "a login is a request of its address too")
}

func TestWrongSecretsSlowTheirAddressAndNotWhoHasTheRightOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, key := b.ServiceAccount(b.Project(b.Tenant()), authz.AppsInstanceRead)
	response, answer := b.asked("Authorization", "Bearer "+key)
	require.Equal(t, http.StatusOK, response.StatusCode, answer)
	expired := b.Session(b.User(b.Tenant()))
	b.SQL(`UPDATE session SET revoked_at = now()`)
	for range 20 { // a job that was forgotten shows the same one again and again
		require.Equal(t, "UNAUTHENTICATED", b.post(expired, viewer, nil).code())
	}
	for range 10 {
		unknown, _ := token.Mint(token.Key)
		require.Equal(t, "UNAUTHENTICATED", b.post(unknown, viewer, nil).code())
	}
	unknown, _ := token.Mint(token.Key)
	response, answer = b.asked("Authorization", "Bearer "+unknown)
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode, answer)
	require.NotEmpty(t, response.Header.Get("Retry-After"))
	response, answer = b.asked("Authorization", "Bearer "+key)
	require.Equal(t, http.StatusOK, response.StatusCode, answer)
}

func TestTheAuditTakesTheAddressFromProxiesThatAreTrusted(t *testing.T) {
	t.Parallel()
	for origin, trusted := range map[string][]string{"198.51.100.7": {"127.0.0.0/8"}, "127.0.0.1": nil} {
		b := newBench(t, func(c *Config) { c.Edge.TrustedProxies = trusted })
		response, answer := b.sent(
			`mutation { createTenant(input: {slug: "mine", displayName: "Mine", idempotencyKey: "mine"}) { id } }`,
			"Authorization", "Bearer "+b.Session(b.Operator()), "X-Forwarded-For", "6.6.6.6, 198.51.100.7",
			"X-Forwarded-Proto",
			"https")
		require.Equal(t, http.StatusOK, response.StatusCode, answer)
		require.NotContains(t, answer, "errors")
		require.Equal(t, 1, b.Count("audit_entry", "action = 'createTenant' AND origin = $1", origin))
		require.Equal(t, trusted != nil, response.Header.Get("Strict-Transport-Security") != "")
	}
}

func TestSocketsAndHTTP2AreServedOverTLS(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	config := Defaults()
	config.DatabaseURL, config.PublicURL, config.Listen = kit.DSN, platformtest.Issuer, []string{"127.0.0.1:0"}
	require.NoError(t, config.complete())
	p := &platform{config: config, log: slog.New(slog.DiscardHandler), db: kit.DB, hub: kit.Hub, ring: kit.Ring}
	group, ctx := errgroup.WithContext(t.Context())
	serves, err := p.handler(ctx, group)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(serves.all)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	response, err := server.Client().Get(server.URL + "/healthz")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, 2, response.ProtoMajor)
	require.Equal(t, "max-age=31536000", response.Header.Get("Strict-Transport-Security"))

	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}, TLSClientConfig: &tls.Config{
		RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com",
		MinVersion: tls.VersionTLS12}}
	conn, _, err := dialer.Dial("wss"+strings.TrimPrefix(server.URL, "https")+"/graphql", http.Header{
		"Origin": {server.URL}, "Cookie": {"__Host-gpuaas_session=" + kit.Session(kit.User(kit.Tenant()))}})
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.WriteJSON(frame{Type: "connection_init"}))
	var in frame
	require.NoError(t, conn.ReadJSON(&in))
	require.Equal(t, "connection_ack", in.Type)

	recorded := httptest.NewRecorder()
	serves.metrics.ServeHTTP(recorded, httptest.NewRequest("GET", "/metrics", nil))
	require.Contains(t, recorded.Body.String(), "app_platform_sockets 1")
	require.Contains(t, recorded.Body.String(), "app_platform_edge_wrong_credentials_total 0")
}

func TestAConnectionThatDripsIsCutAndEveryWaitHasAnEnd(t *testing.T) {
	t.Parallel()
	server := (&platform{log: slog.New(slog.DiscardHandler)}).newServer(http.NotFoundHandler())
	require.NotZero(t, server.ReadHeaderTimeout)
	require.NotZero(t, server.ReadTimeout)
	require.NotZero(t, server.WriteTimeout)
	require.NotZero(t, server.IdleTimeout)
	require.NotZero(t, server.MaxHeaderBytes)
	server.ReadHeaderTimeout = 100 * time.Millisecond // the same wait, only shorter
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	for range 50 { // all at once: each holds a connection, and none may keep it
		conn, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\nX-Drip: "))
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
		_, err = io.ReadAll(bufio.NewReader(conn))
		require.NotErrorIs(t, err, net.ErrClosed)
		timeout, ok := err.(net.Error)
		require.False(t, ok && timeout.Timeout(), "the server closes it, not our patience")
	}
}
