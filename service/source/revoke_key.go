package source

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// RevokeKey revokes a key for good; one that is revoked stays as it is. Key: source.manage on its source's
// tenant, or on the platform. Faults: INVALID_ARGUMENT at reason, which is needed, NOT_FOUND, FORBIDDEN.
func (s *Service) RevokeKey(ctx context.Context, id ids.ID, reason string) (out *db.SignerKey, err error) {
	var input check.Input
	input.Text("reason", reason, 1, check.MaxReason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = revokeKey(ctx, t, id, reason)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func revokeKey(ctx context.Context, t *tx.Tx, id ids.ID, reason string) (*db.SignerKey, error) {
	const action = "revokeSignerKey"
	load := func(how string) (*db.SignerKey, error) {
		found, err := one(ctx, t, rows.SignerKey, `SELECT `+rows.SignerKeyColumns+`
			FROM signer_key WHERE id = $1`+how, id)
		if err == nil && found == nil {
			err = audit.Missing(t, action, authz.SourceManage, id)
		}
		return found, err
	}
	before, err := load("")
	if err != nil {
		return nil, err
	}
	where := owner(before.TenantID)
	if err := audit.Require(t, action, authz.SourceManage, where, id); err != nil {
		return nil, err
	}
	if before, err = load(" FOR UPDATE"); err != nil || before.RevokedAt != nil {
		return before, err
	}
	after, err := one(ctx, t, rows.SignerKey,
		`UPDATE signer_key SET revoked_at = $2, revoke_reason = $3 WHERE id = $1
			RETURNING `+rows.SignerKeyColumns, id, t.Now, reason)
	if err != nil {
		return nil, fmt.Errorf("revoke key %s: %w", id, err)
	}
	return after, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.SourceManage, Object: where, ObjectID: id,
		Before: keyTrail(before), After: keyTrail(after), Reason: reason})
}
