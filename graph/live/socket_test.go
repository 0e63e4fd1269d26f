package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/graph/live"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/httpapi"
	"github.com/gpuaas/app-platform/transport/wsapi"
)

// process is one life of the platform: its own server of subscriptions and its own sockets.
type process struct {
	url  string
	kill func()
}

// start begins a life over the bench's database.
func (b *bench) start() *process {
	b.t.Helper()
	streams := &live.Server{Engine: b.engine, Hub: b.Hub, Log: quiet(), Sentinel: b.watch, Sources: b.server.Sources}
	authenticate := func(ctx context.Context, shown transport.Credential, _ *http.Request) (context.Context, error) {
		credential, err := tx.ParseCredential(shown.Raw, b.Ring, time.Now())
		return tx.WithCredential(authz.WithRequest(ctx, authz.RequestInfo{CorrelationID: "live"}), credential), err
	}
	sockets, err := wsapi.New(wsapi.Options{Engine: b.engine, Authenticate: authenticate, Streams: streams,
		StopTimeout: 100 * time.Millisecond})
	require.NoError(b.t, err)
	handler, err := httpapi.New(httpapi.Options{Engine: b.engine, BodyBytes: 1 << 20, WebSocket: sockets,
		Authenticate: authenticate})
	require.NoError(b.t, err)
	stopStreams, stopSockets := b.run(streams.Run), b.run(sockets.Run)
	server := httptest.NewServer(handler)
	kill := func() { stopSockets(); stopStreams(); server.Close() }
	b.t.Cleanup(kill)
	return &process{url: "ws" + strings.TrimPrefix(server.URL, "http"), kill: kill}
}

// client is a subscriber on a socket that takes up where it was cut off.
type client struct {
	t             *testing.T
	token, cursor string
	conn          *websocket.Conn
	got           []string
}

func (c *client) connect(to *process, b *bench) {
	c.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{wsapi.Protocol}, HandshakeTimeout: patience}
	var conn *websocket.Conn
	b.until(func() bool { // a server that has just been started refuses until its loop runs
		var response *http.Response
		var err error
		conn, response, err = dialer.Dial(to.url, http.Header{"Authorization": {"Bearer " + c.token}})
		if response != nil {
			_ = response.Body.Close()
		}
		return err == nil
	})
	c.t.Cleanup(func() { _ = conn.Close() })
	c.conn = conn
	require.NoError(c.t, conn.WriteJSON(map[string]any{"type": "connection_init"}))
	require.Equal(c.t, "connection_ack", c.read().Type)
	variables := map[string]any{"i": b.made.ID, "a": c.cursor}
	require.NoError(c.t, conn.WriteJSON(map[string]any{"id": "1", "type": "subscribe",
		"payload": map[string]any{"query": timeline, "variables": variables}}))
}

type frame struct {
	Type    string
	Payload json.RawMessage
}

func (c *client) read() frame {
	c.t.Helper()
	require.NoError(c.t, c.conn.SetReadDeadline(time.Now().Add(patience)))
	got := frame{Type: "ping"}
	for got.Type == "ping" { // the server asks at its own times whether we are there
		got = frame{}
		require.NoError(c.t, c.conn.ReadJSON(&got))
	}
	return got
}

// next takes n events.
func (c *client) next(n int) {
	c.t.Helper()
	for range n {
		got := c.read()
		require.Equal(c.t, "next", got.Type, string(got.Payload))
		var content struct {
			Data struct{ InstanceTimeline told }
		}
		require.NoError(c.t, json.Unmarshal(got.Payload, &content))
		c.got, c.cursor = append(c.got, content.Data.InstanceTimeline.Message), content.Data.InstanceTimeline.Cursor
	}
}

func TestATimelineOnASocketOutlivesTheServerWithoutGapOrRepeat(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var want []string
	write := func(n int) {
		for range n {
			want = append(want, fmt.Sprint("event ", len(want)))
			b.append(want[len(want)-1])
		}
	}
	write(20)
	first := b.start()
	c := &client{t: t, token: b.Session(b.viewer)}
	c.connect(first, b)
	c.next(20)
	write(5)
	c.next(3) // two are still on their way when the server goes
	first.kill()
	_, _, err := c.conn.ReadMessage()
	for err == nil {
		_, _, err = c.conn.ReadMessage()
	}
	write(7) // while nobody serves
	second := b.start()
	c.connect(second, b)
	write(5)
	c.next(14)
	require.Equal(t, want, c.got)
}

func TestASocketsSubscriptionEndsWithTheRefusalsCode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	served := b.start()
	stranger := &client{t: t, token: b.Session(b.User(b.Tenant()))}
	stranger.connect(served, b)
	got := stranger.read()
	require.Equal(t, "error", got.Type)
	require.Contains(t, string(got.Payload), `"code":"NOT_FOUND"`)

	c := &client{t: t, token: b.Session(b.viewer)}
	c.connect(served, b)
	b.append("one")
	c.next(1)
	b.SQL(`UPDATE role_binding SET revoked_at = now() WHERE user_id = $1`, b.viewer.ID)
	got = c.read()
	require.Equal(t, "error", got.Type)
	require.Contains(t, string(got.Payload), `"code":"PERMISSION_REVOKED"`)
}
