package dataset

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Open is how many operations have not ended.
func (s *Set) Open(ctx context.Context) (open int, err error) {
	if err := s.Admin.QueryRow(ctx, `SELECT count(*) FROM operation WHERE ended_at IS NULL`).Scan(&open); err != nil {
		return 0, fmt.Errorf("count open operations: %w", err)
	}
	return open, nil
}

// Failed says why one of the operations made in this run failed; nil when none did.
func (s *Set) Failed(ctx context.Context) error {
	var failed string
	err := s.Admin.QueryRow(ctx, `SELECT error_code || ': ' || error_message FROM operation WHERE state = 'FAILED' AND `+
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
