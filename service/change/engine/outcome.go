package engine

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Outcome is an accepted change.
type Outcome struct {
	Instance *db.Instance
	// Member is the named one; nil when the request names none.
	Member *db.Member
	// Members are those that an addition or a replacement creates, by number.
	Members []*db.Member
	// Going are those that a removal takes out, by id.
	Going     []*db.Member
	Operation *operation.View
}

// recall reads back what the first use of an idempotency key created.
func recall(ctx context.Context, t *tx.Tx, locked *change.Locked, minted change.Minted) (out *Outcome, err error) {
	out = &Outcome{Instance: locked.Instance, Member: locked.Member}
	if locked.Launch != nil {
		if out.Instance, err = t.Instance.Get(ctx, minted.Instance); err != nil {
			return nil, fmt.Errorf("load instance %s: %w", minted.Instance, err)
		}
	}
	op, err := t.Operation.Get(ctx, minted.Operation)
	if err != nil {
		return nil, fmt.Errorf("load operation %s: %w", minted.Operation, err)
	}
	out.Operation = &operation.View{Operation: op}
	if op.Kind == lifecycle.MemberRemove {
		if out.Going, err = members(ctx, t, op.Targets, dbmember.FieldID); err != nil {
			return nil, err
		}
	}
	return out, out.loadMembers(ctx, t, minted)
}

// loadMembers reads the members that the change created.
func (o *Outcome) loadMembers(ctx context.Context, t *tx.Tx, minted change.Minted) (err error) {
	if len(minted.Members) == 0 {
		return nil
	}
	o.Members, err = members(ctx, t, minted.Members, dbmember.FieldOrdinal, dbmember.FieldID)
	return err
}

func members(ctx context.Context, t *tx.Tx, wanted []ids.ID, order ...string) ([]*db.Member, error) {
	found, err := t.Member.Query().Where(dbmember.IDIn(wanted...)).Order(db.Asc(order...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the members of a change: %w", err)
	}
	return found, nil
}
