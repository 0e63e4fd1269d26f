package wsapi

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gpuaas/app-platform/transport"
)

// operation is one running query, mutation or subscription of a socket. It is the Sink
// that a stream writes to. ended, dropped and stop are guarded by the socket's mutex.
type operation struct {
	socket *socket
	prefix []byte // {"id":"…","type":"next","payload":

	ended   bool
	dropped bool // the client completed it: what is still queued is not sent
	stop    func()

	inline [96]byte // prefix's bytes, unless the id is a long one
	id     string
	ctx    context.Context
	cancel context.CancelFunc
}

var _ transport.Sink = (*operation)(nil)

func newOperation(s *socket, id string) *operation {
	quoted, _ := json.Marshal(id)
	op := &operation{socket: s, id: id}
	op.prefix = append(append(append(op.inline[:0], `{"id":`...), quoted...), `,"type":"next","payload":`...)
	op.ctx, op.cancel = context.WithCancel(s.server.options.Engine.Begin(
		s.server.correlated(s.ctx, transport.NewCorrelationID())))
	return op
}

// Send implements transport.Sink.
func (op *operation) Send(payload []byte) bool {
	s := op.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	return !op.ended && s.put(message{op: op, payload: payload})
}

// SendAll implements transport.Sink.
func (op *operation) SendAll(payloads [][]byte) bool {
	messages := make([]message, len(payloads))
	for i, payload := range payloads {
		messages[i] = message{op: op, payload: payload}
	}
	s := op.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	return !op.ended && s.put(messages...)
}

// Complete implements transport.Sink.
func (op *operation) Complete() {
	text := op.control("complete", nil)
	op.finish(&text, false)
}

// Fail implements transport.Sink.
func (op *operation) Fail(err error) {
	op.failAll(gqlerror.List{op.socket.server.options.Engine.Present(op.ctx, err)})
}

// Done implements transport.Sink.
func (op *operation) Done() <-chan struct{} { return op.ctx.Done() }

func (op *operation) failAll(list gqlerror.List) {
	op.socket.server.options.Engine.End(op.ctx, list)
	payload, err := json.Marshal(list)
	if err != nil {
		payload = []byte(`[{"message":"internal error","extensions":{"code":"INTERNAL"}}]`)
	}
	text := op.control("error", payload)
	op.finish(&text, false)
}

// control frames a message of this operation other than next.
func (op *operation) control(kind string, payload []byte) message {
	quoted, _ := json.Marshal(op.id)
	text := append(append(append([]byte(`{"id":`), quoted...), `,"type":"`...), kind...)
	text = append(text, '"')
	if payload != nil {
		text = append(append(text, `,"payload":`...), payload...)
	}
	return textFrame(append(text, '}'))
}

// finish ends the operation once: with a last message, or without one when the client has
// completed it or disconnected. The stream's stop never runs inside a call of the sink.
func (op *operation) finish(last *message, byClient bool) {
	s := op.socket
	s.mu.Lock()
	if op.ended {
		s.mu.Unlock()
		return
	}
	op.ended, op.dropped = true, byClient
	s.remove(op)
	if last != nil {
		s.put(*last)
	}
	stop := op.stop
	op.stop = nil
	s.mu.Unlock()
	op.cancel()
	switch {
	case stop == nil:
	case byClient:
		stop()
	default:
		go stop()
	}
}

// remove takes an operation off the socket's list. s.mu is held.
func (s *socket) remove(op *operation) {
	for i, other := range s.ops {
		if other == op {
			s.ops = append(s.ops[:i], s.ops[i+1:]...)
			return
		}
	}
}

// run executes the operation on a goroutine of its own, so that the reader's stack stays
// small and a slow resolver blocks no other operation.
func (op *operation) run(params *graphql.RawParams) {
	defer func() {
		if cause := recover(); cause != nil {
			op.Fail(op.socket.server.options.Engine.Recovered(op.ctx, cause))
		}
	}()
	release, err := op.admit()
	if err != nil {
		op.Fail(err)
		return
	}
	defer release()
	engine := op.socket.server.options.Engine
	prepared, list := engine.Prepare(op.ctx, params)
	switch {
	case list != nil:
		op.failAll(list)
	case prepared.Operation.Operation == ast.Subscription:
		release()
		op.subscribe(prepared)
	default:
		op.answer(engine.Run(op.ctx, prepared))
	}
}

// admit asks whether the caller may run one more operation; release may be called twice.
func (op *operation) admit() (release func(), err error) {
	if op.socket.server.options.Admit == nil {
		return func() {}, nil
	}
	if release, err = op.socket.server.options.Admit(op.ctx); err != nil {
		return nil, err
	}
	return sync.OnceFunc(release), nil
}

// answer sends the one response of a query or mutation.
func (op *operation) answer(response *graphql.Response) {
	op.socket.server.options.Engine.End(op.ctx, response.Errors)
	if op.next(response) {
		op.Complete()
	}
}

// next sends a response. A response that holds only errors ends the operation.
func (op *operation) next(response *graphql.Response) bool {
	if response.Data == nil && len(response.Errors) > 0 {
		op.failAll(response.Errors)
		return false
	}
	payload, err := transport.Encode(response)
	if err != nil {
		op.Fail(err)
		return false
	}
	return op.Send(payload)
}

// subscribe opens the stream that serves this subscription, or runs it on the executor. The executor
// is called for the next response only when the queue has space: a resolver that emits much at once
// does not cut its own reader off.
func (op *operation) subscribe(prepared *graphql.OperationContext) {
	options := &op.socket.server.options
	if options.Streams != nil {
		stop, ok, err := options.Streams.Open(graphql.WithOperationContext(op.ctx, prepared), prepared, op)
		if err != nil {
			op.Fail(err)
		}
		if ok || err != nil {
			options.Engine.End(op.ctx, nil)
			op.opened(stop)
			return
		}
	}
	options.Engine.End(op.ctx, nil)
	next := options.Engine.Subscribe(op.ctx, prepared)
	for response := next(); response != nil; response = next() {
		if !op.next(response) || op.Pace(op.ctx) != nil {
			return
		}
	}
	op.Complete()
}

// opened keeps the stream's stop for the end, or calls it when that has already come.
func (op *operation) opened(stop func()) {
	if stop == nil {
		return
	}
	op.socket.mu.Lock()
	ended := op.ended
	if !ended {
		op.stop = stop
	}
	op.socket.mu.Unlock()
	if ended {
		stop()
	}
}
