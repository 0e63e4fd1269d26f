package wsapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gpuaas/app-platform/transport"
)

// Protocol is the one sub-protocol served.
const Protocol = "graphql-transport-ws"

// Close codes of the sub-protocol, and our own.
const (
	CloseGoingAway       = 1001 // the server stops, or the peer did not answer a ping
	CloseProtocolError   = 1002
	CloseInvalidText     = 1007
	CloseTooBig          = 1009
	CloseInternal        = 1011
	CloseTryAgain        = 1013 // the credential cannot be checked now
	CloseBadRequest      = 4400
	CloseUnauthorized    = 4401
	CloseForbidden       = 4403
	CloseBadProtocol     = 4406
	CloseInitTimeout     = 4408
	CloseDuplicateID     = 4409
	CloseTooManyInits    = 4429
	CloseSlowReader      = 4290 // the queue ran over: reconnect and resume from the cursor
	CloseTooManySockets  = 4291 // this subject holds too many sockets
	closeNothingReceived = 1005 // never on the wire
)

// CloseReason says why a socket is closed. Reason is shown to the client and cut to the
// 123 bytes that a close frame holds.
type CloseReason struct {
	Code   int
	Reason string
}

// Options configure a Server. Zero bounds take the defaults named with them.
type Options struct {
	// Engine runs the operations. Required.
	Engine *transport.Engine
	// Authenticate checks the credential of connection_init (payload {"authorization":
	// "Bearer …"}), else of the upgrade's header or cookie, and returns the context that
	// resolvers see; it must be derived from the one given. Refusals close the socket with
	// 4403, since another credential may be good; where none was shown at all, with 4401. Required.
	Authenticate func(ctx context.Context, credential transport.Credential, r *http.Request) (context.Context, error)
	// Watch is called once a socket is authenticated, with its context. The caller keeps
	// revoke and calls it when the credential is revoked or expires, or rights are taken
	// away; revoke never blocks and may be called at any time, any number of times. stop,
	// when not nil, is called once when the socket is closed. Optional.
	Watch func(ctx context.Context, revoke func(CloseReason)) (stop func())
	// Subject names who a socket belongs to, for SubjectSockets; "" is not counted. Optional.
	Subject func(ctx context.Context) string
	// Admit, when set, is called before each operation, with the socket's context, and may refuse it
	// for the number of the caller's operations; release is called when a query or mutation has
	// been answered, and when a subscription begins. Optional.
	Admit func(ctx context.Context) (release func(), err error)
	// Streams serves subscriptions; those it does not serve run on the executor. Optional.
	Streams transport.Streams
	// Context, when set, carries a correlation id on in the caller's own way.
	Context func(ctx context.Context, correlationID string) context.Context
	// Origins are pages of other hosts that may connect ("https://host:port").
	Origins []string

	Sockets        int           // open at once; 20,000
	PendingSockets int           // of them not yet authenticated; 2,000
	SubjectSockets int           // of one subject; 12,000
	Operations     int           // running on one socket; 100
	MessageBytes   int           // of one message from a client; 64 KiB
	QueueMessages  int           // waiting for one socket; 1,024
	QueueBytes     int           // waiting for one socket; 1 MiB
	InitTimeout    time.Duration // from upgrade to connection_init, and to its answer; 5 s
	WriteTimeout   time.Duration // for a write once the kernel's buffer is full; 10 s
	KeepAlive      time.Duration // between pings; a peer silent from one to the next is dead; 25 s
	StopTimeout    time.Duration // for sockets to close when the server stops; 5 s
}

func (o Options) checked() (Options, error) {
	if o.Engine == nil {
		return o, errors.New("graphql over WebSocket: Engine is missing")
	}
	if o.Authenticate == nil {
		return o, errors.New("graphql over WebSocket: Authenticate is missing")
	}
	for _, d := range []struct {
		field *int
		value int
	}{
		{&o.Sockets, 20_000}, {&o.PendingSockets, 2000}, {&o.SubjectSockets, 12_000}, {&o.Operations, 100},
		{&o.MessageBytes, 64 << 10}, {&o.QueueMessages, 1024}, {&o.QueueBytes, 1 << 20},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.InitTimeout, 5 * time.Second}, {&o.WriteTimeout, 10 * time.Second},
		{&o.KeepAlive, 25 * time.Second}, {&o.StopTimeout, 5 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return o, nil
}
