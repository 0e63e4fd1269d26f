package dataset

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Open is how many operations have not ended.
func (s *Set) Open(ctx context.Context) (open int, err error) {
	if err := s.Admin.QueryRow(ctx, `SELECT count(*) FROM operation WHERE ended_at IS NULL`).Scan(&open); err != nil {
		return 0, fmt.Errorf("count open operations: %w", err)
	}
	return open, nil
}

// Failed returns the error of one of this run's operations that failed; nil when none did.
func (s *Set) Failed(ctx context.Context) error {
	var failed string
	err := s.Admin.QueryRow(ctx, `SELECT error_code || ': ' || error_message FROM operation WHERE state = 'FAILED'
		AND `+
		youngerThan("op")+` LIMIT 1`).Scan(&failed)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return errors.Join(fmt.Errorf("an operation failed: %s", failed), err)
}

// Written is what the server has written since it began to count.
type Written struct{ Commits, Bytes int64 }

// Written answers the server's own count of commits that wrote, and of write-ahead log.
func (s *Set) Written(ctx context.Context) (w Written, err error) {
	err = s.Admin.QueryRow(ctx, `SELECT (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint),
		pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint`).Scan(&w.Commits, &w.Bytes)
	if err != nil {
		return w, fmt.Errorf("read the server's counters: %w", err)
	}
	return w, nil
}

// Held is how many operations a worker holds.
func (s *Set) Held(ctx context.Context) (held int, err error) {
	if err := s.Admin.QueryRow(ctx,
		`SELECT count(*) FROM operation WHERE claimed_by IS NOT NULL`).Scan(&held); err != nil {
		return 0, fmt.Errorf("count claimed operations: %w", err)
	}
	return held, nil
}

// WorkerConnections is how many connections the workers' login role has.
func (s *Set) WorkerConnections(ctx context.Context) (n int, err error) {
	err = s.Admin.QueryRow(ctx,
		`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND application_name = 'app-platform app_worker'`).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count connections: %w", err)
	}
	return n, nil
}

// deadName is an adapter that does not answer.
const deadName = "bench-dead"

// OnDead has operations wait for an adapter at an address that does not answer.
func (s *Set) OnDead(ctx context.Context, address string, operations []ids.ID) error {
	_, err := s.Admin.Exec(ctx, `WITH dead AS (INSERT INTO adapter (id, name, url, created_at)
		VALUES ($1, $1, $2, now())
			ON CONFLICT (name) DO UPDATE SET url = excluded.url, feed_epoch = '', feed_cursor = '', feed_holder = NULL),
		led AS (UPDATE instance i SET runtime_backend = $1 FROM operation o WHERE o.id = ANY ($3) AND i.id = o.instance_id)
		UPDATE operation SET adapter_name = $1 WHERE id = ANY ($3)`, deadName, address, operations)
	if err != nil {
		return fmt.Errorf("place operations on a dead adapter: %w", err)
	}
	return nil
}

// DeadIsBusy reports whether a worker says that operations wait for that adapter.
func (s *Set) DeadIsBusy(ctx context.Context) (busy bool, err error) {
	if err := s.Admin.QueryRow(ctx, `SELECT platform.adapter_busy($1)`, deadName).Scan(&busy); err != nil {
		return false, fmt.Errorf("read whether an adapter is busy: %w", err)
	}
	return busy, nil
}

// Forget deletes operations that will not end, and the adapter that does not answer.
func (s *Set) Forget(ctx context.Context, operations []ids.ID) error {
	err := pgx.BeginFunc(ctx, s.Admin, func(t pgx.Tx) error {
		if _, err := t.Exec(ctx, `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		_, err := t.Exec(ctx, `WITH gone AS (DELETE FROM operation WHERE id = ANY ($1)) DELETE FROM adapter
			WHERE name = $2`,
			operations, deadName)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete operations: %w", err)
	}
	return nil
}

// Wake notifies the workers that the queue has something new, as accepting an operation does.
func (s *Set) Wake(ctx context.Context) error {
	if _, err := s.Admin.Exec(ctx, `SELECT pg_notify('app_platform_wake', 'bench|' || $1)`,
		event.QueueTopic); err != nil {
		return fmt.Errorf("wake the workers: %w", err)
	}
	return nil
}

// Ended waits until an operation has ended and returns how long that took from its acceptance on.
func (s *Set) Ended(ctx context.Context, operation ids.ID, patience time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		var seconds *float64
		err := s.Admin.QueryRow(ctx, `SELECT extract(epoch FROM ended_at - created_at)::float8 FROM operation
			WHERE id = $1`,
			operation).Scan(&seconds)
		if err != nil {
			return 0, fmt.Errorf("wait for %s: %w", operation, err)
		}
		if seconds != nil {
			return time.Duration(*seconds * float64(time.Second)), nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("operation %s has not ended: %w", operation, ctx.Err())
		case <-look.C:
		}
	}
}
