package task

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/nodetask"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// bound refuses a task that refers to secrets which the member's node cannot take delivery of. A spent secret passes:
// a repeat must still be the same task, and the node reports how that went.
func bound(ctx context.Context, t *tx.Tx, member *db.Member, refs []nodetask.SecretRef) error {
	if len(refs) == 0 {
		return nil
	}
	wanted := make([]ids.ID, len(refs))
	for i, ref := range refs {
		wanted[i] = ref.ID
	}
	rows, err := t.Query(ctx, `SELECT id FROM runtime_secret WHERE id = ANY ($1) AND member_id = $2 AND node_id = $3`,
		wanted, member.ID, member.NodeID)
	if err != nil {
		return fmt.Errorf("find the task's secrets: %w", err)
	}
	known, err := pgx.CollectRows(rows, pgx.RowTo[ids.ID])
	if err != nil {
		return fmt.Errorf("find the task's secrets: %w", err)
	}
	var reasons []fault.Reason
	for _, ref := range refs {
		if !slices.Contains(known, ref.ID) {
			reasons = append(reasons, fault.Reason{Code: fault.BadValue,
				Message: "the member's node has no such secret", Path: "input." + ref.Path})
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return fault.New(fault.InvalidArgument,
		"the task refers to secrets that are not bound to the member's node").With(reasons...)
}
