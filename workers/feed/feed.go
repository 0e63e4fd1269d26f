// Package feed reads what adapters report of their operations: one long poll an adapter, however many
// operations wait, held by one replica under a lease. The lease is the worker's heartbeat: a worker that
// finds an adapter whose reader is dead takes over where that one had stored its cursor.
//
// The feed is how news comes fast, not how it comes at all: a status that is lost on the way is
// read from the adapter by the operation that waits for it.
package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/attribute"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/adapterclient"
	"github.com/gpuaas/app-platform/internal/panics"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Bounds of reading.
const (
	scanEvery  = 2 * time.Second  // between two looks for adapters without a reader
	pollWait   = 20 * time.Second // how long a poll waits at the adapter
	deadAfter  = "10 seconds"     // silence after which a reader has lost its lease
	backoffMin = 500 * time.Millisecond
	backoffMax = 10 * time.Second
	maxReaders = 256 // adapters that one process reads at once
	// maxSandbox is how many of them may be of tenants' sandboxes, so that these never keep the platform's out. The
	// operations of the others are polled.
	maxSandbox  = 64
	storeWithin = 5 * time.Second
	maxError    = 500 // bytes of a stored error
	// idlePause is between two polls that brought nothing new: an adapter that answers at once, instead
	// of when something changes, does not keep the worker and the database busy.
	idlePause = 200 * time.Millisecond
)

// Reader reads the feeds of all adapters that no other live worker reads.
type Reader struct {
	db     *tx.DB
	client *adapterclient.Client
	worker ids.ID
	log    *slog.Logger
	actor  *authz.Actor

	mu      sync.Mutex
	reading map[ids.ID]bool // whether of a sandbox
}

// New makes a reader whose leases are the worker's.
func New(db *tx.DB, client *adapterclient.Client, worker ids.ID, log *slog.Logger) *Reader {
	return &Reader{db: db, client: client, worker: worker, log: log, actor: authz.System("feed"),
		reading: make(map[ids.ID]bool)}
}

// source is an adapter with how far its feed was read.
type source struct {
	ID                 ids.ID
	Name, URL          string
	Authority          string
	Epoch, Cursor      string
	problems           int
	everFailed, opened bool
	stood              bool // the last page ended where the one before did
	Sandbox            bool // a tenant registered it for itself
}

// Run reads until ctx ends, and then gives its leases back.
func (r *Reader) Run(ctx context.Context) error {
	var readers sync.WaitGroup
	tick := time.NewTicker(scanEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		r.scan(ctx, &readers)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	readers.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWithin)
	defer cancel()
	if _, err := r.db.Worker().Exec(last, `UPDATE adapter SET feed_holder = NULL WHERE feed_holder = $1`,
		r.worker); err != nil {
		return fmt.Errorf("release feeds: %w", err)
	}
	return nil
}

// scan takes the adapters that no worker reads and starts a goroutine for each.
func (r *Reader) scan(ctx context.Context, readers *sync.WaitGroup) {
	r.mu.Lock()
	mine, boxed := make([]string, 0, len(r.reading)), 0
	for id, sandbox := range r.reading {
		mine = append(mine, string(id))
		if sandbox {
			boxed++
		}
	}
	r.mu.Unlock()
	taken, err := r.take(ctx, mine, false, maxReaders-len(mine))
	if err == nil {
		var more []*source
		more, err = r.take(ctx, mine, true, min(maxSandbox-boxed, maxReaders-len(mine)-len(taken)))
		taken = append(taken, more...)
	}
	if err != nil {
		if ctx.Err() == nil {
			r.log.Warn("adapters' feeds could not be claimed", "error", err)
		}
		return
	}
	for _, one := range taken {
		r.mu.Lock()
		r.reading[one.ID] = one.Sandbox
		r.mu.Unlock()
		readers.Go(func() {
			r.read(ctx, one)
			r.mu.Lock()
			delete(r.reading, one.ID)
			r.mu.Unlock()
		})
	}
}

// take takes adapters that no live worker reads: at most a number of the platform's, or of sandboxes.
func (r *Reader) take(ctx context.Context, mine []string, sandbox bool, most int) ([]*source, error) {
	found, err := r.db.Worker().Query(ctx, `UPDATE adapter SET feed_holder = $1 WHERE id IN (
		SELECT a.id FROM adapter a WHERE NOT a.id = ANY ($2::text[]) AND (a.project_id IS NOT NULL) = $4
		AND NOT EXISTS (SELECT FROM project p WHERE p.id = a.project_id AND p.deleted_at IS NOT NULL)
		AND (a.feed_holder IS NULL OR a.feed_holder = $1
		OR NOT EXISTS (
			SELECT FROM worker_process w WHERE w.id = a.feed_holder
			AND w.heartbeat_at > now() - interval '`+deadAfter+`'))
		ORDER BY a.id LIMIT $3 FOR UPDATE SKIP LOCKED)
		RETURNING id, name, url, authority, feed_epoch, feed_cursor`, r.worker, mine, max(most, 0), sandbox)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, func(row pgx.CollectableRow) (*source, error) {
		s := &source{Sandbox: sandbox}
		return s, row.Scan(&s.ID, &s.Name, &s.URL, &s.Authority, &s.Epoch, &s.Cursor)
	})
}

// errLost reports that another worker reads the feed now, or the adapter has another address.
var errLost = errors.New("the feed's lease is lost")

