package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/apphttp"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/tunnel"
)

// People reach an app through whatever process they ask, by way of the one that holds the tunnel of its node.
func TestPeopleReachWhatRuns(t *testing.T) {
	t.Parallel()
	r := newReachable(t)
	agent, stop := context.WithCancel(t.Context())
	defer stop()
	r.agent(agent, r.near)
	member := r.User(r.tenant, platformtest.In(authz.ProjectMember, r.project))
	session := r.Session(member)
	admin := r.User(r.tenant, platformtest.In(authz.ProjectAdmin, r.project))
	web := "http://" + host("web", r.instance.ID)

	t.Run("in a browser, with a ticket that works once", func(*testing.T) { r.inABrowser(session, web) })
	t.Run("the app learns who calls, and no credential", func(*testing.T) { r.whoCalls(session, web, member.ID) })
	t.Run("what an app answers stays at its host", func(*testing.T) { r.hostile(session, web) })
	t.Run("a page of another origin gets nothing", func(*testing.T) { r.foreign(session, web) })
	t.Run("nobody else gets in", func(*testing.T) { r.strangers(session, web) })
	t.Run("a program connects to a port", func(*testing.T) { r.connects(session) })
	t.Run("an admin works with a command", func(*testing.T) { r.worksWithACommand(session) })
	t.Run("an admin logs in to a member", func(*testing.T) { r.logsIn(session, admin) })
	t.Run("an admin opens a terminal in the console", func(*testing.T) { r.opensATerminal(session) })
	t.Run("an endpoint says whether it answers", func(*testing.T) { r.answers(session) })
	t.Run("all ends with the right", func(*testing.T) { r.ends(web) })

	stop() // the agent loses its process, and comes back at another
	require.Eventually(t, func() bool { return r.Count("node_tunnel", "true") == 0 }, time.Minute, 10*time.Millisecond)
	away := r.ask(t.Context(), http.MethodGet, web, "Authorization", "Bearer "+session)
	require.Equal(t, http.StatusServiceUnavailable, away.StatusCode)
	require.Contains(t, bodyOf(t, away), string(fault.NodeUnreachable))
	require.Eventually(t, func() bool { // what was tried before is good for some seconds
		return strings.HasPrefix(r.health(session)["raw"], "UNKNOWN: 0 of 1 members answer")
	}, time.Minute, 100*time.Millisecond)
	r.agent(t.Context(), r.far)
	back := r.ask(t.Context(), http.MethodGet, web, "Authorization", "Bearer "+session)
	require.Equal(t, "hello from the app", bodyOf(t, back))
}

// answers looks while the agent is there.
func (r *reachable) answers(session string) {
	found := r.health(session)
	require.Equal(r.t, "HEALTHY: 1 of 1 members answer", found["web"])
	require.Equal(r.t, "HEALTHY: 1 of 1 members answer", found["raw"])
	require.Equal(r.t, "0 HEALTHY", found["web of the member"], "no adapter has said a word of its health")
	require.Equal(r.t, "0 UNHEALTHY", found["broken of the member"])
	require.Contains(r.t, found["broken"], "UNHEALTHY: 0 of 1 members answer; member "+string(r.memberID())+
		": it breaks off, or does not answer with HTTP")
}

func (r *reachable) inABrowser(session, web string) {
	t := r.t
	require.Zero(t, r.Count("audit_entry", "action = 'openEndpoint'"))
	address, code := r.open(session, r.instance.ID, "web")
	require.Empty(t, code)
	require.True(t, strings.HasPrefix(address, web+"/.platform/open?ticket=gpu_tic_"), address)
	require.Equal(t, 1, r.Count("audit_entry", `action = 'openEndpoint' AND allowed AND object_id = $1
		AND permission_key = 'apps.queue.submit'`, r.instance.ID))
	first := r.ask(t.Context(), http.MethodGet, address)
	require.Equal(t, http.StatusSeeOther, first.StatusCode)
	again := r.ask(t.Context(), http.MethodGet, address, "Accept", "text/html")
	require.Equal(t, http.StatusUnauthorized, again.StatusCode, "a ticket works once")
	require.Empty(t, again.Cookies())
	require.Contains(t, bodyOf(t, again), "Open this from the console")
	late, _ := r.open(session, r.instance.ID, "web")
	r.SQL(`UPDATE endpoint_opening SET ticket_ends_at = now() WHERE redeemed_at IS NULL`)
	require.Equal(t, http.StatusUnauthorized, r.ask(t.Context(), http.MethodGet, late).StatusCode, "it is over")
	cookie := first.Cookies()[0]
	page := r.ask(t.Context(), http.MethodGet, web+"/", "Cookie", cookie.Name+"="+cookie.Value)
	require.Equal(t, "hello from the app", bodyOf(t, page))
	require.Empty(t, page.Header.Get("Content-Security-Policy"), "the console's policy is not the app's")
	<-r.seen
}

