package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/nodelogs"
	"github.com/gpuaas/app-platform/sdk/nodemetrics"
	"github.com/gpuaas/app-platform/sdk/tunnel"
	"github.com/gpuaas/app-platform/sdk/volumefiles"
)

// reachable is an installation of two server processes with an app that has endpoints, on a node whose agent a test
// plays.
type reachable struct {
	*platformtest.Kit
	t          *testing.T
	near, far  *serverProcess // near holds the tunnel, people call far
	tenant     *db.Tenant
	project    *db.Project
	instance   *db.Instance
	node       *db.ComputeNode
	credential string // of the node
	app        *httptest.Server
	seen       chan *http.Request // what the app was asked
	entered    chan struct{}      // somebody reads the app's endless answer
	logs       nodelogs.Source    // what its member prints
	metrics    nodemetrics.Source // what its member uses
	files      http.Handler       // what serves requests about its volumes
	told       chan volumefiles.Spec
}

func newReachable(t *testing.T) *reachable {
	r := &reachable{Kit: platformtest.New(t), t: t, seen: make(chan *http.Request, 100),
		entered: make(chan struct{}, 10)}
	r.app = httptest.NewServer(http.HandlerFunc(r.serveApp))
	t.Cleanup(r.app.Close)
	r.tenant = r.Tenant()
	r.project = r.Project(r.tenant)
	r.node, r.credential = r.Node(1)
	r.instance = r.launch(r.project, r.node)
	keys := t.TempDir()
	start := func() *serverProcess {
		config := frugal()
		config.DatabaseURL, config.KeysDir, config.Roles = r.DSN, keys, []string{"api"}
		config.AppsURL, config.PublicURL = "http://apps.test", "http://console.test"
		return startServer(t, config)
	}
	r.near, r.far = start(), start()
	return r
}

// launch makes an instance of an app of its own whose one member, on the node, is the test's app.
func (r *reachable) launch(project *db.Project, node *db.ComputeNode) *db.Instance {
	app := r.App("apps")
	_, port, err := net.SplitHostPort(r.app.Listener.Addr().String())
	require.NoError(r.t, err)
	number, err := strconv.Atoi(port)
	require.NoError(r.t, err)
	document := platformtest.Document(app, "1.0.0", r.Adapter("http://adapter.test", nil),
		r.Artifact(lifecycle.StageActive))
	declare := func(name, protocol string) map[string]any {
		return map[string]any{"name": name, "title": "The " + name, "componentKey": "worker", "port": number,
			"protocol": protocol, "permissionKey": "apps.queue.submit"}
	}
	broken, web := declare("broken", "http"), declare("web", "http")
	broken["healthPath"], web["healthPath"] = "/garbage", "/healthz"
	document["endpoints"] = []any{web, declare("raw", "tcp"), declare("login", "ssh"), broken}
	stored := r.Manifest(lifecycle.StageActive, document)
	return r.Instance(project, stored, lifecycle.InstanceRunning, r.Allocation(project, node))
}

// serveApp is an app: some of what it answers is hostile.
func (r *reachable) serveApp(w http.ResponseWriter, request *http.Request) {
	r.seen <- request.Clone(context.Background())
	header := w.Header()
	switch request.URL.Path {
	case "/cookies":
		header.Add("Set-Cookie", "wide=1; Domain=apps.test; Path=/")
		header.Add("Set-Cookie", "app_platform_endpoint=stolen")
		header.Add("Set-Cookie", "gpuaas_session=stolen")
	case "/home":
		header.Set("Location", "http://console.test/graphql")
		w.WriteHeader(http.StatusFound)
	case "/headers":
		for i := range 3_000 {
			header.Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 40))
		}
	case "/garbage":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = conn.Write([]byte("\x00\x01 this is no HTTP\r\n\r\n"))
			_ = conn.Close()
		}
		return
	case "/endless":
		_, _ = w.Write([]byte("begun\n"))
		_ = http.NewResponseController(w).Flush()
		r.entered <- struct{}{}
		<-request.Context().Done()
		return
	case "/socket":
		upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
		conn, err := upgrader.Upgrade(w, request, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		for {
			kind, text, err := conn.ReadMessage()
			if err != nil || conn.WriteMessage(kind, text) != nil {
				return
			}
		}
	}
	_, _ = io.WriteString(w, "hello from the app")
}

// agent plays the node's agent at one server until ctx ends: every request for a port gets it.
func (r *reachable) agent(ctx context.Context, at *serverProcess) {
	r.t.Helper()
	conn, err := tunnel.Dial(ctx, at.url+tunnel.NodePath, r.credential, nil)
	require.NoError(r.t, err)
	session, err := tunnel.NewSession(conn, false)
	require.NoError(r.t, err)
	go func() {
		_ = session.Serve(ctx, func(_ context.Context, open tunnel.Open, stream *tunnel.Stream) error {
			if open.Kind == nodelogs.Kind && r.logs != nil && stream.Granted() == nil {
				return nodelogs.Serve(ctx, stream, open.MemberID, r.logs)
			}
			if open.Kind == nodemetrics.Kind && r.metrics != nil && stream.Granted() == nil {
				return nodemetrics.Serve(stream, open.MemberID, r.metrics)
			}
			switch open.Kind {
			case volumefiles.Kind:
				return r.playFiles(ctx, open, stream)
			case tunnel.KindExec:
				return playCommand(open, stream)
			case tunnel.KindSSH:
				return playLogin(open, stream)
			}
			var port tunnel.Port
			if err := json.Unmarshal(open.Spec, &port); err != nil || open.Kind != tunnel.KindPort {
				return &tunnel.Refusal{Code: tunnel.Unserved, Message: "no such kind"}
			}
			there, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port.Port)))
			if err != nil {
				return &tunnel.Refusal{Code: tunnel.NotListening, Message: "nothing listens"}
			}
			if err := stream.Granted(); err != nil {
				return err
			}
			tunnel.Join(stream.Conn, there)
			return nil
		})
	}()
	require.Eventually(r.t, func() bool { return r.Count("node_tunnel", "node_id = $1", r.node.ID) == 1 }, time.Minute,
		10*time.Millisecond)
}

