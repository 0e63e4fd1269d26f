// Package lease keeps the lease of a worker process: its heartbeat row, by the database's clock. A process whose
// heartbeat is old has lost its claims, and any other one makes them due again.
package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

// The lease of a worker process, by the database's clock. A killed worker's operations are due
// again after at most deadAfter and janitorEvery together.
const (
	heartbeatEvery = 3 * time.Second
	deadAfter      = 10 * time.Second
	janitorEvery   = 2 * time.Second
	forgetAfter    = 10 * time.Minute // dead rows are kept that long, to be looked at
	beatTimeout    = 2 * time.Second
	// stalledAfter is how long the engine's loop may take to claim before the heartbeat stops. With it the operations
	// of a process that hangs are due again within 15 s.
	stalledAfter = 2500 * time.Millisecond
	// steady is how many beats in a row a process must have stored before it frees the claims of others: after an
	// outage of the database every heartbeat is old, and living workers need the time of a beat to show that they are.
	steady = 2
)

// Process is this process's row among the workers: its heartbeat is the lease of everything it has
// claimed, operations and adapters' feeds alike. Make it with New.
type Process struct {
	// Metrics counts; nil counts nothing. It is set before Run.
	Metrics *metrics.Set

	id   ids.ID
	db   *tx.DB
	log  *slog.Logger
	host string
	// kinds and plans are what the engine begins and carries on.
	kinds, plans []string
	// busy are the adapters that operations wait for here; nil for none.
	busy func() []string
	// since is when the process began, and claiming when the engine began the claim that has not succeeded yet, in
	// nanoseconds since then; 0 when none is under way.
	since    time.Time
	claiming atomic.Int64
	// beats counts the heartbeats since the last one that failed; Run's own.
	beats int
}

// New names this process; Register makes it known.
func New(db *tx.DB, log *slog.Logger) *Process {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &Process{id: ids.New(ids.Worker), since: time.Now(), db: db, log: log,
		host: fmt.Sprintf("%s/%d", host, os.Getpid())}
}

// ID is the process's id.
func (p *Process) ID() ids.ID { return p.id }

// Announce sets the kinds of operation that the process begins and the step plans that it carries on. The heartbeat
// stores them; call it before Register.
func (p *Process) Announce(kinds, plans []string) { p.kinds, p.plans = kinds, plans }

// Report sets what returns the adapters that operations of this process wait for. The heartbeat stores them.
func (p *Process) Report(busy func() []string) { p.busy = busy }

// Register makes the process known; it must be called before anything is claimed.
func (p *Process) Register(ctx context.Context) error {
	if err := p.beat(ctx); err != nil {
		return fmt.Errorf("register the worker: %w", err)
	}
	return nil
}

// Run beats and looks after dead workers until ctx ends.
func (p *Process) Run(ctx context.Context) error {
	beat, janitor := time.NewTicker(heartbeatEvery), time.NewTicker(janitorEvery)
	defer beat.Stop()
	defer janitor.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
			if err = p.beatUnlessStalled(ctx); err == nil {
				p.kept()
			}
		case <-janitor.C:
			if p.steadied() {
				err = p.bury(ctx)
			}
		}
		if err != nil && ctx.Err() == nil {
			p.missed()
			p.Metrics.LeaseMissed()
			p.log.Warn("the worker's lease could not be kept", "error", err)
		}
	}
}

// Deregister deletes the process's row: what it still holds may be claimed by any other.
func (p *Process) Deregister(ctx context.Context) error {
	_, err := p.pool().Exec(ctx, `DELETE FROM worker_process WHERE id = $1`, p.id)
	if err != nil {
		return fmt.Errorf("deregister the worker: %w", err)
	}
	return nil
}

func (p *Process) pool() *pgxpool.Pool { return p.db.Lease() }

// kept, missed and steadied count the heartbeats in a row; steadied reports whether they suffice to bury others.
func (p *Process) kept()          { p.beats++ }
func (p *Process) missed()        { p.beats = 0 }
func (p *Process) steadied() bool { return p.beats >= steady }

// errStalled keeps the lease from being kept: what this process holds is for others.
var errStalled = errors.New("the engine's loop has not been able to claim for too long")

// beatUnlessStalled beats, unless the engine's loop hangs. A process that can neither claim nor release must not keep
// its claims by a heartbeat that has a connection of its own.
func (p *Process) beatUnlessStalled(ctx context.Context) error {
	if began := p.claiming.Load(); began != 0 && time.Since(p.since)-time.Duration(began) > stalledAfter {
		return errStalled
	}
	return p.beat(ctx)
}

// BeginClaim notes that the loop claims; a claim that failed goes on counting.
func (p *Process) BeginClaim() { p.claiming.CompareAndSwap(0, max(1, int64(time.Since(p.since)))) }

// EndClaim notes that a claim succeeded.
func (p *Process) EndClaim() { p.claiming.Store(0) }

func (p *Process) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	var busy []string
	if p.busy != nil {
		busy = p.busy()
	}
	_, err := p.pool().Exec(ctx, `INSERT INTO worker_process (id, host, kinds, plans, busy_adapters, heartbeat_at,
		created_at)
		VALUES ($1, $2, $3, $4, $5, now(), now())
		ON CONFLICT (id) DO UPDATE SET heartbeat_at = now(), kinds = excluded.kinds, plans = excluded.plans,
			busy_adapters = excluded.busy_adapters`, p.id, p.host, p.kinds, p.plans, busy)
	return err
}

// bury makes the operations of dead workers due again and forgets those long dead.
func (p *Process) bury(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	released, err := queue.ReleaseDead(ctx, p.pool(), deadAfter)
	if err != nil {
		return err
	}
	if released > 0 {
		p.Metrics.LeasesTaken(released)
		p.log.Warn("took over the operations of a dead worker", "operations", released)
		p.db.Wake(event.QueueTopic)
	}
	_, err = p.pool().Exec(ctx, `DELETE FROM worker_process WHERE heartbeat_at < now() - $1::interval`, forgetAfter)
	return err
}
