package operation

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/event"
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

// QueueFinish queues what ends a locked operation with success and the evidence for it; who watches it
// is woken after the commit.
func QueueFinish(batch *pgx.Batch, t *tx.Tx, op *db.Operation, evidence any, message string) error {
	encoded, err := json.Marshal(evidence)
	if err != nil {
		return fmt.Errorf("encode the evidence of %s: %w", op.ID, err)
	}
	batch.Queue(`UPDATE operation SET state = $2, outcome = $3, evidence = $4, message = $5, phase = 'done', percent = 100,
		claimed_by = NULL, failures = 0, ended_at = $6 WHERE id = $1`,
		op.ID, lifecycle.OperationSucceeded, lifecycle.OutcomeNormal, encoded, clip(message, maxText), t.Now)
	t.Wake(event.OperationTopic(op.ID))
	return nil
}

// Fail ends a locked operation with a failure, and wakes who watches it.
func Fail(ctx context.Context, t *tx.Tx, op *db.Operation, failure Failure) error {
	failure = failure.Clipped()
	_, err := t.Exec(ctx, `UPDATE operation SET state = $2, error_code = $3, error_message = $4, error_owner = $5, error_retryable = $6,
		message = $4, claimed_by = NULL, ended_at = $7 WHERE id = $1`,
		op.ID, lifecycle.OperationFailed, failure.Code, failure.Message, failure.Owner, failure.Retryable, t.Now)
	if err != nil {
		return fmt.Errorf("fail %s: %w", op.ID, err)
	}
	t.Wake(event.OperationTopic(op.ID))
	return nil
}

// Clipped is the failure within its bounds, since codes and texts come from adapters too.
func (f Failure) Clipped() Failure {
	f.Code, f.Message = clip(f.Code, maxCode), clip(f.Message, maxText)
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

// clip cuts text to a number of bytes, at the end of a character, and drops what PostgreSQL cannot keep.
func clip(text string, limit int) string {
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