func (r *reachable) whoCalls(session, web string, caller ids.ID) {
	t := r.t
	cookie := r.browse(session, r.instance.ID)
	for _, shown := range [][]string{
		{"Cookie", cookie + "; theirs=1; gpuaas_session=gpu_ses_x", apphttp.CallerHeader, "forged"},
		{"Authorization", "Bearer " + session, "Cookie", "theirs=1"},
	} {
		require.Equal(t, "hello from the app", bodyOf(t, r.ask(t.Context(), http.MethodGet, web+"/", shown...)))
		seen := <-r.seen
		require.Empty(t, seen.Header.Get("Authorization"))
		require.Equal(t, "theirs=1", seen.Header.Get("Cookie"))
		require.Equal(t, host("web", r.instance.ID), seen.Host)
		token, err := jwt.ParseSigned(seen.Header.Get(apphttp.CallerHeader), []jose.SignatureAlgorithm{jose.EdDSA})
		require.NoError(t, err)
		var claims map[string]any
		require.NoError(t, token.Claims(r.published(), &claims), "an app verifies it by the published keys alone")
		require.Equal(t, string(caller), claims["sub"])
		require.Equal(t, string(r.instance.ID), claims["aud"])
		require.Equal(t, "web", claims["endpoint"])
	}
	own := r.ask(t.Context(), http.MethodGet, web+"/", "Cookie", cookie, "Authorization", "Bearer the-apps-own")
	require.Equal(t, http.StatusOK, own.StatusCode)
	require.Equal(t, "Bearer the-apps-own", (<-r.seen).Header.Get("Authorization"))
	require.Equal(t, http.StatusUnauthorized, r.ask(t.Context(), http.MethodGet, web+"/", "Cookie", cookie,
		"Authorization", "Bearer gpu_ses_mistyped").StatusCode)
	require.Empty(t, r.seen, "a credential that seems to be the platform's never gets to an app")
}

// published are the keys that the platform publishes.
func (r *reachable) published() *jose.JSONWebKeySet {
	response, err := http.Get(r.far.url + "/.well-known/jwks.json")
	require.NoError(r.t, err)
	defer func() { _ = response.Body.Close() }()
	keys := &jose.JSONWebKeySet{}
	body, err := io.ReadAll(response.Body)
	require.NoError(r.t, err)
	require.NoError(r.t, json.Unmarshal(body, keys))
	return keys
}

func (r *reachable) hostile(session, web string) {
	t, bearer := r.t, "Bearer "+session
	cookies := r.ask(t.Context(), http.MethodGet, web+"/cookies", "Authorization", bearer)
	require.Equal(t, []string{"wide=1; Path=/"}, cookies.Header.Values("Set-Cookie"))
	for path, why := range map[string]string{"/home": "redirects to the platform", "/headers": "64 KiB of headers",
		"/garbage": "not HTTP"} {
		answer := r.ask(t.Context(), http.MethodGet, web+path, "Authorization", bearer)
		require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode, path)
		require.Contains(t, bodyOf(t, answer), why, path)
		require.Empty(t, answer.Header.Get("Location"))
	}
	for len(r.seen) > 0 {
		<-r.seen
	}
}

