package orphan

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

// firstTry is the time from finding an orphan to the first try to resolve it.
const firstTry = 2 * time.Second

// Draft is something that an operation could not take back.
type Draft struct {
	Kind lifecycle.OrphanKind
	// OperationID is the operation that left it; MemberID, NodeID and AllocationID are what it is of,
	// where it lies and what it holds. Empty for none.
	OperationID, MemberID, NodeID, AllocationID ids.ID
	// Owner is who can repair it; Message says what is left and why.
	Owner, Message string
	CorrelationID  string
}

// Open lists orphans of a locked instance, in the transaction that leaves them, and returns the events
// for the instance's timeline. What is listed already is not listed again.
func Open(ctx context.Context, t *tx.Tx, instance *db.Instance, drafts ...Draft) ([]event.Draft, error) {
	var told []event.Draft
	for _, d := range drafts {
		id := ids.New(ids.OrphanedResource)
		tag, err := t.Exec(ctx, `INSERT INTO orphan (id, tenant_id, project_id, kind, instance_id, operation_id,
			member_id,
			node_id, allocation_id,
				owner, message, attempts, next_try_at, created_at)
			SELECT $1::text, $2::text, $3::text, $4::text, $5::text, nullif($6::text, ''), nullif($7::text, ''),
			nullif($8::text, ''), nullif($9::text, ''),
				$10::text, $11::text, 0, $12::timestamptz, $13::timestamptz
			WHERE NOT EXISTS (SELECT FROM orphan WHERE instance_id = $5::text AND resolved_at IS NULL AND kind = $4::text
				AND coalesce(member_id, '') = $7::text AND ($7::text <> '' OR coalesce(allocation_id, '') = $9::text))`,
			id, instance.TenantID, instance.ProjectID, string(d.Kind), instance.ID, string(d.OperationID),
			string(d.MemberID),
			string(d.NodeID),
			string(d.AllocationID), d.Owner, d.Message, t.Now.Add(firstTry), t.Now)
		if err != nil {
			return nil, fmt.Errorf("list an orphan of %s: %w", instance.ID, err)
		}
		if tag.RowsAffected() == 0 {
			continue
		}
		told = append(told, event.Draft{Type: lifecycle.EventOrphanFound, OperationID: d.OperationID,
			MemberID: d.MemberID, Message: d.Message,
			CorrelationID: d.CorrelationID, Payload: map[string]any{"orphan": id, "kind": d.Kind, "node": d.NodeID,
				"allocation": d.AllocationID, "owner": d.Owner}})
	}
	return told, nil
}

// Freed is what became of an allocation that a member has left.
type Freed string

// What becomes of an allocation: it stays with its instance, any instance of the project may use it again,
// or it is released because an operation of the instance had requested it.
const (
	Kept     Freed = "kept"
	Unbound  Freed = "unbound"
	Released Freed = "released"
)

// Free frees an allocation once nothing of the locked instance lives in it any more: one that an
// operation of the instance had requested is released, one that was brought is only unbound. It stays
// while a member or an orphan is in it. Free returns the events for the timeline.
func Free(ctx context.Context, t *tx.Tx, instance *db.Instance, id ids.ID) (Freed, []event.Draft, error) {
	var name string
	var status lifecycle.AllocationStatus
	var bound *ids.ID
	var used, ours bool
	err := t.QueryRow(ctx, `SELECT a.name, a.status, a.instance_id,
		EXISTS (SELECT FROM member m WHERE m.allocation_id = a.id AND m.status <> 'REMOVED')
			OR EXISTS (SELECT FROM orphan o WHERE o.allocation_id = a.id AND o.resolved_at IS NULL AND o.kind = 'NODE_RESIDUE'),
		EXISTS (SELECT FROM operation p WHERE p.id = a.created_by_operation_id AND p.instance_id = $2)
		FROM allocation a WHERE a.id = $1 FOR UPDATE OF a`, id, instance.ID).Scan(&name, &status, &bound, &used, &ours)
	if errors.Is(err, pgx.ErrNoRows) {
		return Kept, nil, nil
	}
	if err != nil {
		return Kept, nil, fmt.Errorf("read allocation %s: %w", id, err)
	}
	if used || status == lifecycle.AllocationReleased || (bound != nil && *bound != instance.ID) ||
		(bound == nil && !ours) {
		return Kept, nil, nil
	}
	if !ours || status.CanMove(lifecycle.AllocationReleasing) != nil {
		_, err := t.Exec(ctx, `UPDATE allocation SET instance_id = NULL WHERE id = $1`, id)
		return Unbound, nil, err
	}
	batch := &pgx.Batch{}
	batch.Queue(`UPDATE allocation SET instance_id = NULL, status = 'RELEASING' WHERE id = $1`, id)
	batch.Queue(`UPDATE allocation SET status = 'RELEASED', released_at = $2 WHERE id = $1`, id, t.Now)
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return Kept, nil, fmt.Errorf("release allocation %s: %w", id, err)
	}
	t.Wake(event.ProjectTopic(instance.ProjectID))
	return Released, []event.Draft{{Type: lifecycle.EventAllocationReleased,
		Message: "allocation " + name + " is released",
		Payload: map[string]any{"allocation": id}}}, nil
}

// Resolve notes that an orphan of the locked instance is resolved, and how, and frees what it held: its
// allocation, and the instance itself, which is released when nothing else of it is left.
func Resolve(ctx context.Context, t *tx.Tx, instance *db.Instance, row *db.Orphan, how string) error {
	tag, err := t.Exec(ctx,
		`UPDATE orphan SET resolved_at = $2, resolution = $3, last_error = '' WHERE id = $1
			AND resolved_at IS NULL`, row.ID,
		t.Now, how)
	if err != nil {
		return fmt.Errorf("resolve %s: %w", row.ID, err)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	told := []event.Draft{{Type: lifecycle.EventOrphanResolved, OperationID: value(row.OperationID),
		MemberID: value(row.MemberID), Message: how,
		Payload: map[string]any{"orphan": row.ID, "kind": row.Kind, "attempts": row.Attempts}}}
	if row.AllocationID != nil {
		if err := queue.WakeRelease(ctx, t, *row.AllocationID); err != nil {
			return err
		}
		freed, more, err := Free(ctx, t, instance, *row.AllocationID)
		if err != nil {
			return err
		}
		told = append(told, more...)
		told[0].Payload["freed"] = freed
	}
	if err := letGo(ctx, t, instance); err != nil {
		return err
	}
	return event.Append(ctx, t, instance, told...)
}

// letGo marks a stopped or failed instance as released once it has no members and no open orphans.
func letGo(ctx context.Context, t *tx.Tx, instance *db.Instance) error {
	_, err := t.Exec(ctx, `UPDATE instance SET released_at = $2 WHERE id = $1 AND released_at IS NULL
		AND status IN ('STOPPED', 'FAILED')
		AND NOT EXISTS (SELECT FROM member WHERE instance_id = $1 AND NOT removed)
		AND NOT EXISTS (SELECT FROM orphan WHERE instance_id = $1 AND resolved_at IS NULL)`, instance.ID, t.Now)
	if err != nil {
		return fmt.Errorf("release instance %s: %w", instance.ID, err)
	}
	t.Wake(event.ProjectTopic(instance.ProjectID))
	return nil
}

func value(id *ids.ID) ids.ID {
	if id == nil {
		return ""
	}
	return *id
}
