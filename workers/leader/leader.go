// Package leader lets one of several processes do what only one may: the one that holds an advisory lock of PostgreSQL,
// which ends with its connection. Another takes over within five seconds of its end.
package leader

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/gpuaas/app-platform/internal/panics"
)

const (
	every        = 5 * time.Second  // between tries to take the lock, and looks whether its connection lives
	unlockWithin = 10 * time.Second // giving it back
)

// Post is what one process at a time does.
type Post struct {
	// Pool is whose connection holds the lock.
	Pool *pgxpool.Pool
	// Lock is the advisory lock's key, of this post alone.
	Lock int64
	Log  *slog.Logger
	// Stopped is logged when the work ended with an error and begins again.
	Stopped string
	// Work is done while the lock is held; its context ends with the lock's connection.
	Work func(ctx context.Context) error
}

// Run does the work whenever this process holds the lock, until ctx ends.
func (p Post) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := p.lead(ctx); err != nil && ctx.Err() == nil {
			p.Log.Warn(p.Stopped, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return nil
}

// lead takes the lock if it is free and works while its connection lives.
func (p Post) lead(ctx context.Context) error {
	conn, err := p.Pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	var got bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, p.Lock).Scan(&got); err != nil || !got {
		return err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockWithin)
		defer cancel()
		if _, err := conn.Exec(last, `SELECT pg_advisory_unlock($1)`, p.Lock); err != nil {
			_ = conn.Conn().Close(last) // the lock ends with the connection
		}
	}()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return guard(ctx, conn) })
	group.Go(func() error { return panics.Caught(p.Log, p.Stopped, func() error { return p.Work(ctx) }) })
	return group.Wait()
}

// ping checks the connection, for at most the time between two pings.
func ping(ctx context.Context, conn *pgxpool.Conn) error {
	bounded, cancel := context.WithTimeout(ctx, every)
	defer cancel()
	return conn.Ping(bounded)
}

// guard fails when the lock's connection is lost, which ends the work of this process.
func guard(ctx context.Context, conn *pgxpool.Conn) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := ping(ctx, conn); err != nil && ctx.Err() == nil {
			return fmt.Errorf("the lock's connection is lost: %w", err)
		}
	}
}
