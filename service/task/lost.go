package task

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// lost returns CURSOR_EXPIRED in place of NOT_FOUND for a task whose id is older than the database's present
// generation: a restore or a promotion lost the writes that created it. It does so for every such id that the
// caller cannot see, whether the task exists or not.
func lost(ctx context.Context, t *tx.Tx, id ids.ID, missing error) error {
	if !fault.Is(missing, fault.NotFound) {
		return missing
	}
	var began *time.Time
	if err := t.QueryRow(ctx, `SELECT platform.began()`).Scan(&began); err != nil {
		return fmt.Errorf("read when the database's generation began: %w", err)
	}
	if began == nil || !id.MintedAt().Before(*began) {
		return missing
	}
	return fault.New(fault.CursorExpired,
		"the database lacks task %s, after a restore or failover: do not run it, and forget it", id)
}