// read polls one adapter until ctx ends or the lease is lost.
func (r *Reader) read(ctx context.Context, s *source) {
	log := r.log.With("adapter", s.Name)
	for ctx.Err() == nil {
		began := time.Now()
		err := panics.Caught(log, "an adapter's feed", func() error { return r.poll(ctx, s) })
		if errors.Is(err, errLost) {
			return
		}
		if err == nil && s.stood {
			rest(ctx, idlePause-time.Since(began))
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		s.problems++
		if s.problems == 1 {
			log.Warn("the adapter's feed cannot be read", "error", err)
		}
		if r.note(ctx, s, err) {
			return
		}
		rest(ctx, min(backoffMin<<min(s.problems-1, 8), backoffMax))
	}
}

// rest waits for a while, or until ctx ends.
func rest(ctx context.Context, pause time.Duration) {
	if pause <= 0 {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// poll reads one page and stores it.
func (r *Reader) poll(ctx context.Context, s *source) error {
	wait := pollWait
	if s.problems > 0 {
		wait = 0 // the first answer after a failure must not be waited for
	}
	ctx, span := telemetry.Begin(ctx, "feed", attribute.String("adapter", s.Name))
	defer span.End() // the wait for an answer is bounded, and so is what it says
	page, err := r.client.Changes(ctx,
		adapterclient.Target{Name: s.Name, URL: s.URL, Authority: s.Authority, Sandbox: s.Sandbox},
		s.Cursor, wait)
	if err != nil {
		return err
	}
	if s.Epoch != page.Epoch || s.problems > 0 {
		// A new epoch leaves out what ended in the old one; after a failure, operations may be
		// waiting for their next try. Both look again now.
		if err := r.wake(ctx, s, s.Epoch != page.Epoch); err != nil {
			return err
		}
	}
	if err := r.absorb(ctx, s, page.Operations); err != nil {
		return err
	}
	s.problems, s.stood = 0, s.Epoch == page.Epoch && s.Cursor == page.Cursor
	if !s.opened || s.everFailed {
		r.describe(ctx, s)
	}
	return r.advance(ctx, s, page.Epoch, page.Cursor)
}

// describe reads the adapter's description again: it may have been started, or replaced,
// after it was registered. The stored description stays if it does not answer.
func (r *Reader) describe(ctx context.Context, s *source) {
	said, err := r.client.Describe(ctx, adapterclient.Target{Name: s.Name, URL: s.URL, Authority: s.Authority,
		Sandbox: s.Sandbox})
	if err == nil {
		_, err = r.db.Worker().Exec(ctx, `UPDATE adapter SET description = $3 WHERE id = $1 AND feed_holder = $2`, s.ID,
			r.worker, said)
	}
	if err != nil && ctx.Err() == nil {
		r.log.Warn("the adapter's description could not be updated", "adapter", s.Name, "error", err)
	}
}

// advance stores how far the feed was read, if the lease still holds.
func (r *Reader) advance(ctx context.Context, s *source, epoch, cursor string) error {
	if s.opened && s.Epoch == epoch && s.Cursor == cursor && !s.everFailed {
		return r.hold(ctx, s)
	}
	batch, held := &pgx.Batch{}, int64(0)
	// A cursor that a crash of the database forgets is read from once more, which changes nothing.
	batch.Queue(tx.NotAwaited)
	batch.Queue(`UPDATE adapter SET feed_epoch = $3, feed_cursor = $4, last_seen_at = now(), last_error = ''
		WHERE id = $1 AND feed_holder = $2 AND url = $5 AND authority = $6 AND (project_id IS NOT NULL) = $7`,
		s.ID, r.worker, epoch, cursor, s.URL, s.Authority, s.Sandbox).
		Exec(func(tag pgconn.CommandTag) error { held = tag.RowsAffected(); return nil })
	if err := r.db.Worker().SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if held == 0 {
		return r.lost(ctx, s)
	}
	s.Epoch, s.Cursor, s.opened, s.everFailed = epoch, cursor, true, false
	return nil
}

// hold notes that the adapter answered, though nothing changed. It clears the last error: the cause that kept other
// processes from reaching the adapter has ended too.
func (r *Reader) hold(ctx context.Context, s *source) error {
	tag, err := r.db.Worker().Exec(ctx, `UPDATE adapter SET last_seen_at = now(), last_error = ''
		WHERE id = $1 AND feed_holder = $2 AND url = $3 AND authority = $4 AND (project_id IS NOT NULL) = $5`,
		s.ID, r.worker, s.URL, s.Authority, s.Sandbox)
	if err == nil && tag.RowsAffected() == 0 {
		return r.lost(ctx, s)
	}
	return err
}

// note stores why the feed cannot be read; it reports whether the lease is lost.
func (r *Reader) note(ctx context.Context, s *source, cause error) bool {
	s.everFailed = true
	message := "the adapter's feed cannot be read"
	if refused, ok := adapterclient.As(cause); ok {
		message = refused.Reason()
	}
	if len(message) > maxError {
		message = strings.ToValidUTF8(message[:maxError], "") // the cut may lie within a character
	}
	tag, err := r.db.Worker().Exec(ctx, `UPDATE adapter SET last_error = $3
		WHERE id = $1 AND feed_holder = $2 AND url = $4
		AND authority = $5`, s.ID, r.worker, message, s.URL, s.Authority)
	if err != nil || tag.RowsAffected() > 0 {
		return false
	}
	return errors.Is(r.lost(ctx, s), errLost)
}

// lost gives the lease up; the next scan takes it again if it is free, with the adapter's new address.
func (r *Reader) lost(ctx context.Context, s *source) error {
	_, err := r.db.Worker().Exec(ctx, `UPDATE adapter SET feed_holder = NULL WHERE id = $1 AND feed_holder = $2`, s.ID,
		r.worker)
	return errors.Join(errLost, err)
}
