package operation

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Ended returns an operation that has ended, for a worker; nil for one that has not ended or does not exist.
func Ended(ctx context.Context, pool *pgxpool.Pool, id ids.ID) (*db.Operation, error) {
	found, err := pool.Query(ctx, `SELECT `+rows.OperationColumns+
		` FROM operation WHERE id = $1 AND ended_at IS NOT NULL`, id)
	if err != nil {
		return nil, fmt.Errorf("read operation %s: %w", id, err)
	}
	op, err := pgx.CollectExactlyOneRow(found, rows.Operation)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read operation %s: %w", id, err)
	}
	return op, nil
}
