package wsapi

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// phase of a socket's life; it only grows.
type phase uint8

const (
	upgraded phase = iota // waits for connection_init
	acking                // the credential is being checked
	ready
	closingPhase // the close frame is queued or sent; nothing else goes out
)

// linger is how long the peer has to take in what is under way and to answer a close frame.
const linger = 5 * time.Second

// sendBuffer bounds what the kernel holds for one socket, in bytes (it doubles the number).
// Left to itself it grows to megabytes for a slow reader, behind which a ping takes minutes.
const sendBuffer = 128 << 10

// socket is one client. It is kept small, as there are ten thousand of them, and what a
// message touches lies together: at that number each cache line is a miss.
type socket struct {
	flusher *flusher
	raw     syscall.RawConn // nil when writes may block

	mu         sync.Mutex // guards from here to unwatch
	phase      phase
	scheduled  bool // on a flusher's list, or being written
	readerGone bool
	closeSent  bool
	queue      []message
	queued     int           // bytes
	room       chan struct{} // closed when the queue is half empty; nil while nobody waits
	ops        []*operation
	init       *pendingInit // until acknowledged
	subject    string
	unwatch    func()
	ctx        context.Context // carries the caller once authenticated

	server *Server
	conn   net.Conn
	slot   uint32      // of the keepalive wheel
	heard  atomic.Bool // a frame came since the last ping
	cancel context.CancelFunc
}

// pendingInit is what only an unauthenticated socket needs.
type pendingInit struct {
	request *http.Request
	timer   *time.Timer
}

// message waits to be written: a frame of its own, or an operation's payload, framed when
// it is written.
type message struct {
	op      *operation // nil: payload is raw frames
	payload []byte
	last    bool // the close frame
}

// size is what the message takes on the wire.
func (m *message) size() int {
	if m.op == nil {
		return len(m.payload)
	}
	n := len(m.op.prefix) + len(m.payload) + 1
	return headerSize(n) + n
}

func (m *message) append(out []byte) []byte {
	if m.op == nil {
		return append(out, m.payload...)
	}
	out = appendHeader(out, opText, len(m.op.prefix)+len(m.payload)+1)
	out = append(out, m.op.prefix...)
	out = append(out, m.payload...)
	return append(out, '}')
}

// textFrame frames one protocol message.
func textFrame(text []byte) message {
	return message{payload: append(appendHeader(make([]byte, 0, len(text)+10), opText, len(text)), text...)}
}

// put queues messages, all or none. It returns false on a closing socket, and on one whose
// queue would run over, which is closed for it. s.mu is held.
func (s *socket) put(messages ...message) bool {
	if s.phase == closingPhase {
		return false
	}
	for i := range messages {
		s.queued += messages[i].size()
	}
	if len(s.queue)+len(messages) > s.server.options.QueueMessages || s.queued > s.server.options.QueueBytes {
		s.queue, s.queued = nil, 0
		s.closeLocked(CloseReason{CloseSlowReader, "SLOW_CONSUMER: reconnect and resume from your cursor"})
		return false
	}
	s.queue = append(s.queue, messages...)
	s.schedule()
	return true
}

func (s *socket) schedule() {
	if !s.scheduled {
		s.scheduled = true
		s.flusher.push(s)
	}
}

// send queues one message of the protocol.
func (s *socket) send(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(m)
}

// close begins the closing handshake. Only the first reason counts.
func (s *socket) close(why CloseReason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked(why)
}

func (s *socket) closeLocked(why CloseReason) {
	if s.phase == closingPhase {
		return
	}
	s.phase = closingPhase
	s.queue = append(s.queue, message{payload: closeFrame(why), last: true})
	s.schedule()
	s.cancel()
}

// gather moves queued messages into out, at least one and at most flushBytes of them.
// last: the close frame is among them.
func (s *socket) gather(out []byte) (_ []byte, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := 0
	for i := range s.queue {
		m := &s.queue[i]
		size := m.size()
		if len(out) > 0 && len(out)+size > flushBytes {
			break
		}
		taken++
		s.queued -= size
		if m.op == nil || !m.op.dropped {
			out = m.append(out)
		}
		last = last || m.last
	}
	s.dequeue(taken)
	return out, last
}

// dequeue drops the first n messages, and the queue's memory when a burst has ended.
func (s *socket) dequeue(n int) {
	defer s.signalRoom()
	left := copy(s.queue, s.queue[n:])
	clear(s.queue[left:])
	s.queue = s.queue[:left]
	if left == 0 {
		s.queued = 0
		if cap(s.queue) > 8 {
			s.queue = nil
		}
	}
}

// more reports whether there is more to write; if not, the socket is off the ready list.
func (s *socket) more() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scheduled = len(s.queue) > 0
	return s.scheduled
}

// wrote takes note of a write. After a failed one nothing more can be sent to this peer.
func (s *socket) wrote(err error, last bool) {
	if err == nil && !last {
		return
	}
	s.mu.Lock()
	s.phase, s.closeSent = closingPhase, true
	s.queue, s.queued = nil, 0
	gone := s.readerGone
	s.mu.Unlock()
	s.cancel()
	if err != nil || gone {
		s.conn.Close()
		return
	}
	// Half-close, and read on until the peer has answered: closing at once could reset the
	// connection and take the close frame with it.
	if half, ok := s.conn.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
	s.conn.SetReadDeadline(time.Now().Add(linger))
}

// read is the socket's goroutine: frames in, until the connection ends.
func (s *socket) read() {
	in := frames{in: bufio.NewReaderSize(s.conn, 256), limit: s.server.options.MessageBytes}
	peerClosed := false
	for !peerClosed {
		op, payload, err := in.next()
		if err != nil {
			var breach *violation
			if !errors.As(err, &breach) {
				break
			}
			s.close(breach.CloseReason)
			s.drain(in.in)
			break
		}
		s.heard.Store(true)
		peerClosed = s.frame(op, payload)
	}
	s.gone(peerClosed)
}

// drain reads and drops what a peer still sends after a breach, until it goes or the
// linger after our close frame ends it.
func (s *socket) drain(in *bufio.Reader) {
	for {
		if _, err := in.Discard(in.Size()); err != nil {
			return
		}
	}
}

// frame handles one message or control frame. done: the peer has closed.
func (s *socket) frame(op byte, payload []byte) (done bool) {
	switch op {
	case opClose:
		why, err := closing(payload)
		var breach *violation
		if errors.As(err, &breach) {
			why = breach.CloseReason
		}
		s.close(why)
		return true
	case opPing:
		s.send(message{payload: append(appendHeader(nil, opPong, len(payload)), payload...)})
	case opText:
		s.receive(payload)
	case opBinary:
		s.close(CloseReason{CloseBadRequest, "messages must be text"})
	}
	return false
}

// gone tears the socket down once nothing more can come in. The connection itself is
// closed here, or after the close frame has been written when that is still to come.
func (s *socket) gone(peerClosed bool) {
	s.cancel()
	s.mu.Lock()
	s.readerGone = true
	hangUp := !peerClosed || s.closeSent
	s.phase = closingPhase
	ops, unwatch, init := s.ops, s.unwatch, s.init
	s.ops, s.unwatch, s.init = nil, nil, nil
	s.mu.Unlock()
	if hangUp {
		s.conn.Close()
	}
	if init != nil {
		init.timer.Stop()
		s.server.settled()
	}
	for _, op := range ops {
		op.finish(nil, true)
	}
	if unwatch != nil {
		unwatch()
	}
	s.server.forget(s)
}
