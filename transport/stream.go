package transport

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/99designs/gqlgen/graphql"
)

// Streams opens the source of a subscription operation.
type Streams interface {
	// Open authorises, replays and goes live. It returns ok=false when this operation is
	// not one it serves; the executor then runs it. ctx ends with the operation and carries
	// op. Open may send into sink before it returns, and from any goroutine after. An error
	// is presented and ends the operation.
	//
	// stop, when not nil, is called exactly once when the operation has ended, for whatever
	// reason, and never from within a call of sink.
	Open(ctx context.Context, op *graphql.OperationContext, sink Sink) (stop func(), ok bool, err error)
}

// Sink is one subscriber's bounded queue. Payload bytes are shared by many sinks and must
// never be modified; each is a whole GraphQL response ({"data":…}). No method blocks.
type Sink interface {
	// Send queues one payload. It returns false when the operation has ended, or was just cut
	// because its queue is over its bound (its socket is closed with a code that says: resume
	// from your cursor).
	Send(payload []byte) bool
	// SendAll queues payloads in order, all or none.
	SendAll(payloads [][]byte) bool
	// Complete ends the operation in good order.
	Complete()
	// Fail ends the operation with the presented error; no complete follows.
	Fail(err error)
	// Done is closed when the operation has ended.
	Done() <-chan struct{}
}

// Pace waits until at most half of the subscriber's queue is taken, so that a replay of any
// length fits a bounded queue: send a page, pace, send the next. It returns ctx's error, or
// ErrGone when the operation has ended. A sink without a method Pace is not waited for.
func Pace(ctx context.Context, sink Sink) error {
	if paced, ok := sink.(interface{ Pace(context.Context) error }); ok {
		return paced.Pace(ctx)
	}
	return ctx.Err()
}

// PaceAll paces many sinks that get the same pages. It returns when each has space or has
// ended, or when patience has passed, whichever is first. Call it between the pages of a burst:
// without it a burst longer than a queue cuts every subscriber, with it only those that stay
// behind for longer than patience. One slow subscriber delays the others by that much at most.
func PaceAll(ctx context.Context, patience time.Duration, sinks iter.Seq[Sink]) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for sink := range sinks {
		if Pace(ctx, sink) != nil && ctx.Err() != nil {
			return
		}
	}
}

// ErrGone reports that the subscription has ended.
var ErrGone = errors.New("the subscriber has left")
