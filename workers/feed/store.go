package feed

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	dboperation "github.com/gpuaas/app-platform/ent/generated/db/operation"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/event"
	"github.com/gpuaas/app-platform/service/operation"
)

// absorb stores one status, whoever holds the operation, and wakes the operation at its end. An
// operation of another adapter, or one that has ended, is left alone.
func (r *Reader) absorb(ctx context.Context, s *source, status adapter.Status) error {
	if !ids.ID(status.OperationID).Is(ids.Operation) || !status.State.Valid() {
		return fmt.Errorf("not a status of an operation")
	}
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	return r.db.As(ctx, r.actor, func(ctx context.Context, t *tx.Tx) error {
		instance, op, err := lock(ctx, t, ids.ID(status.OperationID))
		if err != nil || op == nil || op.AdapterName != s.Name {
			return err
		}
		ended, err := operation.Absorb(ctx, t, instance, op, status)
		if err != nil || !ended {
			return err
		}
		return operation.Wake(ctx, t, op.ID)
	})
}

// lock locks an open operation's instance and then the operation; nil when there is no such one.
func lock(ctx context.Context, t *tx.Tx, id ids.ID) (*db.Instance, *db.Operation, error) {
	var instanceID *ids.ID
	err := t.QueryRow(ctx, `SELECT instance_id FROM operation WHERE id = $1 AND ended_at IS NULL`, id).Scan(&instanceID)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("look for operation %s: %w", id, err)
	}
	var instance *db.Instance
	if instanceID != nil {
		if instance, err = t.Instance.Query().Where(dbinstance.ID(*instanceID)).ForUpdate().Only(ctx); err != nil {
			return nil, nil, fmt.Errorf("lock instance %s: %w", *instanceID, err)
		}
	}
	op, err := t.Operation.Query().Where(dboperation.ID(id), dboperation.EndedAtIsNil()).ForUpdate().Only(ctx)
	if db.IsNotFound(err) {
		return nil, nil, nil
	}
	return instance, op, err
}

// wake makes the adapter's operations due: all that were dispatched, or those whose last try failed.
func (r *Reader) wake(ctx context.Context, s *source, all bool) error {
	_, err := r.db.Worker().Exec(ctx, `UPDATE operation SET next_run_at = now()
		WHERE adapter_name = $1 AND ended_at IS NULL AND next_run_at > now() AND (failures > 0 OR ($2 AND dispatch_attempt > 0))`, s.Name, all)
	if err != nil {
		return fmt.Errorf("wake the adapter's operations: %w", err)
	}
	r.db.Wake(event.QueueTopic)
	return nil
}
