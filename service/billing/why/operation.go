package why

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Operation is what brought a member, and who requested it.
type Operation struct {
	ID          ids.ID
	Kind        string
	RequestedAt time.Time
	// The audit's entry of the request; nil for callers without audit.read.
	AuditID, ActorID                                    *ids.ID
	ActorKind, ActorName, Action, Reason, CorrelationID *string
}

// operationsSQL reads operations, each with the first entry that its request wrote to the audit.
const operationsSQL = `SELECT o.id, o.kind, o.created_at, a.id, a.actor_kind, a.actor_id, a.actor_name, a.action,
	a.reason, a.correlation_id
	FROM operation o LEFT JOIN LATERAL (SELECT * FROM audit_entry e WHERE $3 AND e.allowed
	AND e.correlation_id = o.correlation_id
		AND e.actor_id = o.requester_id AND e.project_id = o.project_id ORDER BY e.id LIMIT 1) a ON true
	WHERE o.project_id = $1 AND o.id = ANY ($2)`

// operations reads the operations of the shares.
func (e *Explanation) operations(ctx context.Context, t *tx.Tx) error {
	var wanted []ids.ID
	for _, share := range e.Shares {
		if share.OperationID != nil {
			wanted = append(wanted, *share.OperationID)
		}
	}
	var tenant ids.ID
	if err := t.QueryRow(ctx, `SELECT tenant_id FROM project WHERE id = $1`, e.ProjectID).Scan(&tenant); err != nil {
		return fmt.Errorf("read project %s: %w", e.ProjectID, err)
	}
	audited := t.Actor.Allows(authz.AuditRead, tenant, e.ProjectID)
	rows, err := t.Query(ctx, operationsSQL, e.ProjectID, wanted, audited)
	if err != nil {
		return fmt.Errorf("read operations: %w", err)
	}
	found := map[ids.ID]*Operation{}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*Operation, error) {
		o := &Operation{}
		err := row.Scan(&o.ID, &o.Kind, &o.RequestedAt, &o.AuditID, &o.ActorKind, &o.ActorID, &o.ActorName, &o.Action,
			&o.Reason, &o.CorrelationID)
		found[o.ID] = o
		return o, err
	})
	if err != nil {
		return fmt.Errorf("read operations: %w", err)
	}
	for _, share := range e.Shares {
		if share.OperationID != nil {
			share.Operation = found[*share.OperationID]
		}
	}
	return nil
}
