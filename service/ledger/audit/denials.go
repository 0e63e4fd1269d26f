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

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

const (
	maxPending = 4_096                  // distinct refusals held between two writes; more are folded into summaries
	maxFolded  = 1_024                  // summaries held between two writes; more are one summary of the platform's
	flushEvery = 200 * time.Millisecond // how long a refusal waits to be joined by its repeats
	retryAfter = 2 * time.Second        // the pause after a write that failed
	lastTry    = 5 * time.Second        // how long the last write at the end may take
)

// Denials writes refusals in batches, apart from the transactions they ended. The same refusal
// repeated while a batch is open is one row with a count, so that a flood costs one row a batch.
//
// No caller crowds out another: once the batch is full, a caller that holds less than its fair share of it gets a
// place, and a refusal of a caller that holds more is folded into a row that counts such refusals without their
// objects.
type Denials struct {
	mu      sync.Mutex
	pending map[same]*counted
	holders map[string]map[same]bool // whose the pending ones are
	folded  map[same]*counted
	wake    chan struct{}
}

// same is what makes two refusals one row.
type same struct{ actor, action, key, object, code, origin, tenant, project string }

// holder returns whose refusals count together: the actor's, or those of one address where no actor is known.
func (s same) holder() string {
	if s.actor != "" {
		return s.actor
	}
	return s.origin
}

type counted struct {
	tx.Denial
	repeats int
	folded  bool // stands for several objects
}

// NewDenials makes a writer; refusals are held until Run writes them.
func NewDenials() *Denials {
	d := &Denials{wake: make(chan struct{}, 1)}
	d.clear()
	return d
}

func (d *Denials) clear() {
	d.pending, d.holders, d.folded = make(map[same]*counted), make(map[string]map[same]bool), make(map[same]*counted)
}

// Denied takes a refusal; it never blocks and never touches the database.
func (d *Denials) Denied(denial tx.Denial) {
	key := same{
		action: denial.Action, key: denial.Key, object: denial.ObjectID, code: denial.Code,
		origin: denial.Request.Origin,
		tenant: string(denial.TenantID), project: string(denial.Project),
	}
	if denial.Actor != nil {
		key.actor = string(denial.Actor.ID)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.take(key, &counted{Denial: denial, repeats: 1})
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// take counts a refusal with those that are the same, gives it a place, or folds it.
func (d *Denials) take(key same, denial *counted) {
	if denial.folded {
		d.fold(key, denial)
		return
	}
	if known, ok := d.pending[key]; ok {
		known.repeats += denial.repeats
		return
	}
	if len(d.pending) >= maxPending && !d.makePlace(key.holder()) {
		d.fold(key, denial)
		return
	}
	d.pending[key] = denial
	if d.holders[key.holder()] == nil {
		d.holders[key.holder()] = make(map[same]bool)
	}
	d.holders[key.holder()][key] = true
}

// makePlace folds one refusal of a caller that holds more than a fair share of the places, and reports whether it found
// one: not for a caller that itself holds its share.
func (d *Denials) makePlace(newcomer string) bool {
	callers := len(d.holders)
	if d.holders[newcomer] == nil {
		callers++
	}
	share := maxPending / callers
	if len(d.holders[newcomer]) >= share {
		return false
	}
	for _, held := range d.holders {
		if len(held) <= share {
			continue
		}
		for key := range held {
			d.fold(key, d.pending[key])
			delete(held, key)
			delete(d.pending, key)
			return true
		}
	}
	return false
}

// fold counts a refusal without its object and address; where there are too many callers, without the caller too.
func (d *Denials) fold(key same, denial *counted) {
	key.object, key.origin = "", ""
	if _, known := d.folded[key]; !known && len(d.folded) >= maxFolded {
		key = same{}
		denial.Denial = tx.Denial{Actor: authz.System("audit"), Action: manyRefusals, Code: manyRefusals,
			Request: denial.Request, At: denial.At}
	}
	known := d.folded[key]
	if known == nil {
		known = &counted{Denial: denial.Denial, folded: true}
		known.ObjectID, known.Reason, known.Request = "", "", authz.RequestInfo{
			CorrelationID: denial.Request.CorrelationID, TraceID: denial.Request.TraceID}
		known.Instance, known.AppSlug = "", ""
		d.folded[key] = known
	}
	known.repeats += denial.repeats
}

// manyRefusals names the row that counts refusals of more callers than have summaries of their own.
const manyRefusals = "REFUSALS"

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
	taken := d.pending
	for key, summary := range d.folded {
		key.object = "*" // beside a refusal that has no object
		taken[key] = summary
	}
	d.clear()
	d.mu.Unlock()
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
			slog.Error("a refusal cannot be written to the audit", "error", err, "action", denial.Action, "code",
				denial.Code)
		}
		delete(taken, key)
	}
	return nil
}

func (d *Denials) putBack(taken map[same]*counted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, denial := range taken {
		d.take(key, denial)
	}
}

// severalObjects is the document of a row that counts refusals without their objects.
var severalObjects = []byte(`{"summary": true}`)

func (c *counted) queue(batch *pgx.Batch) {
	kind, id, name := "ANONYMOUS", ids.ID(""), ""
	if c.Actor != nil {
		kind, id, name = string(c.Actor.Kind), c.Actor.ID, c.Actor.Name
	}
	var after []byte
	if c.Actor != nil {
		after, _ = document(onBehalf(c.Actor.For, nil)) // texts alone: they can be encoded
	}
	if c.folded {
		after = severalObjects
	}
	batch.Queue(insert, ids.New(ids.Audit), c.TenantID, c.Project, kind, id, name, c.Key, c.Action,
		false, c.ObjectID, nil, after, c.Reason, c.Code, c.repeats, c.Request.CorrelationID, c.Request.Origin,
		c.At, false,
		c.Request.TraceID, c.Instance, c.AppSlug)
}
