package identity

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// DeleteServiceAccount deletes a service account; its keys, and the tokens they were exchanged for, end at once,
// and its name is free again. Key: identity.service_account.delete on its project.
func (s *Service) DeleteServiceAccount(ctx context.Context, id ids.ID, reason string) (out *db.ServiceAccount,
	err error) {
	const action = "deleteServiceAccount"
	var input check.Input
	input.Reason("reason", reason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		if out, err = lockAccount(ctx, t, action, authz.ServiceAccountDelete, id); err != nil {
			return err
		}
		before := account(out)
		if out, err = out.Update().SetDeletedAt(t.Now).SetUpdatedAt(t.Now).Save(ctx); err != nil {
			return fmt.Errorf("delete service account %s: %w", id, err)
		}
		ended, err := t.Exec(ctx,
			`UPDATE service_account_key SET revoked_at = $2 WHERE service_account_id = $1
				AND revoked_at IS NULL`, id, t.Now)
		if err != nil {
			return fmt.Errorf("revoke the keys of %s: %w", id, err)
		}
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ServiceAccountDelete, ObjectID: id,
			Object: authz.Object{TenantID: out.TenantID, ProjectID: out.ProjectID},
			Before: before, After: map[string]any{"deletedAt": t.Now, "keysRevoked": ended.RowsAffected()},
			Reason: reason})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
