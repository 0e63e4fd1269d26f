package steps

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/queue"
	"github.com/gpuaas/app-platform/service/orphan"
	"github.com/gpuaas/app-platform/workers/engine"
	"github.com/gpuaas/app-platform/workers/parts"
)

// departure is members that leave for good, in the transaction that ends their operation.
type departure struct {
	about []ids.ID
	// step is the sweep that proves that nothing is left of them.
	step string
	// also are allocations that are let go of with those of the members.
	also []ids.ID
}

// departed is what a departure came to, as evidence.
type departed struct {
	Cleaned     parts.Cleaned           `json:"-"`
	Orphans     int                     `json:"orphans,omitempty"`
	Allocations map[ids.ID]orphan.Freed `json:"allocations,omitempty"`
}

// leave removes the members, lists what may be left of them, and lets go of allocations that nothing
// lives in any more. A task that came after the agents had looked sends the operation back to look
// again: asking for one waits for the member's row, so that none can come later than this.
func (w *work) leave(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked, d departure) (*departed,
	error) {
	out := &departed{Allocations: make(map[ids.ID]orphan.Freed)}
	if err := c.Evidence(d.step, &out.Cleaned); err != nil {
		return nil, err
	}
	if err := queue.WakeReleases(ctx, t, locked.Instance.ID); err != nil {
		return nil, err
	}
	members, err := remove(ctx, t, locked, d.about)
	if err != nil {
		return nil, err
	}
	later, err := parts.LaterThan(ctx, t, locked.Op, out.Cleaned.Residue)
	if err != nil {
		return nil, err
	}
	if later {
		return nil, &engine.RerunStep{Step: d.step, Message: "a node task was created after the agents had checked",
			State: parts.Rounds{Round: out.Cleaned.Rounds, Again: t.Now}}
	}
	if err := w.list(ctx, t, locked, members, out); err != nil {
		return nil, err
	}
	return out, w.letGo(ctx, t, locked, members, d.also, out)
}

// remove makes members REMOVED by legal steps and answers them.
func remove(ctx context.Context, t *tx.Tx, locked *engine.Locked, about []ids.ID) ([]*db.Member, error) {
	_, err := t.Exec(ctx, `UPDATE member SET status = 'REMOVING' WHERE id = ANY ($1) AND instance_id = $2
		AND status NOT IN ('REMOVING', 'REMOVED')`,
		about, locked.Instance.ID)
	if err != nil {
		return nil, fmt.Errorf("remove members of %s: %w", locked.Instance.ID, err)
	}
	found, err := t.Query(ctx, `UPDATE member SET status = 'REMOVED', health = 'UNKNOWN', health_message = '',
		updated_at = $3, last_operation_id = $4,
		correlation_id = $5 WHERE id = ANY ($1) AND instance_id = $2 AND status = 'REMOVING'
		RETURNING `+rows.MemberColumns,
		about, locked.Instance.ID, t.Now, locked.Op.ID, locked.Op.CorrelationID)
	if err != nil {
		return nil, fmt.Errorf("remove members of %s: %w", locked.Instance.ID, err)
	}
	members, err := pgx.CollectRows(found, rows.Member)
	if err != nil {
		return nil, fmt.Errorf("remove members of %s: %w", locked.Instance.ID, err)
	}
	return members, nil
}

// list opens an orphan for each member of which it is not proved that nothing is left.
func (w *work) list(ctx context.Context, t *tx.Tx, locked *engine.Locked, members []*db.Member, out *departed) error {
	var drafts []orphan.Draft
	for _, member := range members {
		reason, missing := out.Cleaned.Missing(member.ID)
		if !missing || member.NodeID == nil || locked.Op.DispatchAttempt == 0 {
			continue
		}
		draft := orphan.Draft{Kind: lifecycle.OrphanNodeResidue, OperationID: locked.Op.ID, MemberID: member.ID,
			NodeID: *member.NodeID,
			Owner:  operation.OwnerNode, CorrelationID: locked.Op.CorrelationID,
			Message: fmt.Sprintf("something of %s %d may be left on its node: %s", member.ComponentKey,
				member.Ordinal, reason)}
		if member.AllocationID != nil {
			draft.AllocationID = *member.AllocationID
		}
		drafts = append(drafts, draft)
	}
	told, err := orphan.Open(ctx, t, locked.Instance, drafts...)
	out.Orphans = len(drafts)
	locked.Left = locked.Left || len(drafts) > 0
	locked.Emit(told...)
	return err
}

// letGo frees what the members lived in, if nothing lives in it any more.
func (w *work) letGo(ctx context.Context, t *tx.Tx, locked *engine.Locked, members []*db.Member, also []ids.ID,
	out *departed) error {
	var all []string
	for _, member := range members {
		if member.AllocationID != nil {
			all = append(all, string(*member.AllocationID))
		}
	}
	for _, id := range also {
		all = append(all, string(id))
	}
	var told []event.Draft
	for _, id := range slices.Compact(slices.Sorted(slices.Values(all))) {
		freed, more, err := orphan.Free(ctx, t, locked.Instance, ids.ID(id))
		if err != nil {
			return err
		}
		out.Allocations[ids.ID(id)] = freed
		told = append(told, more...)
	}
	locked.Emit(told...)
	return nil
}

// outcomeOf returns how well a success is proved: a forced one is never NORMAL, and one without proof is
// UNVERIFIED.
func outcomeOf(c *engine.Context, left int) lifecycle.Outcome {
	_, forced := c.ForcedSince()
	switch {
	case left > 0:
		return lifecycle.OutcomeUnverified
	case forced:
		return lifecycle.OutcomeForced
	}
	return lifecycle.OutcomeNormal
}
