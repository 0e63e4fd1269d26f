package clienttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/ast"
)

const (
	initTimeout  = 5 * time.Second
	writeTimeout = 5 * time.Second
)

// message is one message of graphql-transport-ws.
type message struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// peer is one connected client.
type peer struct {
	server  *Server
	request *http.Request
	conn    *websocket.Conn
	writing sync.Mutex
	mu      sync.Mutex
	running map[string]context.CancelFunc
	streams sync.WaitGroup
}

// serveSocket upgrades a request and serves the socket until it ends.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	// Without a header the credential may come in connection_init.
	if given := r.Header.Get("Authorization"); given != "" && !s.authenticated(given) {
		s.refuse(w, r, http.StatusUnauthorized, &Fault{Code: "UNAUTHENTICATED", Message: "the credential is unknown"})
		return
	}
	upgrader := websocket.Upgrader{Subprotocols: []string{"graphql-transport-ws"}}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	s.sockets.Add(1)
	defer s.sockets.Done()
	ctx, cancel := context.WithCancel(s.ctx)
	p := &peer{server: s, request: r.WithContext(ctx), conn: conn, running: map[string]context.CancelFunc{}}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	p.serve()
	cancel()
	_ = conn.Close()
	p.streams.Wait()
}

// serve reads messages until the connection ends.
func (p *peer) serve() {
	if !p.initialised() {
		return
	}
	for {
		m, err := p.read()
		if err != nil {
			return
		}
		if !p.take(m) {
			return
		}
	}
}

func (p *peer) read() (message, error) {
	var m message
	_, data, err := p.conn.ReadMessage()
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		p.close(4400, "invalid message")
		return m, err
	}
	return m, nil
}

// initialised reads connection_init and acknowledges it; it returns false when the socket is closed
// instead.
func (p *peer) initialised() bool {
	_ = p.conn.SetReadDeadline(time.Now().Add(initTimeout))
	m, err := p.read()
	if err != nil {
		p.close(4408, "connection initialisation timeout")
		return false
	}
	shown := p.authorization(m)
	if m.Type != "connection_init" || shown == "" && !p.server.authenticated(shown) {
		p.close(4401, "unauthorized")
		return false
	}
	if !p.server.authenticated(shown) {
		p.close(4403, "UNAUTHENTICATED: unauthorized")
		return false
	}
	_ = p.conn.SetReadDeadline(time.Time{})
	return p.send(message{Type: "connection_ack"}) == nil
}

// authorization returns the credential of the upgrade, or of connection_init.
func (p *peer) authorization(initialisation message) string {
	var payload struct {
		Authorization string `json:"authorization"`
	}
	if given := p.request.Header.Get("Authorization"); given != "" ||
		json.Unmarshal(initialisation.Payload, &payload) != nil {
		return given
	}
	return payload.Authorization
}

// take handles one message. It reports whether the socket goes on.
func (p *peer) take(m message) bool {
	switch m.Type {
	case "ping":
		return p.send(message{Type: "pong"}) == nil
	case "pong":
		return true
	case "subscribe":
		return p.subscribe(m)
	case "complete":
		p.mu.Lock()
		if cancel := p.running[m.ID]; cancel != nil {
			cancel()
		}
		p.mu.Unlock()
		return true
	case "connection_init":
		p.close(4429, "too many initialisation requests")
	default:
		p.close(4400, "invalid message")
	}
	return false
}

// subscribe begins a subscription, or answers why it does not.
func (p *peer) subscribe(m message) bool {
	var req request
	if err := decode(bytes.NewReader(m.Payload), &req); err != nil || m.ID == "" {
		p.close(4400, "invalid message")
		return false
	}
	ready, err := p.server.prepare(req)
	if err == nil && ready.operation.Operation != ast.Subscription {
		err = &Fault{Code: "DOCUMENT_INVALID", Message: "the stand-in takes only subscriptions here"}
	}
	if err != nil {
		return p.sendError(m.ID, err) == nil
	}
	ctx, cancel := context.WithCancel(p.request.Context())
	p.mu.Lock()
	_, taken := p.running[m.ID]
	p.running[m.ID] = cancel
	p.mu.Unlock()
	if taken {
		cancel()
		p.close(4409, "subscriber for "+m.ID+" already exists")
		return false
	}
	p.streams.Go(func() { p.stream(ctx, m.ID, ready) })
	return true
}

// stream runs the test's Stream and ends the subscription by its result.
func (p *peer) stream(ctx context.Context, id string, ready *prepared) {
	err := p.emitAll(ctx, id, ready)
	p.mu.Lock()
	delete(p.running, id)
	p.mu.Unlock()
	var closing *Close
	switch {
	case ctx.Err() != nil:
	case errors.As(err, &closing):
		p.close(closing.Code, closing.Reason)
	case errors.Is(err, ErrDrop):
		_ = p.conn.NetConn().Close()
	case err != nil:
		_ = p.sendError(id, err)
	default:
		_ = p.send(message{ID: id, Type: "complete"})
	}
}

// emitAll sends the values of a Stream, shaped by the selection, and returns how the Stream ended.
func (p *peer) emitAll(ctx context.Context, id string, ready *prepared) error {
	field := p.server.collect(ready.operation.SelectionSet, p.server.schema.Subscription)[0]
	call := Call{Context: ctx, Field: field.Name, Args: field.ArgumentMap(ready.variables), Header: p.request.Header}
	p.server.record(call)
	p.server.mu.Lock()
	stream := p.server.streams[field.Name]
	p.server.mu.Unlock()
	if stream == nil {
		return &Fault{Code: "INTERNAL", Message: "the test gave no stream for " + field.Name}
	}
	return stream(call, func(value any) error {
		shaped, err := p.server.shape(field, value)
		if err != nil {
			return err
		}
		payload, err := json.Marshal(Object{"data": Object{field.Alias: shaped}})
		if err != nil {
			return err
		}
		return p.send(message{ID: id, Type: "next", Payload: payload})
	})
}

func (p *peer) sendError(id string, err error) error {
	payload, marshalErr := json.Marshal([]Object{envelope(err, nil, p.request.Header.Get("X-Correlation-Id"))})
	if marshalErr != nil {
		return marshalErr
	}
	return p.send(message{ID: id, Type: "error", Payload: payload})
}

func (p *peer) send(m message) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	if err := p.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return p.conn.WriteJSON(m)
}

func (p *peer) close(code int, reason string) {
	_ = p.conn.WriteControl(
		websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(time.Second),
	)
	_ = p.conn.Close()
}
