package wsapi

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/gpuaas/app-platform/transport"
)

// Server serves the upgrade requests of GET /graphql. It accepts sockets while Run runs.
type Server struct {
	options  Options
	upgrader websocket.Upgrader
	flushers []*flusher
	wheel    wheel

	running  atomic.Bool
	total    atomic.Int64 // sockets
	pending  atomic.Int64 // of them not authenticated
	next     atomic.Uint32
	gone     chan struct{} // capacity 1: a socket has gone
	mu       sync.Mutex
	subjects map[string]int
}

// New checks the options and makes a server.
func New(options Options) (*Server, error) {
	options, err := options.checked()
	if err != nil {
		return nil, err
	}
	s := &Server{options: options, gone: make(chan struct{}, 1), subjects: map[string]int{}}
	s.upgrader = websocket.Upgrader{
		HandshakeTimeout: options.WriteTimeout,
		// frames are ours: its buffers stay unused
		ReadBufferSize: 128, WriteBufferSize: 128, WriteBufferPool: &sync.Pool{},
		Subprotocols: []string{Protocol},
		CheckOrigin:  func(r *http.Request) bool { return transport.OriginAllowed(r, options.Origins, true) },
		Error:        refuseUpgrade,
	}
	for range runtime.GOMAXPROCS(0) {
		s.flushers = append(s.flushers, newFlusher())
	}
	return s, nil
}

// refuseUpgrade answers a bad handshake in the platform's envelope.
func refuseUpgrade(w http.ResponseWriter, r *http.Request, status int, _ error) {
	code, message := transport.CodeInvalidArgument, "the WebSocket handshake is malformed"
	switch status {
	case http.StatusForbidden:
		code, message = transport.CodeForbidden, "this origin may not connect"
	case http.StatusServiceUnavailable:
		code, message = transport.CodeUnavailable, "too many sockets are open, or the server is stopping"
		w.Header().Set("Retry-After", "5")
	}
	id := transport.RequestCorrelationID(r)
	w.Header().Set(transport.CorrelationHeader, id)
	w.Header().Set("Sec-Websocket-Version", "13")
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]any{
		"message": message,
		"extensions": map[string]any{"code": code, "correlation_id": id, "retryable": code == transport.CodeUnavailable,
			"reasons": []any{}},
	}}})
}

// ServeHTTP upgrades one connection and returns: the socket lives on its own goroutine,
// and the handler's stack and buffers are freed.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.reserve() {
		refuseUpgrade(w, r, http.StatusServiceUnavailable, nil)
		return
	}
	id := transport.RequestCorrelationID(r)
	upgraded, err := s.upgrader.Upgrade(w, r, http.Header{transport.CorrelationHeader: {id}})
	if err != nil {
		s.unreserve()
		return // already answered
	}
	socket := s.socket(upgraded, r, id)
	if upgraded.Subprotocol() != Protocol {
		socket.close(CloseReason{CloseBadProtocol, "Subprotocol not acceptable"})
	}
	if !s.running.Load() { // Run ended between the check and the registration
		socket.close(CloseReason{CloseGoingAway, "the server is stopping"})
	}
	go socket.read()
}

func (s *Server) reserve() bool {
	if !s.running.Load() {
		return false
	}
	if s.total.Add(1) > int64(s.options.Sockets) {
		s.total.Add(-1)
		return false
	}
	if s.pending.Add(1) > int64(s.options.PendingSockets) {
		s.unreserve()
		return false
	}
	return true
}

func (s *Server) unreserve() {
	s.pending.Add(-1)
	s.departed()
}

func (s *Server) socket(upgraded *websocket.Conn, r *http.Request, id string) *socket {
	n := s.next.Add(1)
	conn := upgraded.NetConn()
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetWriteBuffer(sendBuffer) // refused, the kernel's default bounds it
	}
	k := &socket{server: s, conn: conn, raw: rawConn(conn), flusher: s.flushers[n%uint32(len(s.flushers))],
		slot: n % slots} // #nosec G115 -- a flusher a processor
	// Not the request's context: that ends when the handler returns, and holds its buffers.
	k.ctx, k.cancel = context.WithCancel(s.correlated(context.Background(), id))
	k.heard.Store(true)
	k.init = &pendingInit{request: r}
	k.init.timer = time.AfterFunc(s.options.InitTimeout, k.late)
	s.wheel.add(k)
	return k
}

func (s *Server) correlated(ctx context.Context, id string) context.Context {
	ctx = transport.WithCorrelationID(ctx, id)
	if s.options.Context != nil {
		ctx = s.options.Context(ctx, id)
	}
	return ctx
}

// settled counts a pending socket out: it is authenticated, or closed before it was.
func (s *Server) settled() { s.pending.Add(-1) }

