package audit

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

const (
	maxPending = 4_096                  // distinct refusals held between two writes; more are counted as dropped
	flushEvery = 200 * time.Millisecond // how long a refusal waits to be joined by its repeats
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

// Run writes what was taken until ctx ends, and once more then.
func (d *Denials) Run(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	timer := time.NewTimer(flushEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			return d.Flush(last, pool)
		case <-d.wake:
		}
		timer.Reset(flushEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		if err := d.Flush(ctx, pool); err != nil && ctx.Err() == nil {
			log.Error("refusals could not be written to the audit", "error", err)
		}
	}
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
	if err != nil {
		d.putBack(taken)
	}
	return err
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
		false, c.ObjectID, nil, nil, c.Reason, c.Code, c.repeats, c.Request.CorrelationID, c.Request.Origin, c.At)
}
