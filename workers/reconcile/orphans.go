package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/telemetry"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/orphan"
)

// The pace of taking back what operations left.
const (
	orphansEvery  = time.Second
	heldEvery     = 30 * time.Second
	maxOrphans    = 100 // that one look goes on with
	orphanLooks   = 2 * time.Second
	orphanFirst   = 30 * time.Second
	orphanMost    = 15 * time.Minute
	orphanSeconds = 180 // a task's time on its node
	notHeard      = "the agent of its node does not report"
	heldFor       = "10 seconds" // after its operation has ended
)

// orphans goes on with those that are due. One whose node was silent is due as soon as the node is back, also where an
// earlier build stored that in other words.
func (r *Reconciler) orphans(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	_, err := r.DB.Worker().Exec(ctx, `UPDATE orphan SET next_try_at = now() FROM compute_node n
		WHERE n.id = orphan.node_id AND n.status = 'ONLINE'
		AND orphan.resolved_at IS NULL AND orphan.last_error IN ($1, 'its node is not heard')
		AND orphan.next_try_at > now()`, notHeard)
	if err != nil {
		return fmt.Errorf("wake orphans whose nodes came back: %w", err)
	}
	found, err := r.DB.Worker().Query(ctx, `SELECT id, instance_id FROM orphan WHERE resolved_at IS NULL
		AND next_try_at <= now()
		ORDER BY next_try_at, id LIMIT $1`, maxOrphans)
	if err != nil {
		return fmt.Errorf("list orphans that are due: %w", err)
	}
	type due struct{ ID, InstanceID ids.ID }
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[due])
	if err != nil {
		return fmt.Errorf("list orphans that are due: %w", err)
	}
	var failures []error
	for _, one := range list {
		failures = append(failures, r.DB.As(ctx, r.actor, func(ctx context.Context, t *tx.Tx) error {
			return r.mend(ctx, t, one.ID, one.InstanceID)
		}))
	}
	return errors.Join(failures...)
}

// mend goes one step on with an orphan: instance first, as everywhere, then the orphan itself.
func (r *Reconciler) mend(ctx context.Context, t *tx.Tx, id, instanceID ids.ID) error {
	instance, err := t.Instance.Query().Where(dbinstance.ID(instanceID)).ForUpdate().Only(ctx)
	if err != nil {
		return fmt.Errorf("lock instance %s: %w", instanceID, err)
	}
	due, err := tx.Collect(ctx, t, rows.Orphan, `SELECT `+rows.OrphanColumns+`
		FROM orphan WHERE id = $1 AND resolved_at IS NULL AND next_try_at <= now() FOR UPDATE`, id)
	if err != nil {
		return fmt.Errorf("lock orphan %s: %w", id, err)
	}
	if len(due) == 0 {
		return nil
	}
	if due[0].Kind == lifecycle.OrphanAllocation {
		return r.mendAllocation(ctx, t, instance, due[0])
	}
	return r.mendResidue(ctx, t, instance, due[0])
}

// mendAllocation frees an allocation that no caller asked to keep.
func (r *Reconciler) mendAllocation(ctx context.Context, t *tx.Tx, instance *db.Instance, row *db.Orphan) error {
	freed, told, err := orphan.Free(ctx, t, instance, *row.AllocationID)
	if err != nil {
		return err
	}
	if freed == orphan.Kept {
		var gone bool
		err := t.QueryRow(ctx, `SELECT status = 'RELEASED' OR instance_id IS DISTINCT FROM $2 FROM allocation
			WHERE id = $1`,
			row.AllocationID, instance.ID).Scan(&gone)
		if err != nil {
			return fmt.Errorf("read allocation %s: %w", *row.AllocationID, err)
		}
		if !gone {
			return putOff(ctx, t, row, row.Attempts+1, "something lives in it")
		}
	}
	if err := event.Append(ctx, t, instance, told...); err != nil {
		return err
	}
	return orphan.Resolve(ctx, t, instance, row, "its allocation is "+string(freed))
}

// trace is a task of a try to clean up, or one of others that is in its way.
type trace struct {
	Key     string
	Kind    lifecycle.NodeTaskKind
	State   lifecycle.NodeTaskState
	Result  json.RawMessage
	Message string
}

