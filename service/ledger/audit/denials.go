package audit

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

const (
	maxPending = 4_096                  // distinct refusals held between two writes; more are counted as dropped
	flushEvery = 200 * time.Millisecond // how long a refusal waits to be joined by its repeats
	retryAfter = 2 * time.Second        // the pause after a write that failed
	lastTry    = 5 * time.Second        // how long the last write at the end may take
)

// Denials writes refusals in batches, apart from the transactions they ended. The same refusal
// repeated while a batch is open is one row with a count, so that a flood costs one row a batch.
type Denials struct {
	mu      sync.Mutex
	pending map[same]*counted
	dropped int
	wake    chan struct{}
}

// same is what makes two refusals one row.
type same struct{ actor, action, key, object, code, origin string }

type counted struct {
	tx.Denial
	repeats int
}

// NewDenials makes a writer; refusals are held until Run writes them.
func NewDenials() *Denials {
	return &Denials{pending: make(map[same]*counted), wake: make(chan struct{}, 1)}
}

// Denied takes a refusal; it never blocks and never touches the database.
func (d *Denials) Denied(denial tx.Denial) {
	key := same{action: denial.Action, key: denial.Key, object: denial.ObjectID, code: denial.Code, origin: denial.Request.Origin}
	if denial.Actor != nil {
		key.actor = string(denial.Actor.ID)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch known, ok := d.pending[key]; {
	case ok:
		known.repeats++
	case len(d.pending) >= maxPending:
		d.dropped++
	default:
		d.pending[key] = &counted{Denial: denial, repeats: 1}
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run writes what was taken until ctx ends, and once more then. What could not be written is tried
// again, whether or not more comes.
func (d *Denials) Run(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	pause := time.NewTimer(flushEvery)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return d.last(ctx, pool)
		case <-d.wake:
		}
		pause.Reset(flushEvery)
		for failed := true; failed; {
			select {
			case <-ctx.Done():
				return d.last(ctx, pool)
			case <-pause.C:
			}
			err := d.Flush(ctx, pool)
			if failed = err != nil; failed && ctx.Err() == nil {
				log.Error("refusals could not be written to the audit; they are tried again", "error", err)
			}
			pause.Reset(retryAfter)
		}
	}
}

// last writes what is left when ctx has ended.
func (d *Denials) last(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTry)
	defer cancel()
	return d.Flush(ctx, pool)
}

// Flush writes what is pending now; on failure it is kept for the next time.
func (d *Denials) Flush(ctx context.Context, pool *pgxpool.Pool) error {
	d.mu.Lock()
	taken, dropped := d.pending, d.dropped
	d.pending, d.dropped = make(map[same]*counted), 0
	d.mu.Unlock()
	if dropped > 0 {
		slog.Warn("refusals were not recorded one by one", "count", dropped)
	}
	if len(taken) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	for _, denial := range taken {
		denial.queue(batch)
	}
	err := pool.SendBatch(ctx, batch).Close()
	var refused *pgconn.PgError
	if errors.As(err, &refused) && len(refused.Code) == 5 && refused.Code[:2] == "22" {
		return d.oneByOne(ctx, pool, taken)
	}
	if err != nil {
		d.putBack(taken)
	}
	return err
}

// oneByOne writes a batch of which PostgreSQL takes one for malformed, so that this one does not
// hold up the others for ever: it alone is lost, and logged.
func (d *Denials) oneByOne(ctx context.Context, pool *pgxpool.Pool, taken map[same]*counted) error {
	for key, denial := range taken {
		batch := &pgx.Batch{}
		denial.queue(batch)
		err := pool.SendBatch(ctx, batch).Close()
		var refused *pgconn.PgError
		if err != nil && !errors.As(err, &refused) {
			d.putBack(taken)
			return err
		}
		if err != nil {
			slog.Error("a refusal cannot be written to the audit", "error", err, "action", denial.Action, "code", denial.Code)
		}
		delete(taken, key)
	}
	return nil
}

func (d *Denials) putBack(taken map[same]*counted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, denial := range taken {
		if known, ok := d.pending[key]; ok {
			known.repeats += denial.repeats
		} else if len(d.pending) < maxPending {
			d.pending[key] = denial
		} else {
			d.dropped += denial.repeats
		}
	}
}

func (c *counted) queue(batch *pgx.Batch) {
	kind, id, name := "ANONYMOUS", ids.ID(""), ""
	if c.Actor != nil {
		kind, id, name = string(c.Actor.Kind), c.Actor.ID, c.Actor.Name
	}
	batch.Queue(insert, ids.New(ids.Audit), c.TenantID, c.Project, kind, id, name, c.Key, c.Action,
		false, c.ObjectID, nil, nil, c.Reason, c.Code, c.repeats, c.Request.CorrelationID, c.Request.Origin, c.At, false)
}
