package event

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/internal/tx"
)

const (
	channel     = "app_platform_wake" // PostgreSQL's NOTIFY channel
	maxPayload  = 7_900               // bytes of a notification; PostgreSQL's limit is 8,000
	maxQueued   = 8_192               // topics held between two notifications; beyond it all are woken
	coalesce    = 5 * time.Millisecond
	reconnect   = time.Second
	wakeAll     = "*"
	notifyLimit = 5 * time.Second
	// signEvery is how long the listening connection may be silent before it must give a sign of life; signWithin is
	// how long that may take.
	signEvery  = 10 * time.Second
	signWithin = 5 * time.Second
	// aloneFor is how long a finding that no other process listens counts: a hint is a transaction that writes, wasted
	// without a listener. A process that begins to listen meanwhile wakes everything again after it.
	aloneFor = 100 * time.Millisecond
)

// Hub is the wake-up of everything that waits, in this process and, through NOTIFY, in every other one. A wake-up is
// only a hint to read the tables again; they are the truth, and every waiter also reads them by itself now and then.
// NOTIFY is sent after the commit and outside its transaction, in which it would serialise commits; the first goes at
// once, those that follow are joined, and none goes while no other process listens.
type Hub struct {
	pool *pgxpool.Pool
	log  *slog.Logger
	self string // begins this hub's notifications, which come back to it too

	mu      sync.Mutex
	waiters map[string]map[*Waiter]struct{}
	queued  map[string]struct{}
	signal  chan struct{}

	ear   atomic.Uint32 // the server process of the listening connection
	alone time.Time     // when nobody else listened; notify's own
}

// Waiter receives a wake-up when one of its topics was woken.
type Waiter struct {
	// C holds at most one wake-up: it says that something happened since it was last read.
	C      chan struct{}
	hub    *Hub
	topics []string
}

// NewHub makes a hub over the workers' pool; without Run it serves this process alone.
func NewHub(pool *pgxpool.Pool, log *slog.Logger) *Hub {
	return &Hub{
		pool: pool, log: log, self: rand.Text()[:8] + "|", waiters: make(map[string]map[*Waiter]struct{}),
		queued: make(map[string]struct{}), signal: make(chan struct{}, 1),
	}
}

// Wait registers for topics. The caller must Close the waiter.
func (h *Hub) Wait(topics ...string) *Waiter {
	w := &Waiter{C: make(chan struct{}, 1), hub: h, topics: topics}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, topic := range topics {
		if h.waiters[topic] == nil {
			h.waiters[topic] = make(map[*Waiter]struct{})
		}
		h.waiters[topic][w] = struct{}{}
	}
	return w
}

// Waiting returns how many waiters of this process a topic has.
func (h *Hub) Waiting(topic string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.waiters[topic])
}

// Close ends the waiter; it may be called twice.
func (w *Waiter) Close() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	for _, topic := range w.topics {
		delete(w.hub.waiters[topic], w)
		if len(w.hub.waiters[topic]) == 0 {
			delete(w.hub.waiters, topic)
		}
	}
}

// Wake wakes every waiter of the topics, here at once and in other processes soon. It never blocks.
func (h *Hub) Wake(topics ...string) {
	h.mu.Lock()
	h.local(topics)
	if len(h.queued)+len(topics) > maxQueued {
		h.queued = map[string]struct{}{wakeAll: {}}
	} else {
		for _, topic := range topics {
			h.queued[topic] = struct{}{}
		}
	}
	h.mu.Unlock()
	select {
	case h.signal <- struct{}{}:
	default:
	}
}

// local wakes this process's waiters; the lock is held.
func (h *Hub) local(topics []string) {
	for _, topic := range topics {
		if topic == wakeAll {
			for _, waiters := range h.waiters {
				wakeSet(waiters)
			}
			return
		}
		wakeSet(h.waiters[topic])
	}
}

func wakeSet(waiters map[*Waiter]struct{}) {
	for w := range waiters {
		select {
		case w.C <- struct{}{}:
		default:
		}
	}
}

// Run sends and receives notifications until ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { h.listen(ctx) })
	running.Go(func() { h.notify(ctx) })
	running.Wait()
	return nil
}

