package operation

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/event"
)

// Superseded is the error code of an operation that another one took the place of.
const Superseded = "SUPERSEDED"

// Teardown accepts the decommissioning of a locked instance that still has something to tear down:
// by its own verb, or because an allocation it uses is released. An open launch is superseded; any
// other open operation is a CONFLICT that names it. The draft gives id, deadline and reason.
func Teardown(ctx context.Context, t *tx.Tx, row *db.Instance, draft Draft) (*db.Operation, error) {
	open, err := Open(ctx, t, row.ID)
	if err != nil {
		return nil, err
	}
	var events []event.Draft
	if open != nil {
		if open.Kind != lifecycle.InstanceCreate {
			return nil, InTheWay(open)
		}
		if err := Supersede(ctx, t, open, string(draft.ID)); err != nil {
			return nil, err
		}
		events = append(events, event.Draft{Type: lifecycle.EventOperationCanceled, OperationID: open.ID,
			Message: "superseded by a decommission", Payload: map[string]any{"by": draft.ID}})
	}
	if err := stop(ctx, t, row); err != nil {
		return nil, err
	}
	draft.Kind, draft.TenantID, draft.ProjectID, draft.Instance = lifecycle.InstanceDecommission, row.TenantID, row.ProjectID, row
	draft.AdapterName, draft.CorrelationID = row.RuntimeBackend, t.Request.CorrelationID
	change := map[string]any{}
	if open != nil {
		change["supersedes"] = open.ID
	}
	draft.DesiredChange = change
	op, err := Create(ctx, t, draft)
	if err != nil {
		return nil, err
	}
	events = append(events,
		event.Draft{Type: lifecycle.EventInstanceDeleting, OperationID: op.ID, Message: "decommission requested", CorrelationID: op.CorrelationID,
			Payload: map[string]any{"reason": draft.Reason}},
		event.Draft{Type: lifecycle.EventOperationAccepted, OperationID: op.ID, Message: "decommission accepted", CorrelationID: op.CorrelationID,
			Payload: map[string]any{"kind": op.Kind, "deadline": op.Deadline}})
	return op, event.Append(ctx, t, row, events...)
}

// stop moves the instance to STOPPING, unless it is there already or lost for service.
func stop(ctx context.Context, t *tx.Tx, row *db.Instance) error {
	if row.Status == lifecycle.InstanceStopping || row.Status == lifecycle.InstanceFailed {
		return nil
	}
	if err := row.Status.CanMove(lifecycle.InstanceStopping); err != nil {
		return err
	}
	if _, err := t.Exec(ctx, `UPDATE instance SET status = $2 WHERE id = $1`, row.ID, lifecycle.InstanceStopping); err != nil {
		return fmt.Errorf("stop instance %s: %w", row.ID, err)
	}
	row.Status = lifecycle.InstanceStopping
	return nil
}

// Supersede ends an open operation because another one takes its place: it is CANCELED with code
// SUPERSEDED, loses its worker's claim, and its open steps are skipped.
func Supersede(ctx context.Context, t *tx.Tx, op *db.Operation, by string) error {
	if op.State == lifecycle.OperationRunning {
		if _, err := t.Exec(ctx, `UPDATE operation SET state = $2 WHERE id = $1`, op.ID, lifecycle.OperationCanceling); err != nil {
			return fmt.Errorf("supersede %s: %w", op.ID, err)
		}
	}
	_, err := t.Exec(ctx, `UPDATE operation SET state = $2, ended_at = $3, claimed_by = NULL, claim_epoch = claim_epoch + 1,
		error_code = $4, error_message = $5, error_owner = 'user', message = $5 WHERE id = $1`,
		op.ID, lifecycle.OperationCanceled, t.Now, Superseded, "superseded by operation "+by)
	if err != nil {
		return fmt.Errorf("supersede %s: %w", op.ID, err)
	}
	_, err = t.Exec(ctx, `UPDATE operation_step SET state = $2, ended_at = $3 WHERE operation_id = $1 AND state IN ('PENDING', 'RUNNING')`,
		op.ID, lifecycle.StepSkipped, t.Now)
	if err != nil {
		return fmt.Errorf("supersede %s: %w", op.ID, err)
	}
	t.Wake(event.OperationTopic(op.ID))
	return nil
}
