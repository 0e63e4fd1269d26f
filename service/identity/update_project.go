package identity

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// UpdateProject renames a project. Key: project.update on it.
func (s *Service) UpdateProject(ctx context.Context, in RenameInput) (out *db.Project, err error) {
	const action = "updateProject"
	if err := in.check(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = projectOf(ctx, t, action, authz.ProjectUpdate, in.ID)
		if err != nil {
			return err
		}
		object := authz.Object{TenantID: out.TenantID, ProjectID: out.ID}
		if err := audit.Require(t, action, authz.ProjectUpdate, object, out.ID); err != nil {
			return err
		}
		before := map[string]any{"displayName": out.DisplayName}
		done, err := t.Exec(ctx, `UPDATE project SET display_name = $2 WHERE id = $1`, out.ID, in.DisplayName)
		if err != nil {
			return fmt.Errorf("rename project %s: %w", out.ID, err)
		}
		if done.RowsAffected() == 0 { // it was deleted meanwhile
			return audit.Missing(t, action, authz.ProjectUpdate, out.ID)
		}
		out.DisplayName = in.DisplayName
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ProjectUpdate, Object: object,
			ObjectID: out.ID, Before: before, After: map[string]any{"displayName": in.DisplayName}, Reason: in.Reason})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
