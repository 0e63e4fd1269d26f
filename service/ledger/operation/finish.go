package operation

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// The owners of a failure, as they are stored and published.
const (
	OwnerAdapter  = "adapter"
	OwnerPlatform = "platform"
	OwnerUser     = "user"
	OwnerNode     = "node"
)

// Bounds of what a failure and a message keep, in bytes.
const (
	maxText = 2_000
	maxCode = 64
)

// tooLate is the answer to a request to stop that came as the operation ended.
const tooLate = "too late: it had ended before it could be stopped"

// QueueFinish queues what ends a locked operation with success, how well that is proved, and the evidence for it; its
// watchers are woken after the commit. A request to stop it came too late.
func QueueFinish(batch *pgx.Batch, t *tx.Tx, op *db.Operation, outcome lifecycle.Outcome, evidence any,
	message string) error {
	encoded, err := json.Marshal(evidence)
	if err != nil {
		return fmt.Errorf("encode the evidence of %s: %w", op.ID, err)
	}
	batch.Queue(`UPDATE operation SET state = $2, outcome = $3, evidence = $4, message = $5, phase = 'done',
		percent = 100,
		cancel_message = CASE WHEN state = 'CANCELING' THEN $7 ELSE cancel_message END,
		claimed_by = NULL, failures = 0, ended_at = $6 WHERE id = $1`,
		op.ID, lifecycle.OperationSucceeded, outcome, encoded, Clip(message, maxText), t.Now, tooLate)
	queueWithdrawal(batch, t, op.ID)
	t.Wake(event.OperationTopic(op.ID))
	return nil
}

// queueWithdrawal queues what withdraws the open tasks of a locked operation that ends: an agent is refused when it
// begins one, and stops one that runs. Their nodes are woken after the commit.
func queueWithdrawal(batch *pgx.Batch, t *tx.Tx, id ids.ID) {
	batch.Queue(`UPDATE node_task SET cancel_requested = true WHERE operation_id = $1 AND ended_at IS NULL
		AND NOT cancel_requested
		RETURNING id, node_id`, id).Query(func(found pgx.Rows) error {
		var task, node ids.ID
		_, err := pgx.ForEachRow(found, []any{&task, &node}, func() error {
			t.Wake(event.NodeTopic(node), event.TaskTopic(task))
			return nil
		})
		return err
	})
}

// Fail ends a locked operation with a failure, and wakes its watchers. A request to stop it came too late.
func Fail(ctx context.Context, t *tx.Tx, op *db.Operation, failure Failure) error {
	return end(ctx, t, op, lifecycle.OperationFailed, failure)
}

// Canceled ends a locked operation that was stopped on request; the failure names by whom and why.
func Canceled(ctx context.Context, t *tx.Tx, op *db.Operation, failure Failure) error {
	return end(ctx, t, op, lifecycle.OperationCanceled, failure)
}

func end(ctx context.Context, t *tx.Tx, op *db.Operation, state lifecycle.OperationState, failure Failure) error {
	failure = failure.Clipped()
	batch := &pgx.Batch{}
	batch.Queue(`UPDATE operation SET state = $2, error_code = $3, error_message = $4, error_owner = $5, error_retryable
		= $6,
		message = $4, cancel_message = CASE WHEN state = 'CANCELING' AND NOT $8 THEN $9 ELSE cancel_message END,
		claimed_by = NULL, ended_at = $7 WHERE id = $1`, op.ID, state, failure.Code, failure.Message, failure.Owner,
		failure.Retryable,
		t.Now, state == lifecycle.OperationCanceled, tooLate)
	queueWithdrawal(batch, t, op.ID)
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("end %s as %s: %w", op.ID, state, err)
	}
	t.Wake(event.OperationTopic(op.ID))
	return nil
}

// Compensate notes why a locked operation will end without success, and that what it did is being
// taken back first. Its code, message and owner are shown from then on.
func Compensate(ctx context.Context, t *tx.Tx, op *db.Operation, failure Failure) error {
	failure = failure.Clipped()
	_, err := t.Exec(ctx, `UPDATE operation SET state = 'COMPENSATING', error_code = $2, error_message = $3, error_owner
		= $4,
		error_retryable = $5 WHERE id = $1`, op.ID, failure.Code, failure.Message, failure.Owner, failure.Retryable)
	if err != nil {
		return fmt.Errorf("roll back %s: %w", op.ID, err)
	}
	op.State = lifecycle.OperationCompensating
	op.ErrorCode, op.ErrorMessage, op.ErrorOwner, op.ErrorRetryable = failure.Code, failure.Message, failure.Owner,
		failure.Retryable
	t.Wake(event.OperationTopic(op.ID))
	return nil
}

// Clipped is the failure within its bounds, since codes and texts come from adapters too.
func (f Failure) Clipped() Failure {
	f.Code, f.Message = Clip(f.Code, maxCode), Clip(f.Message, maxText)
	if f.Code == "" {
		f.Code = "INTERNAL"
	}
	if f.Owner == "" {
		f.Owner = OwnerPlatform
	}
	return f
}

// Payload is the failure in an event.
func (f Failure) Payload() map[string]any {
	return map[string]any{"code": f.Code, "message": f.Message, "owner": f.Owner, "retryable": f.Retryable}
}

// Clip cuts text to a number of bytes, at the end of a character, and drops what PostgreSQL cannot keep.
func Clip(text string, limit int) string {
	cleaned := make([]rune, 0, min(len(text), limit))
	size := 0
	for _, r := range text {
		if r == 0 {
			continue
		}
		if size += len(string(r)); size > limit {
			break
		}
		cleaned = append(cleaned, r)
	}
	return string(cleaned)
}