// mendResidue has the agent tear down what is left of a member, and then look whether that is true.
func (r *Reconciler) mendResidue(ctx context.Context, t *tx.Tx, instance *db.Instance, row *db.Orphan) error {
	var status lifecycle.NodeStatus
	if err := t.QueryRow(ctx, `SELECT status FROM compute_node WHERE id = $1`, row.NodeID).Scan(&status); err != nil {
		return fmt.Errorf("read node %s: %w", *row.NodeID, err)
	}
	switch status {
	case lifecycle.NodeRetired:
		return orphan.Resolve(ctx, t, instance, row, "its node was retired")
	case lifecycle.NodeOffline:
		return putOff(ctx, t, row, row.Attempts, notHeard)
	}
	busy, err := quiet(ctx, t, row)
	if err != nil || busy {
		return errors.Join(err, soon(ctx, t, row))
	}
	torn, looked, err := r.traces(ctx, t, row)
	switch {
	case err != nil:
		return err
	case torn == nil:
		return order(ctx, t, row, lifecycle.TaskTeardown)
	case !torn.State.Terminal() || (looked != nil && !looked.State.Terminal()):
		return soon(ctx, t, row)
	case looked == nil:
		return order(ctx, t, row, lifecycle.TaskResidue)
	}
	if left := looked.left(); left != "" {
		return putOff(ctx, t, row, row.Attempts+1, left)
	}
	r.Log.Info("what an operation had left behind is removed", "orphan_id", row.ID, "app_instance_id", instance.ID)
	row.Attempts++
	if err := count(ctx, t, row); err != nil {
		return err
	}
	return orphan.Resolve(ctx, t, instance, row, "the node's agent found that nothing of it is left")
}

// keyOf begins the keys of the tasks of the try under way.
func keyOf(row *db.Orphan) string {
	return fmt.Sprintf("platform orphan %s %d ", row.ID, row.Attempts+1)
}

// quiet asks the agent to end the tasks of others on the member, which could bring it back, and says
// whether any is open.
func quiet(ctx context.Context, t *tx.Tx, row *db.Orphan) (busy bool, err error) {
	tag, err := t.Exec(ctx,
		`UPDATE node_task SET cancel_requested = true WHERE member_id = $1 AND ended_at IS NULL
			AND NOT starts_with(idempotency_key, $2)`,
		row.MemberID, keyOf(row))
	if err != nil {
		return false, fmt.Errorf("end the tasks on member %s: %w", *row.MemberID, err)
	}
	if tag.RowsAffected() > 0 {
		t.Wake(event.NodeTopic(*row.NodeID))
	}
	return tag.RowsAffected() > 0, nil
}

// traces returns the tasks of the try under way; nil for those that are not requested yet.
func (r *Reconciler) traces(ctx context.Context, t *tx.Tx, row *db.Orphan) (torn, looked *trace, err error) {
	found, err := t.Query(ctx,
		`SELECT idempotency_key, kind, state, result, message FROM node_task WHERE member_id = $1
			AND starts_with(idempotency_key, $2)`,
		row.MemberID, keyOf(row))
	if err != nil {
		return nil, nil, fmt.Errorf("read the tasks of %s: %w", row.ID, err)
	}
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[trace])
	if err != nil {
		return nil, nil, fmt.Errorf("read the tasks of %s: %w", row.ID, err)
	}
	for i := range list {
		if list[i].Kind == lifecycle.TaskTeardown {
			torn = &list[i]
		} else {
			looked = &list[i]
		}
	}
	return torn, looked, nil
}

// left says what the agent found; empty for nothing.
func (k *trace) left() string {
	var result struct {
		Residue *struct {
			Sandbox   bool
			Processes []json.RawMessage
			Mounts    []string
			Files     int
		}
	}
	if k.State != lifecycle.TaskSucceeded || json.Unmarshal(k.Result, &result) != nil || result.Residue == nil {
		return "its node could not check: " + k.Message
	}
	found := result.Residue
	if found.Sandbox || len(found.Processes)+len(found.Mounts)+found.Files > 0 {
		return fmt.Sprintf("left: %d processes, %d mounts, %d files", len(found.Processes), len(found.Mounts),
			found.Files)
	}
	return ""
}