// playCommand plays a command that prints its spec, echoes its input, and ends by itself with code 5.
func playCommand(open tunnel.Open, stream *tunnel.Stream) error {
	if err := stream.Granted(); err != nil {
		return err
	}
	if err := tunnel.WriteFrame(stream, tunnel.ErrorOutput, open.Spec); err != nil {
		return err
	}
	for {
		kind, carries, err := tunnel.ReadFrame(stream)
		switch {
		case err != nil:
			return err
		case kind == tunnel.InputEnd:
			return tunnel.WriteFrame(stream, tunnel.Exit, tunnel.ExitOf(5))
		}
		if err := tunnel.WriteFrame(stream, tunnel.Output, carries); err != nil {
			return err
		}
	}
}

// host is the host of an endpoint.
func host(name string, instance ids.ID) string { return name + "--" + instance.Suffix() + ".apps.test" }

// open opens an endpoint with a credential, and answers the address, or the code of the refusal.
func (r *reachable) open(credential string, instance ids.ID, endpoint string) (address, code string) {
	r.t.Helper()
	body, err := json.Marshal(
		map[string]any{"query": `mutation($i: OpenEndpointInput!) { openEndpoint(input: $i) { url expiresAt } }`,
			"variables": map[string]any{"i": map[string]any{"instanceId": instance, "endpoint": endpoint}}})
	require.NoError(r.t, err)
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.far.url+"/graphql",
		bytes.NewReader(body))
	require.NoError(r.t, err)
	request.Header.Set("Authorization", "Bearer "+credential)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(r.t, err)
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Data   struct{ OpenEndpoint struct{ URL string } }
		Errors []struct{ Extensions struct{ Code string } }
	}
	require.NoError(r.t, json.NewDecoder(response.Body).Decode(&answer))
	if len(answer.Errors) > 0 {
		return "", answer.Errors[0].Extensions.Code
	}
	return answer.Data.OpenEndpoint.URL, ""
}

// health asks whether endpoints answer, by name.
func (r *reachable) health(credential string) map[string]string {
	r.t.Helper()
	var answer struct {
		Data struct {
			Instance struct {
				Endpoints []struct {
					Name   string
					Health struct{ Status, Message string }
				}
				Members struct {
					Edges []struct {
						Node struct {
							Endpoints []struct {
								Name    string
								Serving int
								Health  struct{ Status string }
							}
						}
					}
				}
			}
		}
		Errors []json.RawMessage
	}
	body := fmt.Sprintf(`{"query":"{ instance(id: \"%s\") { endpoints { name health { status message } } members { edges { node { endpoints {
		name serving health { status } } } } } } }"}`, r.instance.ID)
	body = strings.Join(strings.Fields(body), " ")
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.far.url+"/graphql",
		strings.NewReader(body))
	require.NoError(r.t, err)
	request.Header.Set("Authorization", "Bearer "+credential)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(r.t, err)
	defer func() { _ = response.Body.Close() }()
	require.NoError(r.t, json.NewDecoder(response.Body).Decode(&answer))
	require.Empty(r.t, answer.Errors)
	out := make(map[string]string)
	for _, one := range answer.Data.Instance.Endpoints {
		out[one.Name] = one.Health.Status + ": " + one.Health.Message
	}
	for _, member := range answer.Data.Instance.Members.Edges {
		for _, one := range member.Node.Endpoints {
			out[one.Name+" of the member"] = fmt.Sprintf("%d %s", one.Serving, one.Health.Status)
		}
	}
	return out
}

// ask asks an endpoint's host at far, as a program or a browser would; pairs are headers.
func (r *reachable) ask(ctx context.Context, method, address string, pairs ...string) *http.Response {
	r.t.Helper()
	to, err := url.Parse(address)
	require.NoError(r.t, err)
	request, err := http.NewRequestWithContext(ctx, method, r.far.url+to.RequestURI(), nil)
	require.NoError(r.t, err)
	request.Host = to.Host
	for i := 0; i < len(pairs); i += 2 {
		request.Header.Set(pairs[i], pairs[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// bodyOf is an answer's body.
func bodyOf(t *testing.T, response *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

// browse opens an endpoint in a browser, and answers its cookie.
func (r *reachable) browse(credential string, instance ids.ID) string {
	r.t.Helper()
	address, code := r.open(credential, instance, "web")
	require.Empty(r.t, code)
	response := r.ask(r.t.Context(), http.MethodGet, address)
	require.Equal(r.t, http.StatusSeeOther, response.StatusCode, "%s", address)
	require.Equal(r.t, "/", response.Header.Get("Location"))
	require.Len(r.t, response.Cookies(), 1)
	cookie := response.Cookies()[0]
	require.True(r.t, cookie.HttpOnly)
	require.Empty(r.t, cookie.Domain)
	require.Equal(r.t, http.SameSiteLaxMode, cookie.SameSite)
	return cookie.Name + "=" + cookie.Value
}