// forget takes a closed socket out of every count.
func (s *Server) forget(k *socket) {
	s.wheel.remove(k)
	s.release(k.subject)
	s.departed()
}

func (s *Server) departed() {
	s.total.Add(-1)
	select {
	case s.gone <- struct{}{}:
	default:
	}
}

// Sockets is the number of sockets now open.
func (s *Server) Sockets() int { return int(s.total.Load()) }

// admit counts a socket for its subject.
func (s *Server) admit(ctx context.Context) (subject string, refused *CloseReason) {
	if s.options.Subject == nil {
		return "", nil
	}
	if subject = s.options.Subject(ctx); subject == "" {
		return "", nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subjects[subject] >= s.options.SubjectSockets {
		return "", &CloseReason{CloseTooManySockets, "this caller has too many sockets open"}
	}
	s.subjects[subject]++
	return subject, nil
}

func (s *Server) release(subject string) {
	if subject == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subjects[subject]--; s.subjects[subject] <= 0 {
		delete(s.subjects, subject)
	}
}

// authenticate checks the credential of connection_init, else that of the upgrade.
func (s *Server) authenticate(ctx context.Context, r *http.Request, payload json.RawMessage) (context.Context,
	*CloseReason) {
	credential, refused := presented(r, payload)
	if refused != nil {
		return nil, &CloseReason{CloseUnauthorized, refused.Message}
	}
	if credential.Source == transport.SourceCookie && !transport.OriginAllowed(r, s.options.Origins, false) {
		return nil, &CloseReason{CloseForbidden, "the session cookie is accepted from the platform's own pages only"}
	}
	authenticated, err := s.options.Authenticate(ctx, credential, r)
	if err == nil {
		return authenticated, nil
	}
	shown := s.options.Engine.PresentCredentialError(ctx, err)
	switch transport.Code(shown) {
	case transport.CodeForbidden:
		return nil, &CloseReason{CloseForbidden, shown.Message}
	case transport.CodeUnavailable, transport.CodeDeadlineExceeded, transport.CodeRateLimited:
		return nil, &CloseReason{CloseTryAgain, shown.Message}
	}
	if credential.Raw == "" { // the same client comes without one again
		return nil, &CloseReason{CloseUnauthorized, shown.Message}
	}
	return nil, Refused(string(transport.Code(shown)), shown.Message)
}

// Refused returns the close of a socket whose credential is not, or no more, good: 4403 by the protocol, after which
// stock clients come again with the credential that they then have; 4401 would end them. The reason begins with the
// code.
func Refused(code, message string) *CloseReason {
	return &CloseReason{CloseForbidden, code + ": " + message}
}

// presented finds the credential: a payload's own wins over the upgrade's.
func presented(r *http.Request, payload json.RawMessage) (transport.Credential, *transport.Error) {
	var fields map[string]json.RawMessage
	if payload != nil && json.Unmarshal(payload, &fields) != nil {
		return transport.Credential{}, transport.Refuse(transport.CodeUnauthenticated,
			"the payload of connection_init is malformed")
	}
	raw, given := fields["authorization"]
	if !given {
		return transport.RequestCredential(r)
	}
	var value string
	if json.Unmarshal(raw, &value) == nil {
		if token, ok := transport.Bearer(value); ok {
			return transport.Credential{Raw: token, Source: transport.SourceInit}, nil
		}
	}
	return transport.Credential{}, transport.Refuse(transport.CodeUnauthenticated,
		"authorization must be: Bearer <token>")
}

// Run accepts and serves sockets until ctx is done; then it closes them all with 1001,
// waits up to StopTimeout, and cuts what is left. It returns nil.
func (s *Server) Run(ctx context.Context) error {
	if !s.running.CompareAndSwap(false, true) {
		return errors.New("graphql over WebSocket: the server is already running")
	}
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var workers sync.WaitGroup
	for _, f := range s.flushers {
		workers.Go(func() { f.run(work) })
	}
	s.wheel.turn(ctx, s.options.KeepAlive)
	s.running.Store(false)
	s.wheel.each(func(k *socket) { k.close(CloseReason{CloseGoingAway, "the server is stopping"}) })
	s.drain()
	stop()
	workers.Wait()
	return nil
}

// drain waits for the sockets to go, and cuts those that do not in time.
func (s *Server) drain() {
	late := time.NewTimer(s.options.StopTimeout)
	defer late.Stop()
	for cut := false; s.total.Load() > 0; {
		select {
		case <-s.gone:
		case <-late.C:
			if cut {
				return
			}
			cut = true
			s.wheel.each(func(k *socket) { k.conn.Close() })
			late.Reset(s.options.StopTimeout)
		}
	}
}
