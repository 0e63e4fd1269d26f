package live

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/transport"
)

// encoder runs one subscription operation on the executor and encodes events as whole GraphQL responses, one at a time.
// The executor's resolver reads from the encoder's channel instead of subscribing to anything.
type encoder struct {
	events chan *event.Event
	next   func() *graphql.Response
	engine *transport.Engine
	ctx    context.Context // of the execution
	cancel context.CancelFunc
}

type channelKey struct{}

// Channel returns the channel that a subscription's resolver reads its events from, and nil for an operation that this
// package does not serve.
func Channel(ctx context.Context) <-chan *event.Event {
	events, _ := ctx.Value(channelKey{}).(chan *event.Event)
	return events
}

// newEncoder starts the operation with the rights of the caller of ctx, if ctx has one. It outlives the request of the
// operation, and ends with close.
func newEncoder(ctx context.Context, engine *transport.Engine, op *graphql.OperationContext) *encoder {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e := &encoder{events: make(chan *event.Event, 1), engine: engine, ctx: ctx, cancel: cancel}
	e.next = engine.Subscribe(context.WithValue(ctx, channelKey{}, e.events), again(op))
	return e
}

// again returns the same operation for another execution, without its caches.
func again(op *graphql.OperationContext) *graphql.OperationContext {
	return &graphql.OperationContext{
		RawQuery: op.RawQuery, Variables: op.Variables, OperationName: op.OperationName, Doc: op.Doc,
		Operation:            op.Operation,
		DisableIntrospection: op.DisableIntrospection, RecoverFunc: op.RecoverFunc,
		ResolverMiddleware: op.ResolverMiddleware, RootResolverMiddleware: op.RootResolverMiddleware,
	}
}

// encode executes the operation's selection on one event. The channel buffers the event, so that the executor's read
// never waits. After an error, which may be a recovered panic, the encoder cannot be used any more.
func (e *encoder) encode(ev *event.Event) (payload []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = e.engine.Recovered(e.ctx, cause)
		}
	}()
	select {
	case e.events <- ev:
	case <-e.ctx.Done():
		return nil, e.ctx.Err()
	}
	response := e.next()
	if response == nil {
		return nil, errors.New("the executor ended the subscription")
	}
	return transport.Encode(response)
}

// close ends the execution.
func (e *encoder) close() { e.cancel() }