// notify sends what was woken: the first at once, what comes within the pause after it together.
func (h *Hub) notify(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.signal:
		}
		if err := h.send(ctx); err != nil && ctx.Err() == nil {
			h.log.Warn("other processes could not be woken; they poll by themselves", "error", err)
		}
		pause.Reset(coalesce)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

func (h *Hub) send(ctx context.Context) error {
	h.mu.Lock()
	taken := h.queued
	h.queued = make(map[string]struct{})
	h.mu.Unlock()
	if len(taken) == 0 || time.Since(h.alone) < aloneFor {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, notifyLimit)
	defer cancel()
	batch := &pgx.Batch{}
	// A hint that a crash of the database loses is not missed: its listeners wake everything then. Without this
	// PostgreSQL writes it to disk before it commits, one notification of the whole server after the other.
	batch.Queue(tx.NotAwaited)
	heard := true
	for _, payload := range payloads(taken) {
		batch.Queue(notifySQL, channel, h.self+payload, listenSQL, h.ear.Load()).
			Exec(func(tag pgconn.CommandTag) error { heard = tag.RowsAffected() > 0; return nil })
	}
	if err := h.pool.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	h.alone = time.Time{}
	if !heard {
		h.alone = time.Now()
	}
	return nil
}

// listenSQL makes a connection receive what other processes send.
const listenSQL = "LISTEN " + channel

// notifySQL sends a payload if a session besides ours ($4) listens; one with track_activities off counts as listening.
const notifySQL = `SELECT pg_notify($1, $2) WHERE EXISTS (SELECT FROM pg_stat_activity
	WHERE datname = current_database()
	AND pid <> $4 AND (query = $3 OR state = 'disabled'))`

// payloads packs topics into as few notifications as their size allows.
func payloads(topics map[string]struct{}) []string {
	var packed []string
	var line strings.Builder
	for topic := range topics {
		if line.Len() > 0 && line.Len()+1+len(topic) > maxPayload {
			packed = append(packed, line.String())
			line.Reset()
		}
		if line.Len() > 0 {
			line.WriteByte(',')
		}
		line.WriteString(topic)
	}
	return append(packed, line.String())
}

// listen receives from other processes. After each new connection everything is woken, since what was sent in between
// is lost.
func (h *Hub) listen(ctx context.Context) {
	for ctx.Err() == nil {
		err := h.hear(ctx)
		if ctx.Err() != nil {
			return
		}
		h.log.Warn("the wake-up connection was lost", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

func (h *Hub) hear(ctx context.Context) error {
	pooled, err := h.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	conn := pooled.Hijack() // a listening connection must not go back to the pool
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := subscribe(ctx, conn); err != nil {
		return err
	}
	h.ear.Store(conn.PgConn().PID())
	h.wakeHere(wakeAll)
	defer time.AfterFunc(2*aloneFor, func() { h.wakeHere(wakeAll) }).Stop()
	for {
		notification, err := next(ctx, conn)
		if err != nil {
			return errors.Join(errors.New("listen"), err)
		}
		if notification == nil {
			continue
		}
		if strings.HasPrefix(notification.Payload, h.self) {
			continue // its waiters were woken when it was sent
		}
		_, topics, _ := strings.Cut(notification.Payload, "|")
		h.wakeHere(strings.Split(topics, ",")...)
	}
}

// subscribe listens; a connection that listens already answers too, as a sign of life.
func subscribe(ctx context.Context, conn *pgx.Conn) error {
	bounded, cancel := context.WithTimeout(ctx, signWithin)
	defer cancel()
	_, err := conn.Exec(bounded, listenSQL)
	return err
}

// next waits for a notification; nil after a silence in which the connection gave a sign of life. Without the sign, a
// connection that was cut off would be waited on for ever.
func next(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	bounded, cancel := context.WithTimeout(ctx, signEvery)
	defer cancel()
	notification, err := conn.WaitForNotification(bounded)
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return notification, err
	}
	return nil, subscribe(ctx, conn)
}

func (h *Hub) wakeHere(topics ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.local(topics)
}
