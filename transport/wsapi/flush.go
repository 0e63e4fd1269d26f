package wsapi

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// flushBytes is how much one write joins; a single longer message goes alone.
const flushBytes = 64 << 10

// flusher writes for the sockets on its ready list, one after the other, never blocking
// on any of them.
type flusher struct {
	mu    sync.Mutex
	ready []*socket
	wake  chan struct{} // capacity 1

	buf     []byte
	spare   []*socket
	attempt attempt
	write   func(fd uintptr) bool // attempt.write, made once so that a write allocates nothing
}

func newFlusher() *flusher {
	f := &flusher{wake: make(chan struct{}, 1), buf: make([]byte, 0, flushBytes)}
	f.write = f.attempt.write
	return f
}

// push puts a socket on the ready list; its scheduled flag keeps it there once.
func (f *flusher) push(s *socket) {
	f.mu.Lock()
	f.ready = append(f.ready, s)
	first := len(f.ready) == 1
	f.mu.Unlock()
	if first {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

// run works until ctx is done.
func (f *flusher) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		}
		for batch := f.take(); len(batch) > 0; batch = f.take() {
			for i, s := range batch {
				f.flush(s)
				batch[i] = nil
			}
		}
	}
}

// take swaps the ready list for the one worked off before.
func (f *flusher) take() []*socket {
	f.mu.Lock()
	defer f.mu.Unlock()
	batch := f.ready
	f.ready, f.spare = f.spare[:0], batch
	return batch
}

// flush writes what is queued on one socket, up to flushBytes, and puts it back on the
// list if there is more.
func (f *flusher) flush(s *socket) {
	var last bool
	f.buf, last = s.gather(f.buf[:0])
	if len(f.buf) > 0 {
		if s.raw == nil {
			go s.writeSlowly(append([]byte(nil), f.buf...), last)
			return
		}
		n, err := f.writeNow(s.raw)
		if err == nil && n < len(f.buf) {
			go s.writeSlowly(append([]byte(nil), f.buf[n:]...), last)
			return
		}
		s.wrote(err, last)
	}
	if cap(f.buf) > 4*flushBytes {
		f.buf = make([]byte, 0, flushBytes)
	}
	if s.more() {
		f.push(s)
	}
}

// attempt is one non-blocking write.
type attempt struct {
	data []byte
	n    int
	err  error
}

func (a *attempt) write(fd uintptr) bool {
	a.n, a.err = syscall.Write(int(fd), a.data)
	if a.err == syscall.EAGAIN || a.err == syscall.EINTR {
		a.n, a.err = 0, nil
	}
	return true
}

// writeNow writes as much of buf as the kernel takes at once.
func (f *flusher) writeNow(raw syscall.RawConn) (int, error) {
	f.attempt.data = f.buf
	if err := raw.Write(f.write); err != nil {
		return 0, err
	}
	return max(f.attempt.n, 0), f.attempt.err
}

// writeSlowly finishes a write that the kernel did not take at once, then goes on with
// the queue until it is empty. The socket stays scheduled meanwhile, so that no flusher
// touches it.
func (s *socket) writeSlowly(data []byte, last bool) {
	for {
		s.conn.SetWriteDeadline(time.Now().Add(s.server.options.WriteTimeout))
		_, err := s.conn.Write(data)
		s.wrote(err, last)
		if err != nil {
			s.more()
			return
		}
		data, last = s.gather(data[:0])
		if len(data) == 0 {
			break
		}
	}
	s.conn.SetWriteDeadline(time.Time{})
	if s.more() {
		s.flusher.push(s)
	}
}

// rawConn is the descriptor behind a plain TCP or Unix connection; nil for TLS and pipes,
// whose writes may block and so run on a goroutine of their own.
func rawConn(conn net.Conn) syscall.RawConn {
	sys, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sys.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
