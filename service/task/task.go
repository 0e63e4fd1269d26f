// Package task holds the verbs on node tasks, the execution primitive that adapters compose with:
// a piece of work for the agent of one node, in the sandbox of one member. An adapter requests a task
// with an operation's token and waits for it; the node's agent does it and reports it under its fence.
//
// A task whose agent reports nothing stays as it is: the deadline of its operation decides what that
// means. Cancel requests its end.
package task

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Service holds the verbs on node tasks.
type Service struct {
	DB *tx.DB
	// Hub wakes the calls that wait for a task's end, and the nodes' streams.
	Hub *event.Hub
	// Metrics counts agents and the ends of tasks; nil for no counts.
	Metrics *metrics.Set
}

// Bounds of the open tasks.
const (
	// MaxOpenOfMember is the most tasks of one member that have not ended.
	MaxOpenOfMember = 256
	// MaxOpenOfNode is the most open tasks that a node is shown at once, oldest first.
	MaxOpenOfNode = 4_096
)

// object is a task as an object of authorisation.
func object(row *db.NodeTask) authz.Object {
	return authz.Object{TenantID: row.TenantID, ProjectID: row.ProjectID, InstanceID: row.InstanceID,
		NodeID: row.NodeID, AppSlug: row.AppSlug}
}

// lock loads a task for change and requires the key. NOT_FOUND when it is missing or hidden.
func lock(ctx context.Context, t *tx.Tx, action string, key authz.Key, id ids.ID) (*db.NodeTask, error) {
	row, err := one(ctx, t, `SELECT `+rows.NodeTaskColumns+` FROM node_task WHERE id = $1 FOR UPDATE`, id)
	if err != nil {
		return nil, fmt.Errorf("load node task %s: %w", id, err)
	}
	if row == nil {
		return nil, audit.Missing(t, action, key, id)
	}
	return row, audit.Require(t, action, key, object(row), id)
}

// one reads at most one task; nil when the query finds nothing.
func one(ctx context.Context, t *tx.Tx, sql string, args ...any) (*db.NodeTask, error) {
	found, err := t.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	collected, err := pgx.CollectRows(found, rows.NodeTask)
	if err != nil || len(collected) == 0 {
		return nil, err
	}
	return collected[0], nil
}
