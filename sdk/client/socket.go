package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/gorilla/websocket"
)

// Bounds of a socket.
const (
	subprotocol      = "graphql-transport-ws"
	maxSocketMessage = 4 << 20
	handshakeTimeout = 15 * time.Second
	writeTimeout     = 10 * time.Second
	pingEvery        = 15 * time.Second
	silenceLimit     = 3 * pingEvery
)

// message is one of graphql-transport-ws.
type message struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// socket is one connection that carries one subscription.
type socket struct {
	conn    *websocket.Conn
	writing sync.Mutex
	done    chan struct{}
	closing sync.Once
	owned   sync.WaitGroup
}

// connect upgrades, initialises and waits for the acknowledgement.
func (c *Client) connect(ctx context.Context, correlationID string) (*socket, error) {
	header, err := c.headers(ctx, correlationID)
	if err != nil {
		return nil, err
	}
	attempt, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	address := "ws" + strings.TrimPrefix(c.endpoint(c.options.GraphQLPath), "http")
	conn, resp, err := c.dialer().DialContext(attempt, address, header)
	if err != nil {
		return nil, upgradeError(ctx, resp, err)
	}
	conn.SetReadLimit(maxSocketMessage)
	stop := context.AfterFunc(attempt, func() { _ = conn.Close() }) // a handshake ends with its context
	defer stop()
	s := &socket{conn: conn, done: make(chan struct{})}
	if err := s.handshake(); err != nil {
		s.close()
		return nil, err
	}
	s.owned.Go(s.pingUntilDone)
	return s, nil
}

// dialer takes TLS, proxy and dial settings from the HTTP client, so that one set of options serves both.
func (c *Client) dialer() *websocket.Dialer {
	dialer := &websocket.Dialer{
		Proxy: http.ProxyFromEnvironment, Subprotocols: []string{subprotocol}, HandshakeTimeout: handshakeTimeout,
	}
	if transport, ok := c.http.Transport.(*http.Transport); ok {
		dialer.Proxy, dialer.NetDialContext = transport.Proxy, transport.DialContext
		if transport.TLSClientConfig != nil {
			dialer.TLSClientConfig = transport.TLSClientConfig.Clone()
			dialer.TLSClientConfig.NextProtos = nil
		}
	}
	return dialer
}

// upgradeError reads the refusal of an upgrade out of its HTTP answer.
func upgradeError(ctx context.Context, resp *http.Response, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if resp == nil {
		return unreachable(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusalBody))
	if resp.StatusCode < http.StatusBadRequest {
		return &Error{
			Code: CodeInternal,
			Message: fmt.Sprintf("the server answered %d instead of opening a socket: is the address right?",
				resp.StatusCode),
			HTTPStatus: resp.StatusCode, Err: err,
		}
	}
	return fromBody(resp.StatusCode, resp.Header, body)
}

// handshake sends connection_init and waits for connection_ack; the credential went with the upgrade.
func (s *socket) handshake() error {
	if s.conn.Subprotocol() != subprotocol {
		return &Error{Code: CodeInternal, Message: "the server does not speak " + subprotocol +
			": is the address right?"}
	}
	if err := s.send(message{Type: "connection_init"}); err != nil {
		return unreachable(err)
	}
	for {
		got, err := s.receive(handshakeTimeout)
		if err != nil {
			return err
		}
		switch got.Type {
		case "connection_ack":
			return nil
		case "ping":
			if err := s.send(message{Type: "pong"}); err != nil {
				return unreachable(err)
			}
		}
	}
}

// run carries one subscription to its end: nil when the server completed it, the handler's error, or why it broke.
func (s *socket) run(req *graphql.Request, handle func(json.RawMessage) error) error {
	payload, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("encode %s: %w", req.OpName, err)
	}
	if err := s.send(message{ID: "1", Type: "subscribe", Payload: payload}); err != nil {
		return unreachable(err)
	}
	for {
		got, err := s.receive(silenceLimit)
		if err != nil {
			return err
		}
		if ended, err := s.dispatch(got, handle); ended || err != nil {
			return err
		}
	}
}

