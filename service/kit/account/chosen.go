// Package account loads the service accounts that verbs name for something else to act by.
package account

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbaccount "github.com/gpuaas/app-platform/ent/generated/db/serviceaccount"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Chosen loads the account that an instance of the project is to be operated by. It must be a live one of the project,
// or else it is NOT_FOUND at the path, whether it is another project's or nobody's. The caller must be able to give each
// of its keys, as for a new account (FORBIDDEN): otherwise one would act through an adapter by rights that one lacks.
func Chosen(ctx context.Context, t *tx.Tx, id ids.ID, in authz.Object, path string) (*db.ServiceAccount, error) {
	row, err := t.ServiceAccount.Query().Where(dbaccount.ID(id), dbaccount.ProjectID(in.ProjectID),
		dbaccount.DeletedAtIsNil()).Only(ctx)
	if db.IsNotFound(err) {
		return nil, fault.New(fault.NotFound, "the project has no service account %.40q: choose one of its own that is not "+
			"deleted, or create one", id).At(path)
	}
	if err != nil {
		return nil, fmt.Errorf("load service account %s: %w", id, err)
	}
	if err := authz.RequireDelegate(t.Actor, row.PermissionKeys, in.TenantID, in.ProjectID); err != nil {
		if refused, ok := fault.As(err); ok && refused.Code == fault.Forbidden {
			return nil, fault.New(fault.Forbidden, "the adapter would act by what you may not give: %s", refused.Message).At(path).
				With(refused.Reasons...).Because(err)
		}
		return nil, err
	}
	return row, nil
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
		return fault.New(fault.NotFound, "there is no service account %.40q that the adapter could act by", id).At(path)
	}
	if err != nil {
		return fmt.Errorf("load service account %s: %w", id, err)
	}
	for _, key := range row.PermissionKeys {
		if key == authz.AdapterAct.String() {
			return nil
		}
	}
	return fault.New(fault.FailedPrecondition, "service account %s does not hold adapter.act: add it "+
		"(updateServiceAccount), or choose another one", row.Name).At(path)
}
