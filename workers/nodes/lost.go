package nodes

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	dbinstance "github.com/gpuaas/app-platform/ent/generated/db/instance"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// maxLostAllocations bounds the allocations that one look fails; the others come with the next.
const maxLostAllocations = 500

// keeper is who fails what was rented on a lost node.
var keeper = authz.System("nodes")

// rentedLost is an allocation on a node that is lost.
type rentedLost struct {
	ID       ids.ID
	Name     string
	Node     string
	Instance *ids.ID
}

// rentedLostSQL goes from each lost node to what is held there, since both are few.
const rentedLostSQL = `SELECT a.id, a.name, n.name, a.instance_id FROM compute_node n CROSS JOIN LATERAL (
		SELECT id, name, instance_id FROM allocation
		WHERE node_id = n.id AND status = 'READY' AND released_at IS NULL ORDER BY id LIMIT $1) a
	WHERE n.lost ORDER BY a.id LIMIT $1`

// Lost makes what was rented on nodes FAILED that an operator retired as lost for good, and appends that to the
// instances' timelines. Their members are failed as those of every lost node are: see workers/repair.
func (k *Keeper) Lost(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, err := k.DB.Worker().Query(ctx, rentedLostSQL, maxLostAllocations)
	if err != nil {
		return fmt.Errorf("list what was rented on lost nodes: %w", err)
	}
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[rentedLost])
	if err != nil {
		return fmt.Errorf("list what was rented on lost nodes: %w", err)
	}
	for _, one := range list {
		if err := k.DB.As(ctx, keeper, func(ctx context.Context, t *tx.Tx) error {
			return fail(ctx, t, one)
		}); err != nil {
			return fmt.Errorf("fail allocation %s: %w", one.ID, err)
		}
	}
	return nil
}

// fail locks the instance before its allocation, as everywhere.
func fail(ctx context.Context, t *tx.Tx, one rentedLost) error {
	told := event.Draft{Type: lifecycle.EventAllocationFailed,
		Message: fmt.Sprintf("allocation %s has failed: its node %s is lost for good", one.Name, one.Node),
		Payload: map[string]any{"allocation": one.ID, "status": lifecycle.AllocationFailed}}
	if one.Instance == nil {
		return failFree(ctx, t, one.ID, told)
	}
	instance, err := t.Instance.Query().Where(dbinstance.ID(*one.Instance)).ForUpdate().Only(ctx)
	if err != nil {
		return fmt.Errorf("lock instance %s: %w", *one.Instance, err)
	}
	failed, err := t.Exec(ctx, `UPDATE allocation SET status = 'FAILED' WHERE id = $1 AND status = 'READY'
		AND instance_id = $2`,
		one.ID, instance.ID)
	if err != nil || failed.RowsAffected() == 0 {
		return err
	}
	return event.Append(ctx, t, instance, told)
}

// failFree fails an allocation that no instance uses.
func failFree(ctx context.Context, t *tx.Tx, id ids.ID, told event.Draft) error {
	failed, err := t.Exec(ctx, `UPDATE allocation SET status = 'FAILED' WHERE id = $1 AND status = 'READY'
		AND instance_id IS NULL`, id)
	if err != nil || failed.RowsAffected() == 0 {
		return err
	}
	allocation, err := t.Allocation.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("load allocation %s: %w", id, err)
	}
	return event.AppendFree(t, allocation, told)
}
