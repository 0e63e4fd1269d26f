package identity

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// one reads one row under row-level security, and lets it out when the caller may see it.
func one[T any](ctx context.Context, d *tx.DB, scan func(pgx.CollectableRow) (*T, error), sql string, id ids.ID,
	may func(*authz.Actor, *T) error) (*T, error) {
	var row *T
	actor, err := d.Read(ctx, tx.Row(&row, scan, sql, id))
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, fault.NoSuch()
	}
	if err := may(actor, row); err != nil {
		return nil, err
	}
	return row, nil
}

// Tenant reads one tenant. Key: tenant.read, or it is the caller's own.
func (s *Service) Tenant(ctx context.Context, id ids.ID) (*db.Tenant, error) {
	return one(ctx, s.DB, rows.Tenant, `SELECT `+rows.TenantColumns+` FROM tenant WHERE id = $1`, id,
		func(actor *authz.Actor, row *db.Tenant) error {
			if actor.TenantID == row.ID {
				return nil
			}
			return authz.Require(actor, authz.TenantRead, row.ID, "")
		})
}

// User reads one person. Key: identity.user.read on the person's tenant or the platform, or it is
// the caller.
func (s *Service) User(ctx context.Context, id ids.ID) (*db.User, error) {
	return one(ctx, s.DB, rows.User, `SELECT `+rows.UserColumns+` FROM person WHERE id = $1`, id,
		func(actor *authz.Actor, row *db.User) error {
			if actor.ID == row.ID {
				return nil
			}
			return authz.Require(actor, authz.UserRead, rows.Value(row.TenantID), "")
		})
}

// ServiceAccount reads one service account. Key: identity.service_account.read, or it is the caller.
func (s *Service) ServiceAccount(ctx context.Context, id ids.ID) (*db.ServiceAccount, error) {
	return one(ctx, s.DB, rows.ServiceAccount, `SELECT `+rows.ServiceAccountColumns+`
		FROM service_account WHERE id = $1`, id,
		func(actor *authz.Actor, row *db.ServiceAccount) error {
			if actor.ID == row.ID {
				return nil
			}
			return authz.Require(actor, authz.ServiceAccountRead, row.TenantID, row.ProjectID)
		})
}

// ServiceAccountKey reads one key, without its secret. Key: identity.service_account.read.
func (s *Service) ServiceAccountKey(ctx context.Context, id ids.ID) (*db.ServiceAccountKey, error) {
	return one(ctx, s.DB, rows.ServiceAccountKey, `SELECT `+rows.ServiceAccountKeyColumns+`
		FROM service_account_key WHERE id = $1`, id,
		func(actor *authz.Actor, row *db.ServiceAccountKey) error {
			return authz.Require(actor, authz.ServiceAccountRead, row.TenantID, row.ProjectID)
		})
}

// RoleBinding reads one binding. Key: identity.binding.read at its scope, or it is the caller's own.
func (s *Service) RoleBinding(ctx context.Context, id ids.ID) (*db.RoleBinding, error) {
	return one(ctx, s.DB, rows.RoleBinding, `SELECT `+rows.RoleBindingColumns+` FROM role_binding WHERE id = $1`, id,
		func(actor *authz.Actor, row *db.RoleBinding) error {
			if actor.ID == row.UserID {
				return nil
			}
			return authz.Require(actor, authz.BindingRead, rows.Value(row.TenantID), rows.Value(row.ProjectID))
		})
}
