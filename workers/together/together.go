// Package together writes for several operations in one transaction what each would write in one of its own: one
// commit, and one wait for the disk, serves all of them.
//
// A transaction for several never waits for a lock: an operation whose rows another transaction has locked is left out
// and writes alone, so that none waits for the lock of another. When the transaction fails each of them writes alone,
// so that the error of one does not reach the others.
package together

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/gather"
	"github.com/gpuaas/app-platform/internal/panics"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

const (
	// most is how many operations one transaction writes for: none of their instances stays locked for long.
	most = 16
	// atOnce is how many such transactions are under way: while one waits for the disk the next is on its way there,
	// and what comes meanwhile is joined.
	atOnce = 2
	// within bounds a transaction on this side of the connection: a database host that vanishes answers nothing, not
	// even its own time-outs.
	within = 20 * time.Second
)

// Job is what one operation writes. Write must queue what it writes and use nothing of the transaction but Now and
// Wake, and it may be run again.
type Job struct {
	// Held is the claim that fences it.
	Held *queue.Held
	// Reads queues what goes out with the locks, and after them.
	Reads func(*pgx.Batch)
	// Write gets the locked instance, nil when the operation has none.
	Write func(ctx context.Context, t *tx.Tx, instance *db.Instance, writes *pgx.Batch) error
}

// Writer writes for the operations of one process. Make it with New.
type Writer struct {
	db    *tx.DB
	actor *authz.Actor
	log   *slog.Logger

	group *gather.Group[*entry]
}

// entry is a job in the queue.
type entry struct {
	Job
	ctx    context.Context //nolint:containedctx // of the caller, which waits
	done   chan error
	result error
}

// errAlone reports that a job was not written and is to be written by itself.
var errAlone = errors.New("it is written alone")

// New makes a writer as an actor of the platform.
func New(database *tx.DB, actor *authz.Actor, log *slog.Logger) *Writer {
	w := &Writer{db: database, actor: actor, log: log}
	w.group = gather.New(most, atOnce, w.serve, nil)
	return w
}

// Do writes a job, together with those that come while others are written. ErrFenced: the claim has ended.
func (w *Writer) Do(ctx context.Context, job Job) error {
	one := &entry{Job: job, ctx: ctx, done: make(chan error, 1)}
	w.group.Add(one)
	// A stop does not end this wait: the leader uses the caller's job until it has answered, which is bounded.
	if err := <-one.done; !errors.Is(err, errAlone) {
		return err
	}
	return w.Alone(ctx, job)
}

// serve writes a group and answers each caller.
func (w *Writer) serve(group []*entry) {
	err := panics.Caught(w.log, "what operations write together", func() error { return w.write(group) })
	for _, one := range group {
		one.answer(err)
	}
}

// answer returns to the caller what became of its job, in a transaction that came to err.
func (e *entry) answer(err error) {
	switch {
	case e.result != nil:
		err = e.result
	case err != nil && e.ctx.Err() == nil && !tx.Away(err) && !errors.Is(err, context.DeadlineExceeded):
		err = errAlone
	}
	e.done <- err
}

// write writes a group in one transaction, but for those whose rows are locked or whose claim has ended.
func (w *Writer) write(group []*entry) error {
	ctx, cancel := context.WithTimeout(group[0].ctx, within)
	defer cancel()
	locks := make([]*queue.Locking, len(group))
	return w.db.AsPipelined(ctx, w.actor, func(batch *pgx.Batch) {
		for i, one := range group {
			locks[i] = one.Held.QueueLockNow(batch)
			one.Reads(batch)
		}
	}, func(ctx context.Context, t *tx.Tx, writes *pgx.Batch) error {
		for i, one := range group {
			own := &pgx.Batch{}
			if one.result = one.queue(ctx, t, w.log, locks[i], own); one.result == nil {
				writes.QueuedQueries = append(writes.QueuedQueries, own.QueuedQueries...)
			}
		}
		return nil
	})
}

// queue queues what a job writes, once its rows are locked.
func (e *entry) queue(ctx context.Context, t *tx.Tx, log *slog.Logger, locking *queue.Locking,
	writes *pgx.Batch) error {
	instance, err := locking.Done()
	if err != nil || instance == nil && e.Held.InstanceID != nil {
		return errAlone // which tells a lock from a claim that is gone
	}
	return panics.Caught(log, "what an operation writes", func() error { return e.Write(ctx, t, instance, writes) })
}

// Alone writes a job in a transaction of its own, which waits for its locks. Write may use all of the transaction.
func (w *Writer) Alone(ctx context.Context, job Job) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var locking *queue.Locking
	return w.db.AsPipelined(ctx, w.actor, func(batch *pgx.Batch) {
		locking = job.Held.QueueLock(batch)
		job.Reads(batch)
	}, func(ctx context.Context, t *tx.Tx, writes *pgx.Batch) error {
		instance, err := locking.Done()
		if err != nil {
			return err
		}
		return job.Write(ctx, t, instance, writes)
	})
}
