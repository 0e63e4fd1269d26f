package operation

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Superseded is the error code of an operation that another one took the place of.
const Superseded = "SUPERSEDED"

// Teardown accepts the decommissioning of a locked instance that still has something to tear down:
// by its own verb, or because an allocation it uses is released. Open operations that make way are
// superseded; any other is a CONFLICT that names it. The draft gives id, deadline, reason and force.
func Teardown(ctx context.Context, t *tx.Tx, row *db.Instance, draft Draft) (*db.Operation, error) {
	open, err := AllOpen(ctx, t, row.ID, true)
	if err != nil {
		return nil, err
	}
	inTheWay, superseded := Clash(lifecycle.InstanceDecommission, nil, open)
	if inTheWay != nil {
		return nil, InTheWay(inTheWay)
	}
	events, gone, err := SupersedeAll(ctx, t, superseded, draft.ID, lifecycle.InstanceDecommission)
	if err != nil {
		return nil, err
	}
	if err := Stop(ctx, t, row); err != nil {
		return nil, err
	}
	draft.Kind, draft.TenantID, draft.ProjectID, draft.Instance = lifecycle.InstanceDecommission, row.TenantID,
		row.ProjectID, row
	draft.AdapterName, draft.CorrelationID = row.RuntimeBackend, t.Request.CorrelationID
	draft.DesiredChange, err = WithPrivate(struct{}{}, Private{Supersedes: gone, Input: draft.Input})
	if err != nil {
		return nil, err
	}
	op, err := Create(ctx, t, draft)
	if err != nil {
		return nil, err
	}
	events = append(events,
		event.Draft{Type: lifecycle.EventInstanceDeleting, OperationID: op.ID, Message: "decommission requested",
			CorrelationID: op.CorrelationID,
			Payload:       map[string]any{"reason": draft.Reason}},
		event.Draft{Type: lifecycle.EventOperationAccepted, OperationID: op.ID, Message: "decommission accepted",
			CorrelationID: op.CorrelationID,
			Payload:       map[string]any{"kind": op.Kind, "deadline": op.Deadline}})
	return op, event.AppendWith(ctx, t, row, []event.Column{Newest(row, op)}, events...)
}

// SupersedeAll ends open operations in favour of a new one; it returns the events for the timeline, and which they
// were.
func SupersedeAll(ctx context.Context, t *tx.Tx, superseded []*db.Operation, by ids.ID,
	kind lifecycle.OperationKind) ([]event.Draft, []ids.ID, error) {
	var events []event.Draft
	var gone []ids.ID
	for _, op := range superseded {
		if err := Supersede(ctx, t, op, string(by)); err != nil {
			return nil, nil, err
		}
		gone = append(gone, op.ID)
		events = append(events, event.Draft{
			Type: lifecycle.EventOperationCanceled, OperationID: op.ID,
			Message:       "superseded by " + lifecycle.Wire(kind),
			CorrelationID: op.CorrelationID, Payload: map[string]any{"by": by},
		})
	}
	return events, gone, nil
}

// Stop moves a locked instance to STOPPING, unless it is there already or lost for service.
func Stop(ctx context.Context, t *tx.Tx, row *db.Instance) error {
	if row.Status == lifecycle.InstanceStopping || row.Status == lifecycle.InstanceFailed {
		return nil
	}
	if err := row.Status.CanMove(lifecycle.InstanceStopping); err != nil {
		return err
	}
	if _, err := t.Exec(ctx, `UPDATE instance SET status = $2 WHERE id
		= $1`, row.ID, lifecycle.InstanceStopping); err != nil {
		return fmt.Errorf("stop instance %s: %w", row.ID, err)
	}
	row.Status = lifecycle.InstanceStopping
	return nil
}

// Supersede ends an open operation because another one takes its place: it is CANCELED with code SUPERSEDED, loses its
// worker's claim, its open steps are skipped, a step that it was undoing is FAILED, since the other operation undoes
// that, and its open node tasks are withdrawn.
func Supersede(ctx context.Context, t *tx.Tx, op *db.Operation, by string) error {
	batch := &pgx.Batch{}
	if op.State == lifecycle.OperationRunning {
		batch.Queue(`UPDATE operation SET state = $2 WHERE id = $1`, op.ID, lifecycle.OperationCanceling)
	}
	message := "superseded by operation " + by
	batch.Queue(`UPDATE operation SET state = $2, ended_at = $3, claimed_by = NULL, claim_epoch = claim_epoch + 1,
		error_code = $4, error_message = $5, error_owner = 'user', message = $5 WHERE id = $1`,
		op.ID, lifecycle.OperationCanceled, t.Now, Superseded, message)
	batch.Queue(`UPDATE operation_step SET state = CASE WHEN state = 'UNDOING' THEN 'FAILED' ELSE 'SKIPPED' END,
		message = CASE WHEN state = 'UNDOING' THEN $3 ELSE message END, ended_at = $2
		WHERE operation_id = $1 AND state IN ('PENDING', 'RUNNING',
		'UNDOING')`, op.ID, t.Now, message+" before it was taken back")
	queueWithdrawal(batch, t, op.ID)
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("supersede %s: %w", op.ID, err)
	}
	t.Wake(event.OperationTopic(op.ID))
	return nil
}
