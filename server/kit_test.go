package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/authz/sshca"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// frugal is the configuration before flags, with few connections: each costs a process of the database's, which takes a
// test longer than its statements.
func frugal() *Config {
	config := Defaults()
	config.Connections = 4
	return config
}

// patience bounds every wait of these tests.
const patience = 60 * time.Second

// bench is the product's own handler over a database of the test's own.
type bench struct {
	*platformtest.Kit
	t   *testing.T
	url string
}

// newBench is a bench with what change makes of the configuration.
func newBench(t *testing.T, change ...func(*Config)) *bench {
	t.Helper()
	return newBenchWith(t, slog.New(slog.DiscardHandler), change...)
}

// newBenchWith is newBench with a log.
func newBenchWith(t *testing.T, log *slog.Logger, change ...func(*Config)) *bench {
	t.Helper()
	kit := platformtest.New(t)
	config := frugal()
	config.DatabaseURL, config.PublicURL = kit.DSN, platformtest.Issuer
	config.AdapterHosts, config.Listen = []string{"127.0.0.0/8"}, []string{"127.0.0.1:0"}
	for _, one := range change {
		one(config)
	}
	require.NoError(t, config.complete())
	vault, err := custody.Open(t.Context(), "", t.TempDir())
	require.NoError(t, err)
	authorities, err := sshca.New()
	require.NoError(t, err)
	p := &platform{config: config, log: log, db: kit.DB, hub: kit.Hub, ring: kit.Ring, ssh: authorities, vault: vault}
	if config.Traces != nil { // statements have spans on connections that were opened for them
		p.denials = audit.NewDenials()
		p.db, err = tx.Open(t.Context(), kit.DSN, p.database())
		require.NoError(t, err)
		p.db.SetHints(kit.Hub)
		t.Cleanup(p.db.Close)
	}
	ctx, cancel := context.WithCancel(context.Background())
	group, ctx := errgroup.WithContext(ctx)
	serves, err := p.handler(ctx, group)
	require.NoError(t, err)
	group.Go(func() error { return p.hub.Run(ctx) })
	server := httptest.NewServer(serves.all)
	t.Cleanup(func() {
		cancel()
		server.CloseClientConnections()
		server.Close()
		_ = group.Wait()
	})
	return &bench{Kit: kit, t: t, url: server.URL}
}

// answer is what a caller gets back, over either transport.
type answer struct {
	// Status is the HTTP status; 0 over a socket.
	Status int
	// Closed is the socket's close code; 0 when it was not closed.
	Closed int
	// Raw is everything that was received, and Data the data of the first answer that had any.
	Raw, Data string
	Errors    []refusal
}

// refusal is one error of an answer.
type refusal struct {
	Message    string
	Path       []any
	Extensions struct {
		Code          string
		CorrelationID string `json:"correlation_id"`
		Reasons       []struct{ Code, Message, Path string }
	}
}

// code returns the code of the first error; "" without one.
func (a answer) code() string {
	if len(a.Errors) == 0 {
		return ""
	}
	return a.Errors[0].Extensions.Code
}

// paths are the paths of every reason of every error.
func (a answer) paths() []string {
	var paths []string
	for _, refused := range a.Errors {
		for _, reason := range refused.Extensions.Reasons {
			paths = append(paths, reason.Path)
		}
	}
	return paths
}

// payload is the body of a GraphQL answer.
type payload struct {
	Data   json.RawMessage
	Errors []refusal
}

func (a *answer) take(raw []byte) {
	a.Raw += string(raw)
	var body payload
	if json.Unmarshal(raw, &body) != nil {
		return
	}
	if data := string(body.Data); data != "" && data != "null" && a.Data == "" {
		a.Data = data
	}
	a.Errors = append(a.Errors, body.Errors...)
}

// post sends a document over HTTP; no Authorization header goes out for an empty token.
func (b *bench) post(token, document string, variables any) answer {
	b.t.Helper()
	return b.over(http.DefaultClient, token, document, variables)
}

// over is post by a client of the test's own.
func (b *bench) over(client *http.Client, token, document string, variables any) answer {
	b.t.Helper()
	body, err := json.Marshal(map[string]any{"query": document, "variables": variables})
	require.NoError(b.t, err)
	return b.sendBy(client, token, body)
}

func (b *bench) send(token string, body []byte) answer {
	b.t.Helper()
	return b.sendBy(http.DefaultClient, token, body)
}

func (b *bench) sendBy(client *http.Client, token string, body []byte) answer {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/graphql", bytes.NewReader(body))
	require.NoError(b.t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	require.NoError(b.t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	got := answer{Status: response.StatusCode}
	got.take(raw)
	return got
}

// frame is a message of graphql-transport-ws.
type frame struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// watch opens a socket, subscribes, and answers with the first event, the refusal, or the code that
// the socket was closed with.
func (b *bench) watch(token, document string, variables any) answer {
	b.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}, HandshakeTimeout: patience}
	socket, _, err := dialer.Dial("ws"+strings.TrimPrefix(b.url, "http")+"/graphql", nil)
	require.NoError(b.t, err)
	defer func() { _ = socket.Close() }()
	require.NoError(b.t, socket.SetReadDeadline(time.Now().Add(patience)))
	hello := frame{Type: "connection_init"}
	if token != "" {
		hello.Payload, err = json.Marshal(map[string]string{"authorization": "Bearer " + token})
		require.NoError(b.t, err)
	}
	require.NoError(b.t, socket.WriteJSON(hello))
	subscribe, err := json.Marshal(map[string]any{"query": document, "variables": variables})
	require.NoError(b.t, err)
	var got answer
	for {
		var in frame
		if err := socket.ReadJSON(&in); err != nil {
			var closed *websocket.CloseError
			require.ErrorAs(b.t, err, &closed, got.Raw)
			got.Closed = closed.Code
			return got
		}
		switch in.Type {
		case "connection_ack":
			require.NoError(b.t, socket.WriteJSON(frame{ID: "1", Type: "subscribe", Payload: subscribe}))
		case "ping":
			require.NoError(b.t, socket.WriteJSON(frame{Type: "pong"}))
		case "next":
			got.take(in.Payload)
			return got
		case "error":
			got.take([]byte(fmt.Sprintf(`{"errors":%s}`, in.Payload)))
			return got
		case "complete":
			return got
		}
	}
}

// spared are tables that a refused call may write: what it was refused, and that it was tried.
var spared = []string{"audit_entry", "idempotency"}

// fingerprint says how many rows each table has and what is in them, so that a change of a row shows
// as well as a new one. When a credential was first and last used is not looked at.
func (b *bench) fingerprint() map[string]string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rows, err := b.Admin.Query(ctx,
		`SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`)
	require.NoError(b.t, err)
	var tables []string
	for rows.Next() {
		var name string
		require.NoError(b.t, rows.Scan(&name))
		if !slices.Contains(spared, name) {
			tables = append(tables, name)
		}
	}
	require.NoError(b.t, rows.Err())
	require.Greater(b.t, len(tables), 20)
	found := map[string]string{}
	for _, name := range tables {
		var text string
		statement := fmt.Sprintf(`SELECT count(*) || ' ' ||
			coalesce(sum(hashtextextended((to_jsonb(r) - 'last_used_at' -
			'first_used_at')::text, 0)::numeric), 0) FROM %q r`, name)
		require.NoError(b.t, b.Admin.QueryRow(ctx, statement).Scan(&text))
		found[name] = text
	}
	return found
}
