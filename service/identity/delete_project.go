package identity

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// DeleteProject deletes a project in which nothing lives; its service accounts, their keys, its roles, webhooks and
// shares end in the same transaction, and after that only the audit shows it. Key: project.delete on it.
// FAILED_PRECONDITION, naming one, while it has an instance, allocation or operation that has not ended.
func (s *Service) DeleteProject(ctx context.Context, id ids.ID, reason string) (out *db.Project, err error) {
	var input check.Input
	input.Text("reason", reason, 1, check.MaxReason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = deleteProject(ctx, t, id, reason)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func deleteProject(ctx context.Context, t *tx.Tx, id ids.ID, reason string) (*db.Project, error) {
	const action = "deleteProject"
	seen, err := projectOf(ctx, t, action, authz.ProjectDelete, id)
	if err != nil {
		return nil, err
	}
	object := authz.Object{TenantID: seen.TenantID, ProjectID: id}
	if err := audit.Require(t, action, authz.ProjectDelete, object, id); err != nil {
		return nil, err
	}
	// The lock waits for transactions that add a row which refers to the project.
	row, err := t.Project.Query().Where(dbproject.ID(id)).ForUpdate().Only(ctx)
	if db.IsNotFound(err) {
		return nil, audit.Missing(t, action, authz.ProjectDelete, id)
	}
	if err != nil {
		return nil, fmt.Errorf("lock project %s: %w", id, err)
	}
	if err := empty(ctx, t, id); err != nil {
		return nil, audit.Refused(t, action, authz.ProjectDelete, object, id, err)
	}
	var ended json.RawMessage
	if err := t.QueryRow(ctx, `SELECT platform.delete_project($1, $2, $3)`, id, t.Actor.ID,
		reason).Scan(&ended); err != nil {
		return nil, fmt.Errorf("delete project %s: %w", id, err)
	}
	if ended == nil {
		return nil, audit.Missing(t, action, authz.ProjectDelete, id)
	}
	row.DeletedAt = &t.Now
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.ProjectDelete, Object: object, ObjectID: id,
		Reason: reason,
		Before: map[string]any{"slug": row.Slug, "displayName": row.DisplayName},
		After:  map[string]any{"deletedAt": t.Now, "ended": ended}})
}

// empty refuses while something lives in the project, and names it.
func empty(ctx context.Context, t *tx.Tx, project ids.ID) error {
	var what, id string
	err := t.QueryRow(ctx, `SELECT what, id FROM (
		(SELECT 1 AS place, 'instance' AS what, id FROM instance WHERE project_id = $1 AND released_at IS NULL ORDER BY id LIMIT 1) UNION ALL
		(SELECT 2, 'allocation', id FROM allocation WHERE project_id = $1 AND released_at IS NULL ORDER BY id LIMIT 1) UNION ALL
		(SELECT 3, 'operation', id FROM operation WHERE project_id = $1 AND ended_at IS NULL ORDER BY id LIMIT 1)) live
		ORDER BY place LIMIT 1`, project).Scan(&what, &id)
	if gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find what is left in project %s: %w", project, err)
	}
	return fault.New(fault.FailedPrecondition,
		"the project still has %s %s: only an empty project can be deleted", what, id).At("projectId")
}
