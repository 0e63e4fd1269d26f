package identity

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbbinding "github.com/gpuaas/app-platform/ent/generated/db/rolebinding"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// RevokeRole takes a role away at once. Key: identity.binding.revoke at its scope, and the keys of
// the role itself. The last platform operator stays (FAILED_PRECONDITION). A binding that was
// taken away before is answered as it is.
func (s *Service) RevokeRole(ctx context.Context, id ids.ID, reason string) (out *db.RoleBinding, err error) {
	var input check.Input
	input.Reason("reason", reason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = revokeRole(ctx, t, id, reason)
		return err
	})
	return out, err
}

func revokeRole(ctx context.Context, t *tx.Tx, id ids.ID, reason string) (*db.RoleBinding, error) {
	const action = "revokeRole"
	row, err := t.RoleBinding.Query().Where(dbbinding.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, audit.Missing(t, action, authz.BindingRevoke, id)
	}
	if err != nil {
		return nil, fmt.Errorf("load binding %s: %w", id, err)
	}
	object := authz.Object{TenantID: rows.Value(row.TenantID), ProjectID: rows.Value(row.ProjectID)}
	if err := audit.Require(t, action, authz.BindingRevoke, object, id); err != nil {
		return nil, err
	}
	if err := authz.RequireGrant(t.Actor, authz.Role(row.Role), object.TenantID, object.ProjectID); err != nil {
		return nil, audit.Refused(t, action, authz.BindingRevoke, object, id, err)
	}
	if object == (authz.Object{}) {
		if err := keepsAnOperator(ctx, t, id); err != nil {
			return nil, err
		}
	}
	if row, err = t.RoleBinding.Query().Where(dbbinding.ID(id)).ForUpdate().Only(ctx); err != nil {
		return nil, fmt.Errorf("lock binding %s: %w", id, err)
	}
	if row.RevokedAt != nil {
		return row, nil
	}
	before := binding(row)
	if row, err = row.Update().SetRevokedAt(t.Now).Save(ctx); err != nil {
		return nil, fmt.Errorf("revoke binding %s: %w", id, err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.BindingRevoke, Object: object, ObjectID: id,
		Before: before, Reason: reason})
}

// keepsAnOperator refuses to leave the platform without anyone who may give roles. It locks all
// operators' bindings, so that two of them cannot remove each other at once.
func keepsAnOperator(ctx context.Context, t *tx.Tx, but ids.ID) error {
	operators, err := t.RoleBinding.Query().Where(dbbinding.Role(string(authz.PlatformOperator)),
		dbbinding.TenantIDIsNil(),
		dbbinding.RevokedAtIsNil(), dbbinding.Or(dbbinding.ExpiresAtIsNil(), dbbinding.ExpiresAtGT(t.Now))).
		Order(db.Asc(dbbinding.FieldID)).ForUpdate().All(ctx)
	if err != nil {
		return fmt.Errorf("lock the operators: %w", err)
	}
	if len(operators) == 1 && operators[0].ID == but {
		return fault.New(fault.FailedPrecondition,
			"this is the last platform operator: give the role to someone else first").At("bindingId")
	}
	return nil
}
