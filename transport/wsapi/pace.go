package wsapi

import (
	"context"

	"github.com/gpuaas/app-platform/transport"
)

// Pace waits until at most half of the socket's queue is taken; see transport.Pace.
func (op *operation) Pace(ctx context.Context) error {
	for {
		room, ended := op.socket.awaitRoom(op)
		if ended {
			return transport.ErrGone
		}
		if room == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-op.ctx.Done():
			return transport.ErrGone
		case <-room:
		}
	}
}

// awaitRoom returns nil when the queue is at most half full, else a channel that is closed once it is.
func (s *socket) awaitRoom(op *operation) (room <-chan struct{}, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if op.ended || s.phase == closingPhase {
		return nil, true
	}
	if s.halfEmpty() {
		return nil, false
	}
	if s.room == nil {
		s.room = make(chan struct{})
	}
	return s.room, false
}

func (s *socket) halfEmpty() bool {
	return len(s.queue) <= s.server.options.QueueMessages/2 && s.queued <= s.server.options.QueueBytes/2
}

// signalRoom wakes the callers that wait, once the queue is half empty. s.mu is locked.
func (s *socket) signalRoom() {
	if s.room != nil && s.halfEmpty() {
		close(s.room)
		s.room = nil
	}
}
