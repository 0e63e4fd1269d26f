package identity

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbaccount "github.com/gpuaas/app-platform/ent/generated/db/serviceaccount"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// UpdateServiceAccountInput is what changes of a service account; nil parts stay.
type UpdateServiceAccountInput struct {
	ServiceAccountID ids.ID
	PermissionKeys   []string
	Limits           *AccountLimits
	Reason           string
}

// UpdateServiceAccount changes what a service account may do, with the next thing it does. Key:
// identity.service_account.update on its project; keys that are new to it must be the caller's own, and so must
// all of them when its limits change, since looser limits give more of each.
func (s *Service) UpdateServiceAccount(ctx context.Context, in UpdateServiceAccountInput) (out *db.ServiceAccount, err error) {
	in.PermissionKeys = slices.Clone(in.PermissionKeys)
	var input check.Input
	if in.PermissionKeys != nil && (len(in.PermissionKeys) == 0 || len(in.PermissionKeys) > len(authz.Keys())) {
		input.Bad("input.permissionKeys", "1 to %d permission keys", len(authz.Keys()))
	}
	if in.PermissionKeys == nil && in.Limits == nil {
		input.Bad("input", "permissionKeys, limits or both must be given")
	}
	in.Limits.check(&input, "input.limits")
	input.Reason("input.reason", in.Reason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = updateServiceAccount(ctx, t, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func updateServiceAccount(ctx context.Context, t *tx.Tx, in UpdateServiceAccountInput) (*db.ServiceAccount, error) {
	const action = "updateServiceAccount"
	row, err := lockAccount(ctx, t, action, authz.ServiceAccountUpdate, in.ServiceAccountID)
	if err != nil {
		return nil, err
	}
	object := authz.Object{TenantID: row.TenantID, ProjectID: row.ProjectID}
	if err := in.delegable(t, row); err != nil {
		return nil, audit.Attempted(t, action, authz.ServiceAccountUpdate, object, row.ID, below("input", err))
	}
	before, change := account(row), row.Update().SetUpdatedAt(t.Now)
	if in.PermissionKeys != nil {
		slices.Sort(in.PermissionKeys)
		change.SetPermissionKeys(slices.Compact(in.PermissionKeys))
	}
	if in.Limits != nil {
		stored, err := in.Limits.stored()
		if err != nil {
			return nil, err
		}
		if stored == nil {
			change.ClearLimits()
		} else {
			change.SetLimits(stored)
		}
	}
	if row, err = change.Save(ctx); err != nil {
		return nil, fmt.Errorf("change service account %s: %w", in.ServiceAccountID, err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ServiceAccountUpdate, Object: object, ObjectID: row.ID,
		Before: before, After: account(row), Reason: in.Reason})
}

// delegable refuses what the caller could not have given itself. Keys that the account has may stay, whoever gave
// them, unless its limits change.
func (in *UpdateServiceAccountInput) delegable(t *tx.Tx, row *db.ServiceAccount) error {
	if in.PermissionKeys == nil {
		return authz.RequireDelegate(t.Actor, row.PermissionKeys, row.TenantID, row.ProjectID)
	}
	if in.Limits != nil {
		return authz.RequireDelegate(t.Actor, in.PermissionKeys, row.TenantID, row.ProjectID)
	}
	for i, name := range in.PermissionKeys {
		if slices.Contains(row.PermissionKeys, name) {
			continue
		}
		err := authz.RequireDelegate(t.Actor, []string{name}, row.TenantID, row.ProjectID)
		if refused, ok := fault.As(err); ok && refused.Code == fault.InvalidArgument {
			return fault.New(fault.InvalidArgument, "%s", refused.Message).At(fmt.Sprintf("permissionKeys.%d", i))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// account is what the audit keeps of one.
func account(row *db.ServiceAccount) map[string]any {
	limits := row.Limits
	if len(limits) == 0 {
		limits = json.RawMessage("null")
	}
	return map[string]any{"name": row.Name, "permissionKeys": row.PermissionKeys, "limits": limits}
}

// lockAccount loads and locks a live service account, and authorises the caller. NOT_FOUND for one that was
// deleted.
func lockAccount(ctx context.Context, t *tx.Tx, action string, key authz.Key, id ids.ID) (*db.ServiceAccount, error) {
	row, err := t.ServiceAccount.Query().Where(dbaccount.ID(id)).ForUpdate().Only(ctx)
	if db.IsNotFound(err) {
		return nil, audit.Missing(t, action, key, id)
	}
	if err != nil {
		return nil, fmt.Errorf("load service account %s: %w", id, err)
	}
	object := authz.Object{TenantID: row.TenantID, ProjectID: row.ProjectID}
	if err := audit.Require(t, action, key, object, id); err != nil {
		return nil, err
	}
	if row.DeletedAt != nil {
		return nil, audit.Missing(t, action, key, id)
	}
	return row, nil
}
