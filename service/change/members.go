package change

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Seat makes the members that come, PENDING on the nodes of their allocations, and binds those
// allocations to the instance.
func (c *Change) Seat(ctx context.Context, t *tx.Tx) error {
	creates := make([]*db.MemberCreate, 0, len(c.Seats))
	bound := make([]ids.ID, 0, len(c.Seats))
	for _, seat := range c.Seats {
		creates = append(creates, t.Member.Create().SetID(seat.ID).SetTenantID(c.Instance.TenantID).SetProjectID(c.Instance.ProjectID).
			SetInstanceID(c.Instance.ID).SetComponentKey(seat.ComponentKey).SetOrdinal(seat.Ordinal).SetStatus(lifecycle.MemberPending).
			SetAllocationID(seat.Allocation.ID).SetNillableNodeID(seat.Allocation.NodeID).SetLastOperationID(c.Operation.ID).
			SetCorrelationID(c.Operation.CorrelationID).SetCreatedAt(t.Now).SetUpdatedAt(t.Now))
		bound = append(bound, seat.Allocation.ID)
	}
	if err := t.Member.CreateBulk(creates...).Exec(ctx); err != nil {
		return fmt.Errorf("create members of %s: %w", c.Instance.ID, err)
	}
	if _, err := t.Exec(ctx, `UPDATE allocation SET instance_id = $1 WHERE id = ANY ($2)`, c.Instance.ID, bound); err != nil {
		return fmt.Errorf("bind allocations to %s: %w", c.Instance.ID, err)
	}
	return nil
}

// Ask raises or lowers the members asked for, as the change says.
func (c *Change) Ask(ctx context.Context, t *tx.Tx) error {
	key, more := c.More()
	if more == 0 {
		return nil
	}
	return operation.WantMore(ctx, t, c.Instance, key, more)
}
