package platform

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

	"github.com/gorilla/websocket"
)

const (
	// ackTimeout bounds the opening of a stream up to the platform's acknowledgement.
	ackTimeout = 15 * time.Second
	// pingEvery is how often the agent asks whether the platform is there.
	pingEvery = 15 * time.Second
	// silence is after how long without any message a stream counts as dead.
	silence = 40 * time.Second
	// maxMessage bounds one message of the stream, in bytes.
	maxMessage = 4 << 20
	// writeTimeout bounds sending a message.
	writeTimeout = 10 * time.Second
	// subprotocol is the one WebSocket protocol that is spoken.
	subprotocol = "graphql-transport-ws"
)

// closeUnauthorized and closeForbidden are the protocol's codes for a refused credential.
const (
	closeUnauthorized = 4401
	closeForbidden    = 4403
)

type message struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// stream is one connection; its writes are serialised, its reads belong to one goroutine.
type stream struct {
	conn *websocket.Conn
	mu   sync.Mutex
}

// Tasks subscribes to the node's tasks and hands each to take, until ctx ends or the stream breaks. It
// calls ready once the platform accepted the connection. It always returns an error that says why it
// ended.
func (c *Client) Tasks(ctx context.Context, who Credentials, ready func(), take func(Task)) error {
	token := who.Token()
	err := c.tasks(ctx, token, func() {
		who.Accepted(token)
		ready()
	}, take)
	if HasCode(err, CodeUnauthenticated) {
		who.Refused(token)
	}
	return fmt.Errorf("task stream: %w", err)
}

func (c *Client) tasks(ctx context.Context, token string, ready func(), take func(Task)) error {
	conn, err := c.dial(ctx, token)
	if err != nil {
		return err
	}
	s := &stream{conn: conn}
	ctx, cancel := context.WithCancel(ctx)
	pinged := make(chan struct{})
	go func() {
		defer close(pinged)
		s.ping(ctx)
		_ = conn.Close() // unblocks the reader
	}()
	defer func() { cancel(); <-pinged }()
	if err := s.begin(); err != nil {
		return err
	}
	ready()
	return s.read(take)
}

func (c *Client) dial(ctx context.Context, token string) (*websocket.Conn, error) {
	dialer := websocket.Dialer{HandshakeTimeout: ackTimeout, Subprotocols: []string{subprotocol}, Proxy: http.ProxyFromEnvironment}
	if transport, ok := c.http.Transport.(*http.Transport); ok && transport != nil {
		dialer.TLSClientConfig, dialer.NetDialContext = transport.TLSClientConfig, transport.DialContext
	}
	conn, response, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(c.endpoint, "http"), header(token))
	if err != nil {
		return nil, handshakeError(response, err)
	}
	conn.SetReadLimit(maxMessage)
	if conn.Subprotocol() != subprotocol {
		_ = conn.Close()
		return nil, errors.New("the platform does not speak " + subprotocol)
	}
	return conn, nil
}

func handshakeError(response *http.Response, err error) error {
	if response == nil {
		return err
	}
	defer response.Body.Close()
	raw, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if typed := interpret(response.StatusCode, raw, nil); typed != nil {
		return typed
	}
	return err
}

// begin waits for the acknowledgement and subscribes.
func (s *stream) begin() error {
	if err := s.send(message{Type: "connection_init"}); err != nil {
		return err
	}
	got, err := s.receive(ackTimeout)
	if err != nil {
		return err
	}
	if got.Type != "connection_ack" {
		return fmt.Errorf("expected connection_ack, got %q", got.Type)
	}
	payload, err := json.Marshal(request{Query: tasksDoc, OperationName: "NodeTasks"})
	if err != nil {
		return fmt.Errorf("encode subscription: %w", err)
	}
	return s.send(message{ID: "tasks", Type: "subscribe", Payload: payload})
}

func (s *stream) read(take func(Task)) error {
	for {
		got, err := s.receive(silence)
		if err != nil {
			return err
		}
		switch got.Type {
		case "next":
			err = deliver(got.Payload, take)
		case "error":
			err = streamError(got.Payload)
		case "complete":
			err = errors.New("the platform ended the subscription")
		}
		if err != nil {
			return err
		}
	}
}

// receive gives the next message that is no ping or pong.
func (s *stream) receive(within time.Duration) (message, error) {
	for {
		_ = s.conn.SetReadDeadline(time.Now().Add(within))
		var got message
		if err := s.conn.ReadJSON(&got); err != nil {
			return got, closing(err)
		}
		switch got.Type {
		case "pong":
		case "ping":
			if err := s.send(message{Type: "pong"}); err != nil {
				return got, err
			}
		default:
			return got, nil
		}
	}
}

func (s *stream) send(m message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err := s.conn.WriteJSON(m); err != nil {
		return fmt.Errorf("send %s: %w", m.Type, err)
	}
	return nil
}

// ping asks for a sign of life until ctx ends or nothing can be sent.
func (s *stream) ping(ctx context.Context) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if s.send(message{Type: "ping"}) != nil {
				return
			}
		}
	}
}

func deliver(payload json.RawMessage, take func(Task)) error {
	var content answer
	if err := json.Unmarshal(payload, &content); err != nil {
		return fmt.Errorf("decode task: %w", err)
	}
	if len(content.Errors) > 0 {
		return content.Errors[0].typed(http.StatusOK)
	}
	var data struct{ NodeTasks Task }
	if err := json.Unmarshal(content.Data, &data); err != nil {
		return fmt.Errorf("decode task: %w", err)
	}
	take(data.NodeTasks)
	return nil
}

func streamError(payload json.RawMessage) error {
	var failures []answerError
	if err := json.Unmarshal(payload, &failures); err != nil || len(failures) == 0 {
		return errors.New("the platform refused the subscription without a reason")
	}
	return failures[0].typed(http.StatusOK)
}

// closing turns the close codes for a refused credential into the code that every call has for it.
func closing(err error) error {
	var closed *websocket.CloseError
	if errors.As(err, &closed) && (closed.Code == closeUnauthorized || closed.Code == closeForbidden) {
		return &Error{Code: CodeUnauthenticated, Message: closed.Text}
	}
	return err
}
