package wsapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/transport"
	"github.com/gpuaas/app-platform/transport/internal/testschema"
	"github.com/gpuaas/app-platform/transport/wsapi"
)

// patience is how long a test waits for a state.
const patience = 30 * time.Second

// bench is one running server.
type bench struct {
	server *wsapi.Server
	schema *testschema.Schema
	http   *httptest.Server
	stop   func()
	ran    chan error
}

// setup runs a server; change edits its options.
func setup(t testing.TB, change func(*wsapi.Options)) *bench {
	t.Helper()
	b := &bench{schema: testschema.New(), ran: make(chan error, 1)}
	engine, err := transport.NewEngine(transport.Config{
		Schema: b.schema.Executable(), Present: testschema.Present, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	require.NoError(t, err)
	options := wsapi.Options{Engine: engine, Authenticate: authenticate}
	if change != nil {
		change(&options)
	}
	b.server, err = wsapi.New(options)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	b.stop = cancel
	go func() { b.ran <- b.server.Run(ctx) }()
	b.http = httptest.NewServer(b.server)
	t.Cleanup(func() {
		cancel()
		b.http.Close()
	})
	return b
}

// authenticate knows three tokens.
func authenticate(ctx context.Context, c transport.Credential, _ *http.Request) (context.Context, error) {
	switch c.Raw {
	case "forbidden":
		return nil, transport.Refuse(transport.CodeForbidden, "not here")
	case "unavailable":
		return nil, transport.Refuse(transport.CodeUnavailable, "no database")
	case "panic":
		panic("secret")
	case "bad":
		return nil, errors.New("no such token")
	}
	return testschema.WithCaller(ctx, string(c.Source)+":"+c.Raw), nil
}

// client is a raw speaker of the protocol.
type client struct {
	*websocket.Conn
	t testing.TB
}

func (b *bench) url() string { return "ws" + strings.TrimPrefix(b.http.URL, "http") }

// dial connects without a connection_init.
func (b *bench) dial(t testing.TB, header http.Header) *client {
	t.Helper()
	var conn *websocket.Conn
	require.Eventually(t, func() bool {
		dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}}
		var response *http.Response
		var err error
		conn, response, err = dialer.Dial(b.url(), header)
		if response != nil && response.StatusCode == http.StatusServiceUnavailable {
			return false // Run has not begun
		}
		require.NoError(t, err)
		return true
	}, patience, time.Millisecond)
	t.Cleanup(func() { conn.Close() })
	return &client{conn, t}
}

// connect dials and gets through connection_init.
func (b *bench) connect(t testing.TB) *client {
	t.Helper()
	c := b.dial(t, nil)
	c.send(`{"type":"connection_init"}`)
	require.JSONEq(t, `{"type":"connection_ack"}`, c.receive())
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	require.NoError(c.t, c.WriteMessage(websocket.TextMessage, []byte(text)))
}

// receive returns the next message, keepalive pings left out.
func (c *client) receive() string {
	c.t.Helper()
	for {
		require.NoError(c.t, c.SetReadDeadline(time.Now().Add(patience)))
		_, text, err := c.ReadMessage()
		require.NoError(c.t, err)
		if string(text) != `{"type":"ping"}` {
			return string(text)
		}
	}
}

// message is the next message, decoded.
func (c *client) message() (m struct {
	ID, Type string
	Payload  json.RawMessage
}) {
	c.t.Helper()
	require.NoError(c.t, json.Unmarshal([]byte(c.receive()), &m))
	return m
}

// closed reads on until the socket closes, and returns how.
func (c *client) closed() *websocket.CloseError {
	c.t.Helper()
	for {
		require.NoError(c.t, c.SetReadDeadline(time.Now().Add(patience)))
		_, _, err := c.ReadMessage()
		if err == nil {
			continue
		}
		var closed *websocket.CloseError
		require.ErrorAs(c.t, err, &closed)
		return closed
	}
}
