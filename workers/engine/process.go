package engine

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/domain/ids"
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
)

// Process is this process's row among the workers: its heartbeat is the lease of everything it has
// claimed, operations and adapters' feeds alike.
type Process struct {
	id   ids.ID
	db   *tx.DB
	log  *slog.Logger
	host string
}

// NewProcess names this process; Register makes it known.
func NewProcess(db *tx.DB, log *slog.Logger) *Process {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &Process{id: ids.New(ids.Worker), db: db, log: log, host: fmt.Sprintf("%s/%d", host, os.Getpid())}
}

// ID is the process's id.
func (p *Process) ID() ids.ID { return p.id }

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
			err = p.beat(ctx)
		case <-janitor.C:
			err = p.bury(ctx)
		}
		if err != nil && ctx.Err() == nil {
			p.log.Warn("the worker's lease could not be kept", "error", err)
		}
	}
}

// Deregister takes the process's row away: whatever it still holds is anybody's.
func (p *Process) Deregister(ctx context.Context) error {
	_, err := p.pool().Exec(ctx, `DELETE FROM worker_process WHERE id = $1`, p.id)
	if err != nil {
		return fmt.Errorf("deregister the worker: %w", err)
	}
	return nil
}

func (p *Process) pool() *pgxpool.Pool { return p.db.Lease() }

func (p *Process) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	_, err := p.pool().Exec(ctx, `INSERT INTO worker_process (id, host, heartbeat_at, created_at) VALUES ($1, $2, now(), now())
		ON CONFLICT (id) DO UPDATE SET heartbeat_at = now()`, p.id, p.host)
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
		p.log.Warn("took over the operations of a dead worker", "operations", released)
		p.db.Wake(event.QueueTopic)
	}
	_, err = p.pool().Exec(ctx, `DELETE FROM worker_process WHERE heartbeat_at < now() - $1::interval`, forgetAfter)
	return err
}
