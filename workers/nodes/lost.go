package nodes

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// maxLost bounds how many instances one look tells that a node of theirs is lost for good.
const maxLost = 100

const lostInstancesSQL = `SELECT DISTINCT m.instance_id FROM member m JOIN compute_node n ON n.id = m.node_id
	WHERE n.lost AND m.status IN ('ACTIVE', 'DRAINING', 'DRAINED')
		AND NOT EXISTS (SELECT FROM operation o WHERE o.instance_id = m.instance_id AND o.ended_at IS NULL AND (o.targets IS NULL OR o.targets = '[]' OR o.targets ? m.id))
	ORDER BY 1 LIMIT $1`

// Lost follows nodes that an operator retired as lost for good: members at rest there are FAILED, and so is what was
// rented there. Members that an operation acts on are its own.
func (k *Keeper) Lost(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, err := k.DB.Worker().Query(ctx, lostInstancesSQL, maxLost)
	if err != nil {
		return fmt.Errorf("look for what lived on lost nodes: %w", err)
	}
	instances, err := pgx.CollectRows(found, pgx.RowTo[ids.ID])
	if err != nil {
		return fmt.Errorf("look for what lived on lost nodes: %w", err)
	}
	var failures []error
	for _, id := range instances {
		failures = append(failures, k.DB.As(ctx, k.Actor, func(ctx context.Context, t *tx.Tx) error { return loseMembers(ctx, t, id) }))
	}
	_, err = k.DB.Worker().Exec(ctx, `UPDATE allocation SET status = 'FAILED' FROM compute_node n
		WHERE n.id = allocation.node_id AND n.lost AND allocation.status = 'READY'`)
	return errors.Join(append(failures, err)...)
}

// loseMembers makes an instance's members on lost nodes FAILED, and tells of each.
func loseMembers(ctx context.Context, t *tx.Tx, id ids.ID) error {
	instance, err := t.Instance.Query().Where(dbinstance.ID(id)).ForUpdate().Only(ctx)
	if err != nil {
		return fmt.Errorf("lock instance %s: %w", id, err)
	}
	found, err := t.Query(ctx, `UPDATE member SET status = 'FAILED', health = 'UNHEALTHY', health_message = 'node ' || n.name || ' is lost for good',
			updated_at = $2
		FROM compute_node n WHERE n.id = member.node_id AND n.lost AND member.instance_id = $1 AND member.status IN ('ACTIVE', 'DRAINING', 'DRAINED')
			AND NOT EXISTS (SELECT FROM operation o WHERE o.instance_id = $1 AND o.ended_at IS NULL AND (o.targets IS NULL OR o.targets = '[]' OR o.targets ? member.id))
		RETURNING member.id, member.component_key, member.ordinal, n.name`, id, t.Now)
	if err != nil {
		return fmt.Errorf("fail the members of %s on lost nodes: %w", id, err)
	}
	type gone struct {
		ID      ids.ID
		Key     string
		Ordinal int
		Node    string
	}
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[gone])
	if err != nil || len(list) == 0 {
		return err
	}
	var drafts []event.Draft
	for _, one := range list {
		drafts = append(drafts, event.Draft{Type: lifecycle.EventMemberFailed, MemberID: one.ID,
			Message: fmt.Sprintf("%s %d is lost: node %s is lost for good; replace or remove it", one.Key, one.Ordinal, one.Node),
			Payload: map[string]any{"componentKey": one.Key, "index": one.Ordinal, "node": one.Node, "lost": true}})
	}
	if err := operation.RecountRoles(ctx, t, id); err != nil {
		return err
	}
	return event.Append(ctx, t, instance, drafts...)
}