func (r *reachable) foreign(session, web string) {
	t, cookie := r.t, r.browse(session, r.instance.ID)
	for _, sent := range [][]string{
		{http.MethodPost, "Sec-Fetch-Site", "same-site"},
		{http.MethodGet, "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"},
		{http.MethodGet, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Upgrade", "websocket"},
		{http.MethodPost, "Origin", "http://" + host("web", ids.New(ids.Instance))},
		{http.MethodPost},
	} {
		answer := r.ask(t.Context(), sent[0], web+"/", append([]string{"Cookie", cookie}, sent[1:]...)...)
		require.Equal(t, http.StatusForbidden, answer.StatusCode, "%v", sent)
		require.Contains(t, bodyOf(t, answer), "another origin", "%v", sent)
	}
	require.Empty(t, r.seen)
	for _, sent := range [][]string{{http.MethodPost, "Sec-Fetch-Site", "same-origin"},
		{http.MethodPost, "Origin", web},
		{http.MethodGet, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}} {
		answer := r.ask(t.Context(), sent[0], web+"/", append([]string{"Cookie", cookie}, sent[1:]...)...)
		require.Equal(t, http.StatusOK, answer.StatusCode, "%v", sent)
		<-r.seen
	}
}

func (r *reachable) strangers(session, web string) {
	t := r.t
	viewer := r.Session(r.User(r.tenant, platformtest.In(authz.ProjectViewer, r.project)))
	other := r.Tenant()
	stranger := r.Session(r.User(other, platformtest.Across(authz.TenantAdmin, other)))
	before := r.Count("endpoint_opening", "true")
	for who, want := range map[string]fault.Code{viewer: fault.Forbidden, stranger: fault.NotFound} {
		_, code := r.open(who, r.instance.ID, "web")
		require.Equal(t, string(want), code)
		answer := r.ask(t.Context(), http.MethodGet, web+"/", "Authorization", "Bearer "+who)
		require.Contains(t, bodyOf(t, answer), string(want))
		_, err := tunnel.Dial(t.Context(), r.connection("raw"), who, nil)
		require.ErrorContains(t, err, map[fault.Code]string{fault.Forbidden: "apps.queue.submit",
			fault.NotFound: ""}[want])
		var refused *tunnel.Refusal
		require.ErrorAs(t, err, &refused)
		require.Equal(t, string(want), refused.Code)
	}
	for endpoint, want := range map[string]fault.Code{"nothing": fault.NotFound, "raw": fault.FailedPrecondition} {
		_, code := r.open(session, r.instance.ID, endpoint)
		require.Equal(t, string(want), code, endpoint)
	}
	r.Policy(r.project, `{"access": {"deny": ["ENDPOINTS"]}}`)
	_, code := r.open(session, r.instance.ID, "web")
	require.Equal(t, string(fault.PolicyDenied), code)
	fresh := r.Session(r.User(r.tenant, platformtest.In(authz.ProjectMember, r.project)))
	denied := r.ask(t.Context(), http.MethodGet, web+"/", "Authorization", "Bearer "+fresh)
	require.Contains(t, bodyOf(t, denied), string(fault.PolicyDenied))
	r.Policy(r.project, `{}`)
	require.Equal(t, before, r.Count("endpoint_opening", "true"), "nothing was opened")
	sibling := r.launch(r.project, r.node)
	cookie := r.browse(session, sibling.ID)
	answer := r.ask(t.Context(), http.MethodGet, web+"/", "Cookie", cookie)
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode, "a cookie is for its own host")
	require.Equal(t, http.StatusNotFound, r.ask(t.Context(), http.MethodGet, "http://nobody.apps.test/").StatusCode)
	require.Empty(t, r.seen)
}

// connection is the address at which a program connects to an endpoint.
func (r *reachable) connection(endpoint string) string {
	return fmt.Sprintf("%s%s?instance=%s&endpoint=%s", r.far.url, tunnel.ConnectPath, r.instance.ID, endpoint)
}

func (r *reachable) connects(session string) {
	t := r.t
	conn, err := tunnel.Dial(t.Context(), r.connection("raw"), session, nil)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.0 200 OK\r\n", line)
	<-r.seen
	require.Equal(t, 1, r.Count("audit_entry",
		"action = 'connectEndpoint' AND allowed AND after ->> 'endpoint' = 'raw'"))
}

// command is the address of a command in the instance's member.
func (r *reachable) command(reason string, words ...string) string {
	query := url.Values{"member": {string(r.memberID())}, "reason": {reason}, "command": words}
	return r.far.url + tunnel.ExecPath + "?" + query.Encode()
}

