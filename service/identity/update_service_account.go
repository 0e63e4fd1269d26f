package identity

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbaccount "github.com/gpuaas/app-platform/ent/generated/db/serviceaccount"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/maker"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// UpdateServiceAccountInput is what changes of a service account; what is not named stays.
type UpdateServiceAccountInput struct {
	ServiceAccountID ids.ID
	PermissionKeys   []string
	Limits           *AccountLimits // those that are set
	LiftLimits       []lifecycle.AccountLimit
	Reason           string
}

// UpdateServiceAccount changes what a service account may do, with the next thing it does. Limits change one by one.
// Key: identity.service_account.update on its project; keys that are new to it must be the caller's own, and so must
// all of them when a limit is widened, since a looser limit gives more of each.
func (s *Service) UpdateServiceAccount(ctx context.Context, in UpdateServiceAccountInput) (out *db.ServiceAccount,
	err error) {
	if err := in.check(); err != nil {
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
	row, change, err := plannedAccount(ctx, t, action, in)
	if err != nil {
		return nil, err
	}
	before, update := account(row), row.Update().SetUpdatedAt(t.Now).SetPermissionKeys(change.PermissionKeys)
	stored, err := change.Limits.stored()
	if err != nil {
		return nil, err
	}
	if stored == nil {
		update.ClearLimits()
	} else {
		update.SetLimits(stored)
	}
	if err := answered(ctx, t, row, change, update); err != nil {
		return nil, err
	}
	if row, err = update.Save(ctx); err != nil {
		return nil, fmt.Errorf("change service account %s: %w", in.ServiceAccountID, err)
	}
	after := account(row)
	after["widens"], after["narrows"] = change.Widens, change.Narrows
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ServiceAccountUpdate, ObjectID: row.ID,
		Object: authz.Object{TenantID: row.TenantID, ProjectID: row.ProjectID}, Before: before, After: after,
		Reason: in.Reason})
}

// answered lets the caller answer for the account from now on, where they hold all that it may and give it more, or
// where its maker can answer for it no more. FAILED_PRECONDITION under break-glass: the whole account would end with
// that.
func answered(ctx context.Context, t *tx.Tx, row *db.ServiceAccount, change *AccountChange,
	update *db.ServiceAccountUpdateOne) error {
	object := authz.Object{TenantID: row.TenantID, ProjectID: row.ProjectID}
	can := gives(authz.ServiceAccountUpdate, change.PermissionKeys, object)
	if !can(t.Actor) {
		return nil
	}
	from, err := maker.Of(ctx, t, can)
	if err != nil || from.Maker == nil {
		return err
	}
	same := row.MakerID != nil && *row.MakerID == *from.Maker
	switch {
	case from.Under != nil && (row.MadeUnder == nil || *row.MadeUnder != *from.Under):
		if len(change.Widens) == 0 {
			return nil
		}
		return fault.New(fault.FailedPrecondition,
			"what is given under break-glass ends with it, and this account does not: create a separate account").
			At("input.serviceAccountId")
	case len(change.Widens) > 0 || same || row.MakerID == nil:
	default:
		lapsed, err := lapsed(ctx, t, row)
		if err != nil || !lapsed {
			return err
		}
	}
	update.SetMakerID(*from.Maker)
	if from.Under == nil {
		update.ClearMadeUnder()
	}
	return nil
}

// lapsed reports whether the account's maker may not give all that it may any more.
func lapsed(ctx context.Context, t *tx.Tx, row *db.ServiceAccount) (bool, error) {
	var raw []byte
	if err := t.QueryRow(ctx, `SELECT platform.account_voucher($1)`, row.ID).Scan(&raw); err != nil {
		return false, fmt.Errorf("load the maker of %s: %w", row.ID, err)
	}
	voucher, err := tx.ParseVoucher(raw)
	if err != nil {
		return false, fmt.Errorf("read the maker of %s: %w", row.ID, err)
	}
	return len(voucher.Vouched(row.PermissionKeys, row.TenantID, row.ProjectID, t.Now)) < len(row.PermissionKeys), nil
}

// delegable refuses what the caller could not have given itself. Keys that the account has may stay, no matter who gave
// them, unless one of its limits is widened.
func (in *UpdateServiceAccountInput) delegable(t *tx.Tx, row *db.ServiceAccount, change *AccountChange) error {
	if slices.ContainsFunc(change.Widens, func(part string) bool { return strings.HasPrefix(part, "limits.") }) {
		return authz.RequireDelegate(t.Actor, change.PermissionKeys, row.TenantID, row.ProjectID)
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
	return map[string]any{"name": row.Name, "permissionKeys": row.PermissionKeys, "limits": limits,
		"makerId": row.MakerID, "madeUnder": row.MadeUnder}
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
