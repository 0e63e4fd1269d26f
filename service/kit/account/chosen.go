// Package account loads the service accounts that verbs name for something else to act by.
package account

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbaccount "github.com/gpuaas/app-platform/ent/generated/db/serviceaccount"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Chosen loads the account that an instance of the project is to be operated by. It must be a live one of the project,
// or else it is NOT_FOUND at the path, whether it is another project's or does not exist. The caller must be able to
// give each of its keys, as for a new account (FORBIDDEN): otherwise it would act through an adapter by rights that it
// lacks. A limited account, and so an adapter that acts by one, chooses none with wider limits.
func Chosen(ctx context.Context, t *tx.Tx, id ids.ID, in authz.Object, path string) (*db.ServiceAccount, error) {
	row, err := t.ServiceAccount.Query().Where(dbaccount.ID(id), dbaccount.ProjectID(in.ProjectID),
		dbaccount.DeletedAtIsNil()).Only(ctx)
	if db.IsNotFound(err) {
		return nil, fault.New(fault.NotFound,
			"the project has no service account %.40q: choose one of its own that is not "+
				"deleted, or create one", id).At(path)
	}
	if err != nil {
		return nil, fmt.Errorf("load service account %s: %w", id, err)
	}
	if err := authz.RequireDelegate(t.Actor, row.PermissionKeys, in.TenantID, in.ProjectID); err != nil {
		if refused, ok := fault.As(err); ok && refused.Code == fault.Forbidden {
			return nil, fault.New(fault.Forbidden, "the adapter would act with keys that you may not give: %s",
				refused.Message).At(path).
				With(refused.Reasons...).Because(err)
		}
		return nil, err
	}
	return row, within(t.Actor, row, path)
}

// within refuses an account that may do more at a time than the caller that chooses it. The objects that it reaches do
// not matter: the adapter reaches the instance alone.
func within(actor *authz.Actor, row *db.ServiceAccount, path string) error {
	var limits authz.Limits
	if len(row.Limits) > 0 {
		if err := json.Unmarshal(row.Limits, &limits); err != nil {
			return fmt.Errorf("limits of service account %s: %w", row.ID, err)
		}
	}
	limits.Objects = actor.Limits.Objects
	wider, _ := actor.Limits.Compare(limits)
	if len(wider) == 0 {
		return nil
	}
	return fault.New(fault.Forbidden,
		"service account %s has wider limits than you have: choose one with limits as narrow",
		row.Name).At(path).With(fault.Reason{Code: fault.AccountLimit, Message: "limits." + wider[0]})
}

// Live loads an account that an adapter is to act by: one that is not deleted and holds adapter.act. projectID is the
// only project that it may be of, empty for any. NOT_FOUND or FAILED_PRECONDITION at the path.
func Live(ctx context.Context, t *tx.Tx, id, projectID ids.ID, path string) error {
	query := t.ServiceAccount.Query().Where(dbaccount.ID(id), dbaccount.DeletedAtIsNil())
	if projectID != "" {
		query.Where(dbaccount.ProjectID(projectID))
	}
	row, err := query.Only(ctx)
	if db.IsNotFound(err) {
		return fault.New(fault.NotFound, "there is no service account %.40q that the adapter could use", id).At(path)
	}
	if err != nil {
		return fmt.Errorf("load service account %s: %w", id, err)
	}
	for _, key := range row.PermissionKeys {
		if key == authz.AdapterAct.String() {
			return nil
		}
	}
	return fault.New(fault.FailedPrecondition, "service account %s does not have adapter.act: add it "+
		"(updateServiceAccount), or choose another one", row.Name).At(path)
}
