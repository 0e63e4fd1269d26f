package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
)

// onceAgain refuses a second retry of an operation while the first one works or has succeeded: two people who retry an
// addition would get twice the members. The locked instance makes retries of its operations take turns.
func onceAgain(ctx context.Context, t *tx.Tx, locked *change.Locked) error {
	if locked.Asked.RetryOf == "" {
		return nil
	}
	var first ids.ID
	var state lifecycle.OperationState
	err := t.QueryRow(ctx, `SELECT id, state FROM operation WHERE instance_id = $1 AND retry_of = $2
		AND state NOT IN ('FAILED', 'CANCELED') ORDER BY id
		LIMIT 1`, locked.Instance.ID, locked.Asked.RetryOf).Scan(&first, &state)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("find retries of %s: %w", locked.Asked.RetryOf, err)
	}
	return fault.New(fault.Conflict,
		"the operation was retried already: %s is %s; follow that one, or retry it once it has failed", first, state).
		At("input.operationId")
}
