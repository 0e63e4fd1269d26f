package wsapi

import (
	"context"
	"sync"
	"time"
)

// slots of the keepalive wheel: one ticker pings a 32nd of the sockets at a time.
const slots = 32

// wheel holds every open socket in one of its slots.
type wheel struct {
	slot [slots]struct {
		sync.Mutex
		sockets map[*socket]struct{}
	}
}

func (w *wheel) add(s *socket) {
	slot := &w.slot[s.slot]
	slot.Lock()
	defer slot.Unlock()
	if slot.sockets == nil {
		slot.sockets = map[*socket]struct{}{}
	}
	slot.sockets[s] = struct{}{}
}

func (w *wheel) remove(s *socket) {
	slot := &w.slot[s.slot]
	slot.Lock()
	defer slot.Unlock()
	delete(slot.sockets, s)
}

// each calls do for every socket of a moment.
func (w *wheel) each(do func(*socket)) {
	for i := range w.slot {
		for _, s := range w.of(i) {
			do(s)
		}
	}
}

func (w *wheel) of(i int) []*socket {
	slot := &w.slot[i]
	slot.Lock()
	defer slot.Unlock()
	out := make([]*socket, 0, len(slot.sockets))
	for s := range slot.sockets {
		out = append(out, s)
	}
	return out
}

// turn pings every socket once in each interval until ctx is done.
func (w *wheel) turn(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(max(interval/slots, time.Millisecond))
	defer ticker.Stop()
	for i := 0; ; i = (i + 1) % slots {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			for _, s := range w.of(i) {
				s.ping()
			}
		}
	}
}

// ping requests both a pong frame, which every WebSocket stack answers by itself, and a pong
// message, which the sub-protocol requires. Any frame since the last ping is a sign of life;
// without one the socket is closed. While a write is under way its deadline decides instead:
// the ping may still wait behind the data.
func (s *socket) ping() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != ready || s.scheduled {
		return
	}
	if !s.heard.Swap(false) {
		s.closeLocked(CloseReason{CloseGoingAway, "no answer to a ping"})
		return
	}
	s.put(message{payload: pingFrames})
}

// pingFrames are an empty ping frame and a ping message.
var pingFrames = append([]byte{0x80 | opPing, 0}, textFrame([]byte(`{"type":"ping"}`)).payload...)
