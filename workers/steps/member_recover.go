package steps

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/roles"
	"github.com/gpuaas/app-platform/workers/engine"
	"github.com/gpuaas/app-platform/workers/parts"
)

// recover brings failed members in again. Those that do not join are FAILED as before.
func (w *work) recover() engine.Kind {
	return engine.Kind{
		Kind: lifecycle.MemberRecover,
		Steps: []engine.Step{w.prepareMembers(opening{
			title: "checking the member's node", about: parts.Targets, arriving: parts.Targets, next: joining,
		}), w.dispatch(), w.Await(), w.Verify(parts.Targets)},
		Complete: func(ctx context.Context, t *tx.Tx, c *engine.Context, locked *engine.Locked) (any, string, error) {
			if err := join(ctx, t, locked, locked.Op.Targets); err != nil {
				return nil, "", err
			}
			proof, err := proofOfJoin(c, locked.Op.Targets)
			return proof, "recovered", err
		},
		Undo:   []engine.Step{w.Withdraw()},
		OnFail: failAgain,
		Cancel: w.Stop,
	}
}

// failAgain leaves members that did not join as FAILED.
func failAgain(ctx context.Context, t *tx.Tx, _ *engine.Context, locked *engine.Locked, _ operation.Failure) error {
	_, err := t.Exec(ctx, `UPDATE member SET status = 'FAILED', health = 'UNKNOWN', updated_at = $2 WHERE id = ANY ($1)
		AND status = 'JOINING'`,
		locked.Op.Targets, t.Now)
	if err != nil {
		return fmt.Errorf("fail members of %s: %w", locked.Instance.ID, err)
	}
	return roles.Recount(ctx, t, locked.Instance.ID)
}

// kept is a member that stays as it is while another operation's work begins.
func kept(member *db.Member) parts.Was {
	return parts.Was{Status: member.Status, Cordoned: member.Cordoned}
}