// memberID is the instance's one member.
func (r *reachable) memberID() (member ids.ID) {
	require.NoError(r.t, r.Admin.QueryRow(r.t.Context(), `SELECT id FROM member WHERE instance_id = $1`,
		r.instance.ID).Scan(&member))
	return member
}

func (r *reachable) worksWithACommand(session string) {
	t := r.t
	admin := r.Session(r.User(r.tenant, platformtest.In(authz.ProjectAdmin, r.project)))
	refused := func(credential, reason string, want fault.Code, words ...string) {
		t.Helper()
		_, err := tunnel.Dial(t.Context(), r.command(reason, words...), credential, nil)
		var why *tunnel.Refusal
		require.ErrorAs(t, err, &why)
		require.Equal(t, string(want), why.Code, "%s", why.Message)
	}
	refused(session, "to look", fault.Forbidden, "sh")
	refused(admin, "", fault.InvalidArgument, "sh")
	refused(admin, "to look", fault.InvalidArgument)
	r.Policy(r.project, `{"access": {"deny": ["EXEC"]}}`)
	refused(admin, "to look", fault.PolicyDenied, "sh")
	r.Policy(r.project, `{}`)
	require.Zero(t, r.Count("audit_entry", "action = 'execMember' AND allowed"))

	conn, err := tunnel.Dial(t.Context(), r.command("to look", "sh", "-c", "secret"), admin, nil)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	read := func(want tunnel.Frame) string {
		t.Helper()
		kind, carries, err := tunnel.ReadFrame(conn)
		require.NoError(t, err)
		require.Equal(t, want, kind)
		return string(carries)
	}
	require.JSONEq(t, `{"command": ["sh", "-c", "secret"]}`, read(tunnel.ErrorOutput))
	require.NoError(t, tunnel.WriteFrame(conn, tunnel.Input, []byte("hello")))
	require.Equal(t, "hello", read(tunnel.Output))
	require.NoError(t, tunnel.WriteFrame(conn, tunnel.InputEnd, nil))
	require.Equal(t, 5, tunnel.ReadExit([]byte(read(tunnel.Exit))))
	require.Equal(t, 1, r.Count("audit_entry", `action = 'execMember' AND allowed AND reason = 'to look'
		AND after ->> 'program' = 'sh' AND after::text NOT LIKE '%secret%'`))
}

// ends opens what stays open, and takes the right away.
func (r *reachable) ends(web string) {
	t := r.t
	person := r.User(r.tenant)
	binding := r.Bind(person, platformtest.In(authz.ProjectMember, r.project))
	session := r.Session(person)
	cookie := r.browse(session, r.instance.ID)
	stream := r.ask(t.Context(), http.MethodGet, web+"/endless", "Cookie", cookie)
	<-r.entered
	header := http.Header{"Cookie": {cookie}, "Origin": {web}}
	header.Set("Host", host("web", r.instance.ID))
	socket, response, err := websocket.DefaultDialer.DialContext(t.Context(),
		"ws"+strings.TrimPrefix(r.far.url, "http")+"/socket", header)
	require.NoError(t, err)
	defer func() { _, _ = response.Body.Close(), socket.Close() }()
	require.NoError(t, socket.WriteMessage(websocket.TextMessage, []byte("ping")))
	_, echo, err := socket.ReadMessage()
	require.NoError(t, err)
	require.Equal(t, "ping", string(echo))
	conn, err := tunnel.Dial(t.Context(), r.connection("raw"), session, nil)
	require.NoError(t, err)

	r.SQL(`UPDATE role_binding SET revoked_at = now() WHERE id = $1`, binding.ID)
	began := time.Now()
	_, err = io.ReadAll(stream.Body)
	require.Error(t, err, "the stream is cut")
	_, _, err = socket.ReadMessage()
	require.Error(t, err)
	_, _ = io.ReadAll(conn)
	t.Logf("all had ended %s after the right", time.Since(began).Round(time.Millisecond))
	require.Equal(t, http.StatusUnauthorized, r.ask(t.Context(), http.MethodGet, web+"/", "Cookie", cookie).StatusCode)
}
