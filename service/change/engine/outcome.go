package engine

import (
	"context"
	"fmt"

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
	Members   []*db.Member
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
	return out, out.loadMembers(ctx, t, minted)
}

// loadMembers reads the members that the change created.
func (o *Outcome) loadMembers(ctx context.Context, t *tx.Tx, minted change.Minted) (err error) {
	if len(minted.Members) == 0 {
		return nil
	}
	o.Members, err = t.Member.Query().Where(dbmember.IDIn(minted.Members...)).
		Order(db.Asc(dbmember.FieldOrdinal, dbmember.FieldID)).All(ctx)
	if err != nil {
		return fmt.Errorf("load the new members of %s: %w", o.Instance.ID, err)
	}
	return nil
}
