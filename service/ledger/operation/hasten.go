package operation

import (
	"context"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Hastenable reports whether op is an open operation without force that does what a forced request of a kind on some
// members wants: the request then forces op, instead of a CONFLICT with it.
func Hastenable(kind lifecycle.OperationKind, targets []ids.ID, op *db.Operation) bool {
	begun := op.State == lifecycle.OperationPending || op.State == lifecycle.OperationRunning
	return op.Kind == kind && kind.Effects().Forcible && begun && !op.Force && op.ForcedAt == nil &&
		slices.Equal(op.Targets, targets)
}

// Hasten forces a locked open operation from now on. One that its adapter works on is sent to it again, as another
// attempt. It returns the event for the timeline of its instance.
func Hasten(ctx context.Context, t *tx.Tx, op *db.Operation, reason string) (event.Draft, error) {
	err := t.QueryRow(ctx, `UPDATE operation SET forced_at = $2, next_run_at = LEAST(next_run_at, $2),
		dispatch_attempt = dispatch_attempt + CASE WHEN dispatch_attempt > 0
		AND coalesce(adapter_status ->> 'state', '') <> 'succeeded' THEN 1 ELSE 0 END,
		adapter_status = CASE WHEN adapter_status ->> 'state' = 'succeeded' THEN adapter_status END
		WHERE id = $1 RETURNING dispatch_attempt`, op.ID, t.Now).Scan(&op.DispatchAttempt)
	if err != nil {
		return event.Draft{}, fmt.Errorf("hasten %s: %w", op.ID, err)
	}
	op.ForcedAt = &t.Now
	t.Wake(event.OperationTopic(op.ID), event.WordTopic(op.ID), event.QueueTopic)
	return event.Draft{Type: lifecycle.EventOperationProgress, OperationID: op.ID, CorrelationID: op.CorrelationID,
		Message: t.Actor.Name + " continues it with force",
		Payload: map[string]any{"forced": true, "reason": reason}}, nil
}
