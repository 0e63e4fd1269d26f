package queue

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Held is an operation that a worker has claimed. Worker and ClaimEpoch fence everything it writes.
type Held struct {
	*db.Operation
	// Worker is the process that holds it.
	Worker ids.ID
	// AppSlug is the app of its instance, read with the claim; empty for an operation on none.
	AppSlug string

	read time.Time // when Operation was
}

// Reported returns the state that the adapter has reported, as the holder has last read it; empty for none.
func (h *Held) Reported() string {
	var status struct{ State string }
	if len(h.AdapterStatus) > 0 {
		_ = json.Unmarshal(h.AdapterStatus, &status) // stored by the platform, as an adapter.Status
	}
	return status.State
}

// took sets the operation to what was just read.
func (h *Held) took(fresh *Held) { h.Operation, h.read = fresh.Operation, time.Now() }

// freshFor is how long after it was read under its claim an operation counts as still held: a holder that runs without
// a pause finishes its step well before another worker can take the operation over.
const freshFor = 250 * time.Millisecond

// Ensure is Refresh for a holder that may have been paused since the operation was last read, by either clock.
func (h *Held) Ensure(ctx context.Context, pool *pgxpool.Pool) error {
	now := time.Now()
	if since := max(now.Sub(h.read), now.Round(0).Sub(h.read.Round(0))); since >= 0 && since < freshFor {
		return nil
	}
	return h.Refresh(ctx, pool)
}

// News is Refresh, and reports whether others have written what a holder acts on since the operation was last read.
func (h *Held) News(ctx context.Context, pool *pgxpool.Pool) (bool, error) {
	before := h.asked()
	err := h.Refresh(ctx, pool)
	return err == nil && h.asked() != before, err
}

// asked is what others write to a held operation and its holder acts on.
type asked struct {
	state   lifecycle.OperationState // a cancel changes it
	attempt int                      // force raises it
	forced  bool
	done    bool // by the adapter's last word
}

func (h *Held) asked() asked {
	return asked{h.State, h.DispatchAttempt, h.ForcedAt != nil, adapter.State(h.Reported()).Terminal()}
}

// About returns the fields of the operation's lines, spans and calls: its owner and its object.
func (h *Held) About() []slog.Attr {
	return append(telemetry.Context(string(h.TenantID), string(h.ProjectID), h.AppSlug,
		string(rows.Value(h.InstanceID))),
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