// dispatch handles one message; it reports whether the subscription has ended.
func (s *socket) dispatch(got message, handle func(json.RawMessage) error) (bool, error) {
	switch got.Type {
	case "next":
		return false, handleNext(got.Payload, handle)
	case "complete":
		return true, nil
	case "error":
		var list []wireError
		if err := json.Unmarshal(got.Payload, &list); err != nil || len(list) == 0 {
			return true, &Error{Code: CodeInternal,
				Message: "the server ended the feed with an error that cannot be read"}
		}
		return true, fromWire(list)
	case "ping":
		if err := s.send(message{Type: "pong"}); err != nil {
			return false, unreachable(err)
		}
	}
	return false, nil
}

func handleNext(payload json.RawMessage, handle func(json.RawMessage) error) error {
	var result struct {
		Data   json.RawMessage `json:"data"`
		Errors []wireError     `json:"errors"`
	}
	if err := json.Unmarshal(payload, &result); err != nil {
		return &Error{Code: CodeInternal, Message: "the server sent a message that cannot be read", Err: err}
	}
	if len(result.Errors) > 0 {
		return fromWire(result.Errors)
	}
	return handle(result.Data)
}

func (s *socket) send(m message) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return s.conn.WriteJSON(m)
}

// receive waits for one message, at most for the limit; pings go out all the while, so silence means a dead peer.
func (s *socket) receive(limit time.Duration) (message, error) {
	var got message
	if err := s.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return got, unreachable(err)
	}
	_, data, err := s.conn.ReadMessage()
	if err != nil {
		return got, closeError(err)
	}
	if err := json.Unmarshal(data, &got); err != nil {
		return got, &Error{Code: CodeInternal, Message: "the server sent a message that cannot be read", Err: err}
	}
	return got, nil
}

// pingUntilDone keeps the connection known to be alive; a failed ping shows up as the reader's error.
func (s *socket) pingUntilDone() {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-ticker.C:
			if s.send(message{Type: "ping"}) != nil {
				return
			}
		}
	}
}

// finish completes the subscription for a server that is still there, and closes.
func (s *socket) finish() {
	_ = s.send(message{ID: "1", Type: "complete"})
	normal := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = s.conn.WriteControl(websocket.CloseMessage, normal, time.Now().Add(time.Second))
	s.close()
}

// close ends the connection and waits for what it owns; it is safe to call twice.
func (s *socket) close() {
	s.closing.Do(func() {
		close(s.done)
		_ = s.conn.Close()
	})
	s.owned.Wait()
}

// closeCodes are the codes of graphql-transport-ws and RFC 6455 after which connecting again cannot help.
var closeCodes = map[int]string{
	websocket.CloseProtocolError: CodeRequestInvalid, websocket.CloseUnsupportedData: CodeRequestInvalid,
	websocket.CloseInvalidFramePayloadData: CodeRequestInvalid, websocket.CloseMessageTooBig: CodeMessageTooLarge,
	4400: CodeRequestInvalid, 4401: CodeUnauthenticated, 4403: CodeForbidden,
	4406: CodeNotAcceptable, 4409: CodeConflict, 4429: CodeRequestInvalid,
}

// closeError turns the end of a connection into an Error; one that names a terminal close code is not retryable.
func closeError(err error) error {
	var closed *websocket.CloseError
	if !errors.As(err, &closed) {
		return unreachable(err)
	}
	found := &Error{Code: CodeUnavailable, Message: "the server closed the feed", Retryable: true,
		CloseCode: closed.Code, Err: err}
	if code, terminal := closeCodes[closed.Code]; terminal {
		found.Code, found.Retryable = code, false
	}
	readReason(found, closed.Text)
	return found
}

// readReason takes a catalogued code off the front of a close reason ("TOKEN_EXPIRED: …" or the code alone).
func readReason(found *Error, reason string) {
	if reason == "" {
		return
	}
	found.Message = reason
	code, rest, _ := strings.Cut(reason, ":")
	if strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" || code == "" {
		return
	}
	found.Code = code
	if rest = strings.TrimSpace(rest); rest != "" {
		found.Message = rest
	}
}
