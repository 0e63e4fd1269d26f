package task

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Cancel asks the agent to stop a task; the agent still reports how it ended. A task that has ended, or
// whose end is already requested, is returned as it is. It requires task.run on the task's instance.
// Faults: NOT_FOUND, FORBIDDEN.
func (s *Service) Cancel(ctx context.Context, id ids.ID) (*db.NodeTask, error) {
	var out *db.NodeTask
	err := s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		row, err := lock(ctx, t, "cancelNodeTask", authz.TaskRun, id)
		out = row
		if err != nil || row.State.Terminal() || row.CancelRequested {
			return err
		}
		if err := requestCancel(ctx, t, row); err != nil {
			return err
		}
		return audit.Write(ctx, t, audit.Entry{
			Action: "cancelNodeTask", Key: authz.TaskRun, Object: object(row), ObjectID: row.ID,
			Before: map[string]any{"state": row.State}, After: map[string]any{"cancelRequested": true},
		})
	})
	return out, err
}

// requestCancel asks the agent to stop a task that has not ended.
func requestCancel(ctx context.Context, t *tx.Tx, row *db.NodeTask) error {
	_, err := t.Exec(ctx, `UPDATE node_task SET cancel_requested = true WHERE id = $1 AND ended_at IS NULL`, row.ID)
	if err != nil {
		return fmt.Errorf("cancel node task %s: %w", row.ID, err)
	}
	row.CancelRequested = true
	t.Wake(event.NodeTopic(row.NodeID), event.TaskTopic(row.ID))
	return nil
}
