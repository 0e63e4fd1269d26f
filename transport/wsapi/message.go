package wsapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gpuaas/app-platform/transport"
)

// maxID bounds an operation's id, in bytes.
const maxID = 256

// received is a message of the client.
type received struct {
	id      *string
	kind    string
	payload json.RawMessage
}

// decode reads a message; ok is false when it is not one of the protocol.
func decode(text []byte) (m received, ok bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil || fields == nil {
		return m, false
	}
	if json.Unmarshal(fields["type"], &m.kind) != nil {
		return m, false
	}
	if raw, given := fields["id"]; given && json.Unmarshal(raw, &m.id) != nil {
		return m, false
	}
	m.payload = fields["payload"]
	if bytes.Equal(m.payload, []byte("null")) {
		m.payload = nil
	}
	return m, true
}

// object reports whether a payload is absent or an object, as all of the protocol's are.
func (m *received) object() bool {
	return m.payload == nil || m.payload[0] == '{'
}

// named reports whether the message carries a usable operation id.
func (m *received) named() bool {
	return m.id != nil && *m.id != "" && len(*m.id) <= maxID
}

// receive handles one text message. It runs on the reader and never waits.
func (s *socket) receive(text []byte) {
	m, ok := decode(text)
	if !ok || !m.object() {
		s.close(CloseReason{CloseBadRequest, "Invalid message received"})
		return
	}
	switch m.kind {
	case "connection_init":
		s.begin(m.payload)
	case "ping":
		s.send(pong(m.payload))
	case "pong":
	case "subscribe":
		s.subscribe(&m)
	case "complete":
		s.completed(&m)
	default:
		s.close(CloseReason{CloseBadRequest, "Invalid message type"})
	}
}

func pong(payload json.RawMessage) message {
	if payload == nil {
		return textFrame([]byte(`{"type":"pong"}`))
	}
	text := append([]byte(`{"type":"pong","payload":`), payload...)
	return textFrame(append(text, '}'))
}

// begin takes connection_init: the credential is checked on a goroutine of its own.
func (s *socket) begin(payload json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == closingPhase {
		return
	}
	if s.phase != upgraded {
		s.closeLocked(CloseReason{CloseTooManyInits, "Too many initialisation requests"})
		return
	}
	s.phase = acking
	go s.authenticate(s.init, payload)
}

// subscribe starts an operation.
func (s *socket) subscribe(m *received) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.phase == closingPhase:
		return
	case s.phase != ready:
		s.closeLocked(CloseReason{CloseUnauthorized, "Unauthorized"})
		return
	case !m.named():
		s.closeLocked(CloseReason{CloseBadRequest, "Invalid message: id is missing, empty or too long"})
		return
	}
	params, refused := requested(m.payload)
	if refused != nil {
		s.closeLocked(CloseReason{CloseBadRequest, "Invalid message: " + refused.Message})
		return
	}
	s.start(*m.id, params)
}

// requested reads the operation from the payload of a subscribe message.
func requested(payload json.RawMessage) (*graphql.RawParams, *transport.Error) {
	params, err := transport.Params(payload)
	if refused := new(transport.Error); errors.As(err, &refused) {
		return nil, refused
	}
	if err != nil {
		return nil, transport.Refuse(transport.CodeInvalidArgument, "payload is missing")
	}
	return params, nil
}

// start runs an operation unless its id is taken or the socket runs too many. s.mu is held.
func (s *socket) start(id string, params *graphql.RawParams) {
	for _, op := range s.ops {
		if op.id == id {
			s.closeLocked(CloseReason{CloseDuplicateID, "Subscriber for " + id + " already exists"})
			return
		}
	}
	op := newOperation(s, id)
	if len(s.ops) >= s.server.options.Operations {
		go op.Fail(transport.Refuse(transport.CodeLimitExceeded, "too many operations run on this socket"))
		return
	}
	s.ops = append(s.ops, op)
	go op.run(params)
}

// completed ends an operation at the client's wish; an unknown id may have ended just now.
func (s *socket) completed(m *received) {
	if !m.named() {
		s.close(CloseReason{CloseBadRequest, "Invalid message: id is missing, empty or too long"})
		return
	}
	if op := s.operation(*m.id); op != nil {
		op.finish(nil, true)
	}
}

func (s *socket) operation(id string) *operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, op := range s.ops {
		if op.id == id {
			return op
		}
	}
	return nil
}

// authenticate checks the credential and acknowledges the connection, or closes it.
func (s *socket) authenticate(init *pendingInit, payload json.RawMessage) {
	defer func() {
		if cause := recover(); cause != nil {
			s.server.options.Engine.Recovered(s.ctx, cause)
			s.close(CloseReason{CloseInternal, "internal error"})
		}
	}()
	ctx, refused := s.server.authenticate(s.ctx, init.request, payload)
	if refused != nil {
		s.close(*refused)
		return
	}
	subject, refused := s.server.admit(ctx)
	if refused != nil {
		s.close(*refused)
		return
	}
	s.acknowledge(ctx, subject)
}

// late closes a socket that is not acknowledged in time, for the client's fault or ours.
func (s *socket) late() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.phase {
	case upgraded:
		s.closeLocked(CloseReason{CloseInitTimeout, "Connection initialisation timeout"})
	case acking:
		s.closeLocked(CloseReason{CloseTryAgain, "the credential could not be checked in time"})
	}
}

// acknowledge makes the socket ready and hands it to the caller's watch.
func (s *socket) acknowledge(ctx context.Context, subject string) {
	s.mu.Lock()
	if s.readerGone {
		s.mu.Unlock()
		s.server.release(subject)
		return
	}
	s.ctx, s.subject = ctx, subject
	s.init.timer.Stop()
	s.init = nil
	if s.phase == acking {
		s.phase = ready
		s.put(textFrame([]byte(`{"type":"connection_ack"}`)))
	}
	s.mu.Unlock()
	s.server.settled()
	if s.server.options.Watch != nil {
		s.watched(s.server.options.Watch(ctx, s.close))
	}
}

// watched keeps stop for the end of the socket, or calls it when the socket has already ended.
func (s *socket) watched(stop func()) {
	if stop == nil {
		return
	}
	s.mu.Lock()
	gone := s.readerGone
	if !gone {
		s.unwatch = stop
	}
	s.mu.Unlock()
	if gone {
		stop()
	}
}
