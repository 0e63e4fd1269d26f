package health

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// End makes a locked running instance FAILED for good: it cannot come back, and waits for its decommission. It does
// nothing while an operation on it is open.
func End(ctx context.Context, t *tx.Tx, instance *db.Instance, why operation.Failure) error {
	open, err := operation.AllOpen(ctx, t, instance.ID, false)
	if err != nil || len(open) > 0 || instance.Status.CanMove(lifecycle.InstanceFailed) != nil {
		return err
	}
	_, err = t.Exec(ctx, `UPDATE instance SET status = 'FAILED', health = 'UNHEALTHY', health_message = $3, failure_code
		= $2,
		failure_message = $3, failure_owner = $4, failure_retryable = false, updated_at = $5 WHERE id = $1`,
		instance.ID, why.Code, why.Message, why.Owner, t.Now)
	if err != nil {
		return fmt.Errorf("fail instance %s: %w", instance.ID, err)
	}
	instance.Status, instance.Health = lifecycle.InstanceFailed, lifecycle.HealthUnhealthy
	return event.Append(ctx, t, instance, event.Draft{Type: lifecycle.EventInstanceFailed, Message: why.Message,
		Payload: map[string]any{"code": why.Code, "owner": why.Owner, "status": lifecycle.InstanceFailed}})
}
