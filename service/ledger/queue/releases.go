package queue

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// WakeReleases makes the releases of an instance's allocations due, which wait for its end.
func WakeReleases(ctx context.Context, t *tx.Tx, instance ids.ID) error {
	return wakeFound(ctx, t, `SELECT o.id FROM operation o JOIN allocation a ON a.id = o.allocation_id
		WHERE a.instance_id = $1 AND o.kind = 'ALLOCATION_RELEASE' AND o.ended_at IS NULL ORDER BY o.id`, instance)
}

// WakeRelease makes the release of an allocation due, which waits for what lives in it.
func WakeRelease(ctx context.Context, t *tx.Tx, allocation ids.ID) error {
	return wakeFound(ctx, t, `SELECT id FROM operation
		WHERE allocation_id = $1 AND kind = 'ALLOCATION_RELEASE' AND ended_at IS NULL ORDER BY id`, allocation)
}

func wakeFound(ctx context.Context, t *tx.Tx, sql string, of ids.ID) error {
	found, err := t.Query(ctx, sql, of)
	if err != nil {
		return fmt.Errorf("find releases that wait for %s: %w", of, err)
	}
	waiting, err := pgx.CollectRows(found, pgx.RowTo[ids.ID])
	if err != nil {
		return fmt.Errorf("find releases that wait for %s: %w", of, err)
	}
	return Wake(ctx, t, waiting...)
}
