package queue

import (
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Held is an operation that a worker has claimed. Worker and ClaimEpoch fence everything it writes.
type Held struct {
	*db.Operation
	// Worker is the process that holds it.
	Worker ids.ID
	// AppSlug is the app of its instance, read with the claim; empty for an operation on none.
	AppSlug string
}

// About returns the fields of the operation's lines, spans and calls: whose it is, and what it is about.
func (h *Held) About() []slog.Attr {
	return append(telemetry.Context(string(h.TenantID), string(h.ProjectID), h.AppSlug, string(rows.Value(h.InstanceID))),
		slog.String("operation_id", string(h.ID)))
}

// heldColumns are those of an operation with what belongs to the queue.
const heldColumns = rows.OperationColumns +
	`, operation.adapter_status, operation.failures, operation.claimed_by, operation.step_plan`

// claimedColumns are heldColumns with the app of the operation's instance.
const claimedColumns = heldColumns +
	`, coalesce((SELECT i.app_slug FROM instance i WHERE i.id = operation.instance_id), '')`

// scanClaimed scans claimedColumns.
func scanClaimed(row pgx.CollectableRow) (held *Held, err error) {
	var app string
	if held, err = scanHeld(rows.Also{CollectableRow: row, Into: []any{&app}}); err != nil {
		return nil, err
	}
	held.AppSlug = app
	return held, nil
}

// scanHeld scans heldColumns.
func scanHeld(row pgx.CollectableRow) (*Held, error) {
	var queue struct {
		status    []byte
		failures  int
		claimedBy *ids.ID
		plan      string
	}
	op, err := rows.Operation(rows.Also{CollectableRow: row,
		Into: []any{&queue.status, &queue.failures, &queue.claimedBy, &queue.plan}})
	if err != nil {
		return nil, err
	}
	op.AdapterStatus, op.Failures, op.ClaimedBy, op.StepPlan = queue.status, queue.failures, queue.claimedBy, queue.plan
	return &Held{Operation: op}, nil
}