// order asks the agent for a task. It belongs to no operation: the one that left the orphan has ended,
// and what outlives its operation is canceled.
func order(ctx context.Context, t *tx.Tx, row *db.Orphan, kind lifecycle.NodeTaskKind) error {
	digest := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n{}", kind, orphanSeconds))
	_, err := t.Exec(ctx, `INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, kind,
		spec, spec_digest, state, timeout_seconds, idempotency_key, created_at, correlation_id, traceparent, app_slug)
		VALUES ($1, $2, $3, $4, $5, $6, $7, '{}', $8, 'PENDING', $9, $10, $11,
		coalesce((SELECT correlation_id FROM operation WHERE id = $12), ''), $13,
		coalesce((SELECT app_slug FROM instance WHERE id = $4), ''))
		ON CONFLICT (member_id, idempotency_key) DO NOTHING`, ids.New(ids.NodeTask), row.TenantID, row.ProjectID,
		row.InstanceID, row.MemberID, row.NodeID, kind, digest[:], orphanSeconds,
		keyOf(row)+lifecycle.Wire(kind), t.Now,
		row.OperationID, telemetry.Traceparent(ctx))
	if err != nil {
		return fmt.Errorf("create a task for %s: %w", row.ID, err)
	}
	t.Wake(event.NodeTopic(*row.NodeID))
	return soon(ctx, t, row)
}

// soon looks again in a moment.
func soon(ctx context.Context, t *tx.Tx, row *db.Orphan) error {
	_, err := t.Exec(ctx, `UPDATE orphan SET next_try_at = $2, last_error = CASE
		WHEN last_error IN ($3, 'its node is not heard') THEN '' ELSE last_error END WHERE id = $1`,
		row.ID, t.Now.Add(orphanLooks), notHeard)
	return err
}

func count(ctx context.Context, t *tx.Tx, row *db.Orphan) error {
	_, err := t.Exec(ctx, `UPDATE orphan SET attempts = $2 WHERE id = $1`, row.ID, row.Attempts)
	return err
}

// putOff notes why a try failed and when the next one is: 30 seconds after the first, 15 minutes at most.
func putOff(ctx context.Context, t *tx.Tx, row *db.Orphan, attempts int, why string) error {
	pause := min(orphanFirst<<min(max(attempts-1, 0), 10), orphanMost)
	_, err := t.Exec(ctx, `UPDATE orphan SET attempts = $2, last_error = $3, next_try_at = $4 WHERE id = $1`, row.ID,
		attempts, operation.Clip(why, maxText), t.Now.Add(pause))
	if err != nil {
		return fmt.Errorf("postpone %s: %w", row.ID, err)
	}
	return nil
}

// held opens an orphan for each allocation that a failed or canceled operation had requested, and in which
// nothing lives: no caller asked to keep it.
func (r *Reconciler) held(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	found, err := r.DB.Worker().Query(ctx, `SELECT a.id, p.id, p.instance_id, p.correlation_id FROM allocation a
		JOIN operation p ON p.id = a.created_by_operation_id
		WHERE a.created_by_operation_id IS NOT NULL AND a.status = 'READY' AND p.instance_id IS NOT NULL
		AND p.state IN ('FAILED', 'CANCELED')
			AND p.ended_at < now() - interval '`+heldFor+`'
			AND NOT EXISTS (SELECT FROM member m WHERE m.allocation_id = a.id AND m.status <> 'REMOVED')
			AND NOT EXISTS (SELECT FROM orphan o WHERE o.allocation_id = a.id AND o.resolved_at IS NULL)
		ORDER BY a.id LIMIT $1`, maxOrphans)
	if err != nil {
		return fmt.Errorf("find allocations of failed operations: %w", err)
	}
	type one struct {
		Allocation, Operation, Instance ids.ID
		Correlation                     string
	}
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[one])
	if err != nil {
		return fmt.Errorf("find allocations of failed operations: %w", err)
	}
	for _, each := range list {
		err := r.DB.As(ctx, r.actor, func(ctx context.Context, t *tx.Tx) error {
			instance, err := t.Instance.Query().Where(dbinstance.ID(each.Instance)).ForUpdate().Only(ctx)
			if err != nil {
				return fmt.Errorf("lock instance %s: %w", each.Instance, err)
			}
			told, err := orphan.Open(ctx, t, instance, orphan.Draft{Kind: lifecycle.OrphanAllocation,
				OperationID: each.Operation, AllocationID: each.Allocation,
				Owner: operation.OwnerPlatform, CorrelationID: each.Correlation,
				Message: "an operation that did not succeed had requested it, and nothing lives in it"})
			if err != nil {
				return err
			}
			return event.Append(ctx, t, instance, told...)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
