package live

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/transport"
)

const (
	pageSize   = 200              // events of one read
	pollEvery  = 10 * time.Second // a group polls this often without a wake-up
	patience   = time.Second      // how long a burst waits for its slowest members before it cuts them
	bufferSize = 64               // encoded events that a group keeps for subscribers that join
	// A project's group polls again this soon and this often after a wake-up: a commit becomes readable only after
	// every transaction that began before it.
	delayedPoll  = 100 * time.Millisecond
	delayedPolls = 20
)

// feed is one ordered source of events.
type feed struct {
	topic string
	// read returns up to pageSize events after a position, for all members of the group.
	read func(ctx context.Context, after event.Position) ([]*event.Event, error)
	// position returns the position of an event.
	position func(*event.Event) event.Position
	// delayed states that a commit may become readable a little later than its wake-up.
	delayed bool
}

// group holds the subscribers that share one execution.
type group struct {
	key     string
	feed    feed
	log     *slog.Logger
	metrics *metrics.Set
	wake    *event.Waiter
	stop    context.CancelFunc

	begin func() *encoder // starts the group's execution

	mu       sync.Mutex
	encoder  *encoder // nil before the first event, after an error, and at the end
	ended    bool
	cursor   event.Position // everything up to here was handed out
	members  map[*subscriber]struct{}
	buffer   []encoded      // the newest events, oldest first
	bufferAt event.Position // the position before the buffer's oldest event
	users    int            // subscribers that replay or are joined; guarded by the server's lock
}

// encoded is an event as it is sent, with its position.
type encoded struct {
	position event.Position
	payload  []byte
}

// subscriber is one sink, with the position of the last event that was sent to it.
type subscriber struct {
	sink   transport.Sink
	cursor event.Position
}

// run hands out new events until ctx ends.
func (g *group) run(ctx context.Context) {
	defer g.wake.Close()
	poll := time.NewTimer(pollEvery)
	defer poll.Stop()
	again := 0
	var open hint
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wake.C:
			again = delayedPolls
			open.come(time.Now())
		case <-poll.C:
		}
		found, err := g.advance(ctx)
		if took, news := open.looked(time.Now(), found, g.feed.delayed); news {
			g.metrics.Delivered(took)
		}
		if err != nil && ctx.Err() == nil {
			g.log.Warn("a live feed could not be read; it is tried again", "topic", g.feed.topic, "error", err)
		}
		pause := pollEvery
		if g.feed.delayed && !found && again > 0 {
			again, pause = again-1, delayedPoll
		}
		poll.Reset(pause)
	}
}

// advance reads, encodes and hands out all new events. found reports whether there were any. A group without members
// has no cursor to read from.
func (g *group) advance(ctx context.Context) (found bool, err error) {
	for {
		g.mu.Lock()
		cursor, idle := g.cursor, len(g.members) == 0
		g.mu.Unlock()
		if idle {
			return found, nil
		}
		events, err := g.feed.read(ctx, cursor)
		if fault.Is(err, fault.CursorExpired) {
			g.expire(cursor, err)
		}
		if err != nil || len(events) == 0 {
			return found, err
		}
		found = true
		if err := g.handOut(cursor, events); err != nil {
			return found, err
		}
		if len(events) < pageSize {
			return found, nil
		}
		transport.PaceAll(ctx, patience, slices.Values(g.sinks()))
	}
}

// sinks returns the members' queues, for pacing a burst over all of them.
func (g *group) sinks() []transport.Sink {
	g.mu.Lock()
	defer g.mu.Unlock()
	sinks := make([]transport.Sink, 0, len(g.members))
	for member := range g.members {
		sinks = append(sinks, member.sink)
	}
	return sinks
}

// handOut encodes events once and queues the same bytes for every member. A member whose queue is full is cut by its
// socket and leaves. Events that were read before all members left and others joined are dropped: the new members have
// their own cursor. Events that cannot be encoded fail the members.
func (g *group) handOut(from event.Position, events []*event.Event) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended || g.cursor != from || len(g.members) == 0 {
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
	g.cursor = batch[len(batch)-1].position
	for member := range g.members {
		if !member.send(batch, payloads) {
			delete(g.members, member)
		}
	}
	return nil
}

// encodeAll encodes a page. The caller holds the lock.
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
		batch[i], payloads[i] = encoded{position: g.feed.position(ev), payload: payload}, payload
	}
	return batch, payloads, nil
}

// fail ends every member's subscription with the error, and the execution that caused it. The next member starts
// another execution. The caller holds the lock.
func (g *group) fail(err error) {
	for member := range g.members {
		member.sink.Fail(err)
	}
	clear(g.members)
	if g.encoder != nil {
		g.encoder.close()
		g.encoder = nil
	}
}

// expire ends the members' subscriptions: the database became another one, which does not have the event at their
// cursor.
func (g *group) expire(cursor event.Position, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cursor == cursor {
		g.fail(err)
	}
}

// end stops the group. It may be called twice.
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

// send queues the events after the subscriber's cursor. payloads are the batch's, collected once for all subscribers.
func (s *subscriber) send(batch []encoded, payloads [][]byte) bool {
	skip := 0
	for skip < len(batch) && !s.cursor.Before(batch[skip].position) {
		skip++
	}
	if skip == len(batch) {
		return true
	}
	s.cursor = batch[len(batch)-1].position
	return s.sink.SendAll(payloads[skip:])
}

// keep adds an event to the buffer. The caller holds the lock.
func (g *group) keep(e encoded) {
	if len(g.buffer) == bufferSize {
		g.bufferAt = g.buffer[0].position
		copy(g.buffer, g.buffer[1:])
		g.buffer = g.buffer[:bufferSize-1]
	}
	g.buffer = append(g.buffer, e)
}

// join makes a subscriber live that has replayed to the end of the feed. Where others are joined, it may be behind the
// group by the newest events: then the buffer holds them, or join reports false and the subscriber replays on.
func (g *group) join(s *subscriber) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.members) == 0 {
		g.cursor, g.bufferAt, g.buffer = s.cursor, s.cursor, nil
	}
	return g.admit(s)
}

// joinEarly makes a subscriber live without a read, where others are joined and the buffer still holds what it misses:
// most subscribers that reconnect.
func (g *group) joinEarly(s *subscriber) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.members) > 0 && g.admit(s)
}

// admit sends the subscriber what it misses up to the group's cursor, and joins it. It reports false where the buffer
// no longer holds that. The caller holds the lock.
func (g *group) admit(s *subscriber) bool {
	if s.cursor.Before(g.bufferAt) {
		return false
	}
	if s.cursor.Before(g.cursor) {
		payloads := make([][]byte, len(g.buffer))
		for i := range g.buffer {
			payloads[i] = g.buffer[i].payload
		}
		if !s.send(g.buffer, payloads) {
			return true // its socket was cut
		}
	}
	g.members[s] = struct{}{}
	return true
}

// leave removes a subscriber.
func (g *group) leave(s *subscriber) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.members, s)
}

// poke makes the group poll now: an event may have been written between the subscriber's last read and its joining.
func (g *group) poke() {
	select {
	case g.wake.C <- struct{}{}:
	default:
	}
}
