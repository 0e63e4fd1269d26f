package live

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/transport"
)

const (
	pageSize  = 200                    // events a read
	slowLook  = 10 * time.Second       // a group looks by itself this often
	held      = 100 * time.Millisecond // a project's group looks again this soon after a wake-up, for commits behind a running transaction
	heldLooks = 20                     // and this often
	patience  = time.Second            // how long a burst waits for its slowest members before it cuts them
	ringSize  = 64                     // encoded events a group keeps for those who join
)

// feed is one ordered source of events.
type feed struct {
	topic string
	// read gives up to pageSize events after a position, for everybody in the group.
	read func(ctx context.Context, after event.Position) ([]*event.Event, error)
	// position is where an event stands.
	position func(*event.Event) event.Position
	// delayed says that a woken-up commit may become readable a little later.
	delayed bool
}

// group is the subscribers that share one execution.
type group struct {
	key  string
	feed feed
	log  *slog.Logger
	wake *event.Waiter
	stop context.CancelFunc

	begin func() *encoder // starts the group's execution

	mu       sync.Mutex
	encoder  *encoder // nil before the first event, after an error, and at the end
	ended    bool
	place    event.Position // everything up to here was handed out
	members  map[*subscriber]struct{}
	ring     []encoded      // the newest, oldest first
	ringFrom event.Position // the place before the ring's oldest
	users    int            // subscribers that replay or are joined; guarded by the server's lock
}

type encoded struct {
	at      event.Position
	payload []byte
}

// subscriber is one sink and the place of the last event it was sent.
type subscriber struct {
	sink transport.Sink
	at   event.Position
}

// run hands out what is new until ctx ends.
func (g *group) run(ctx context.Context) {
	defer g.wake.Close()
	look := time.NewTimer(slowLook)
	defer look.Stop()
	again := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wake.C:
			again = heldLooks
		case <-look.C:
		}
		found, err := g.advance(ctx)
		if err != nil && ctx.Err() == nil {
			g.log.Warn("a live feed could not be read; it is tried again", "topic", g.feed.topic, "error", err)
		}
		pause := slowLook
		if g.feed.delayed && !found && again > 0 {
			again, pause = again-1, held
		}
		look.Reset(pause)
	}
}

// advance reads, encodes and hands out everything new; found says whether there was anything. A
// group that nobody has joined has no place to read from.
func (g *group) advance(ctx context.Context) (found bool, err error) {
	for {
		g.mu.Lock()
		place, idle := g.place, len(g.members) == 0
		g.mu.Unlock()
		if idle {
			return found, nil
		}
		events, err := g.feed.read(ctx, place)
		if err != nil || len(events) == 0 {
			return found, err
		}
		found = true
		if err := g.handOut(place, events); err != nil {
			return found, err
		}
		if len(events) < pageSize {
			return found, nil
		}
		transport.PaceAll(ctx, patience, slices.Values(g.sinks()))
	}
}

// sinks are the members' queues, for pacing a burst over all of them.
func (g *group) sinks() []transport.Sink {
	g.mu.Lock()
	defer g.mu.Unlock()
	sinks := make([]transport.Sink, 0, len(g.members))
	for member := range g.members {
		sinks = append(sinks, member.sink)
	}
	return sinks
}

// handOut encodes events once and queues the same bytes for every member. A member whose queue is
// full is cut by its socket and leaves. Events read before everybody left and somebody else joined
// are dropped: whoever joined has its own place. Events that cannot be encoded fail the members.
func (g *group) handOut(from event.Position, events []*event.Event) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended || g.place != from || len(g.members) == 0 {
		return nil
	}
	batch, payloads, err := g.encodeAll(events)
	if err != nil {
		g.fail(err)
		return err
	}
	for _, e := range batch {
		g.keep(e)
	}
	g.place = batch[len(batch)-1].at
	for member := range g.members {
		if !member.send(batch, payloads) {
			delete(g.members, member)
		}
	}
	return nil
}

// encodeAll encodes a page; the lock is held.
func (g *group) encodeAll(events []*event.Event) ([]encoded, [][]byte, error) {
	if g.encoder == nil {
		g.encoder = g.begin()
	}
	batch := make([]encoded, len(events))
	payloads := make([][]byte, len(events))
	for i, ev := range events {
		payload, err := g.encoder.encode(ev)
		if err != nil {
			return nil, nil, err
		}
		batch[i], payloads[i] = encoded{at: g.feed.position(ev), payload: payload}, payload
	}
	return batch, payloads, nil
}

// fail ends every member's subscription with the error, and the execution that made it; whoever
// joins next starts another. The lock is held.
func (g *group) fail(err error) {
	for member := range g.members {
		member.sink.Fail(err)
	}
	clear(g.members)
	g.encoder.close()
	g.encoder = nil
}

// end stops the group; it may be called twice.
func (g *group) end() {
	g.stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	if g.encoder != nil {
		g.encoder.close()
		g.encoder = nil
	}
}

// send queues what lies after the member's place; payloads are the batch's, made once for all.
func (s *subscriber) send(batch []encoded, payloads [][]byte) bool {
	skip := 0
	for skip < len(batch) && !s.at.Before(batch[skip].at) {
		skip++
	}
	if skip == len(batch) {
		return true
	}
	s.at = batch[len(batch)-1].at
	return s.sink.SendAll(payloads[skip:])
}

// keep puts a payload on the ring; the lock is held.
func (g *group) keep(e encoded) {
	if len(g.ring) == ringSize {
		g.ringFrom = g.ring[0].at
		copy(g.ring, g.ring[1:])
		g.ring = g.ring[:ringSize-1]
	}
	g.ring = append(g.ring, e)
}

// join makes a subscriber live that has replayed to the end of the feed. If others are joined, it
// may stand behind the group by what came since: then the ring brings it there, or it replays on.
func (g *group) join(s *subscriber) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.members) == 0 {
		g.place, g.ringFrom, g.ring = s.at, s.at, nil
	}
	return g.admit(s)
}

// joinEarly makes a subscriber live without reading anything, where others are joined and the ring
// still holds what it misses: most of those who reconnect.
func (g *group) joinEarly(s *subscriber) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.members) > 0 && g.admit(s)
}

// admit brings the subscriber to the group's place and joins it; the lock is held.
func (g *group) admit(s *subscriber) bool {
	if s.at.Before(g.ringFrom) {
		return false
	}
	if s.at.Before(g.place) {
		payloads := make([][]byte, len(g.ring))
		for i := range g.ring {
			payloads[i] = g.ring[i].payload
		}
		if !s.send(g.ring, payloads) {
			return true // it was cut: there is nothing left to join
		}
	}
	g.members[s] = struct{}{}
	return true
}

func (g *group) leave(s *subscriber) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.members, s)
}

// poke makes the group look now: something may have come between the subscriber's last read and
// its joining.
func (g *group) poke() {
	select {
	case g.wake.C <- struct{}{}:
	default:
	}
}
