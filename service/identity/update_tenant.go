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

// RenameInput gives a tenant or a project another name for people.
type RenameInput struct {
	ID                  ids.ID
	DisplayName, Reason string
}

func (in *RenameInput) check() error {
	var input check.Input
	input.Text("input.displayName", in.DisplayName, 1, 100)
	input.Reason("input.reason", in.Reason)
	return input.Err()
}

// UpdateTenant renames a tenant. Key: tenant.update on it.
func (s *Service) UpdateTenant(ctx context.Context, in RenameInput) (out *db.Tenant, err error) {
	const action = "updateTenant"
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = tenantOf(ctx, t, action, authz.TenantUpdate, in.ID)
		if err != nil {
			return err
		}
		object := authz.Object{TenantID: out.ID}
		if err := audit.Require(t, action, authz.TenantUpdate, object, out.ID); err != nil {
			return err
		}
		before := map[string]any{"displayName": out.DisplayName}
		if _, err := t.Exec(ctx, `UPDATE tenant SET display_name = $2
			WHERE id = $1`, out.ID, in.DisplayName); err != nil {
			return fmt.Errorf("rename tenant %s: %w", out.ID, err)
		}
		out.DisplayName = in.DisplayName
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.TenantUpdate, Object: object,
			ObjectID: out.ID, Before: before, After: map[string]any{"displayName": in.DisplayName}, Reason: in.Reason})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
