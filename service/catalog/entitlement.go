package catalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbapp "github.com/gpuaas/app-platform/ent/generated/db/app"
	dbentitlement "github.com/gpuaas/app-platform/ent/generated/db/entitlement"
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/audit"
	"github.com/gpuaas/app-platform/service/check"
	"github.com/gpuaas/app-platform/service/rows"
)

// GrantEntitlement lets a project launch an app. Key: entitlement.manage on the project. A right
// that holds already is answered as it is.
func (s *Service) GrantEntitlement(ctx context.Context, projectID ids.ID, appSlug string) (out *db.Entitlement, err error) {
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = grant(ctx, t, projectID, appSlug)
		return err
	})
	return out, err
}

func grant(ctx context.Context, t *tx.Tx, projectID ids.ID, appSlug string) (*db.Entitlement, error) {
	const action = "grantEntitlement"
	object, err := authorise(ctx, t, action, projectID)
	if err != nil {
		return nil, err
	}
	known, err := t.App.Query().Where(dbapp.Slug(appSlug)).Exist(ctx)
	if err != nil {
		return nil, fmt.Errorf("load app %s: %w", appSlug, err)
	}
	if !known {
		return nil, fault.New(fault.NotFound, "there is no app %.40q", appSlug).At("appSlug")
	}
	tag, err := t.Exec(ctx, `INSERT INTO entitlement (id, tenant_id, project_id, app_slug, granted_by, created_at)
		VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (project_id, app_slug) WHERE revoked_at IS NULL DO NOTHING`,
		ids.New(ids.Entitlement), object.TenantID, object.ProjectID, appSlug, t.Actor.ID, t.Now)
	if err != nil {
		return nil, fmt.Errorf("grant entitlement: %w", err)
	}
	row, err := held(ctx, t, projectID, appSlug)
	if err != nil || tag.RowsAffected() == 0 {
		return row, err
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.EntitlementManage, Object: object, ObjectID: row.ID,
		After: map[string]any{"app": appSlug}})
}

// RevokeEntitlement stops a project from launching an app; what runs goes on. Key:
// entitlement.manage on the project. NOT_FOUND when the project holds no such right.
func (s *Service) RevokeEntitlement(ctx context.Context, projectID ids.ID, appSlug, reason string) (out *db.Entitlement, err error) {
	var input check.Input
	input.Reason("reason", reason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = revoke(ctx, t, projectID, appSlug, reason)
		return err
	})
	return out, err
}

func revoke(ctx context.Context, t *tx.Tx, projectID ids.ID, appSlug, reason string) (*db.Entitlement, error) {
	const action = "revokeEntitlement"
	object, err := authorise(ctx, t, action, projectID)
	if err != nil {
		return nil, err
	}
	row, err := held(ctx, t, projectID, appSlug)
	if db.IsNotFound(err) {
		return nil, fault.New(fault.NotFound, "the project is not entitled to app %.40q", appSlug).At("appSlug")
	}
	if err != nil {
		return nil, err
	}
	if row, err = row.Update().SetRevokedAt(t.Now).Save(ctx); err != nil {
		return nil, fmt.Errorf("revoke entitlement: %w", err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.EntitlementManage, Object: object, ObjectID: row.ID,
		Before: map[string]any{"app": appSlug}, Reason: reason})
}

// authorise loads the project and asks for entitlement.manage on it.
func authorise(ctx context.Context, t *tx.Tx, action string, id ids.ID) (authz.Object, error) {
	project, err := t.Project.Query().Where(dbproject.ID(id)).Only(ctx)
	if db.IsNotFound(err) {
		return authz.Object{}, audit.Missing(t, action, authz.EntitlementManage, id)
	}
	if err != nil {
		return authz.Object{}, fmt.Errorf("load project %s: %w", id, err)
	}
	object := authz.Object{TenantID: project.TenantID, ProjectID: project.ID}
	return object, audit.Require(t, action, authz.EntitlementManage, object, id)
}

// held is the right that holds now, locked.
func held(ctx context.Context, t *tx.Tx, projectID ids.ID, appSlug string) (*db.Entitlement, error) {
	return t.Entitlement.Query().Where(dbentitlement.ProjectID(projectID), dbentitlement.AppSlug(appSlug),
		dbentitlement.RevokedAtIsNil()).ForUpdate().Only(ctx)
}

// Entitled says which of the apps a project may launch. Key: entitlement.read on the project.
func (s *Service) Entitled(ctx context.Context, projectID ids.ID, slugs []string) (map[string]bool, error) {
	var project *db.Project
	var live []string
	actor, err := s.DB.Read(ctx,
		tx.Row(&project, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1`, projectID),
		tx.Rows(&live, pgx.RowTo[string], `SELECT app_slug FROM entitlement WHERE project_id = $1 AND app_slug = ANY ($2) AND revoked_at IS NULL`,
			projectID, slugs))
	if err != nil {
		return nil, err
	}
	if project == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.Require(actor, authz.EntitlementRead, project.TenantID, project.ID); err != nil {
		return nil, err
	}
	out := make(map[string]bool, len(slugs))
	for _, slug := range slugs {
		out[slug] = false
	}
	for _, slug := range live {
		out[slug] = true
	}
	return out, nil
}

// Entitlement reads one right, also one that was taken away. Key: entitlement.read on its project.
func (s *Service) Entitlement(ctx context.Context, id ids.ID) (*db.Entitlement, error) {
	var row *db.Entitlement
	actor, err := s.DB.Read(ctx, tx.Row(&row, scanEntitlement, `SELECT id, tenant_id, project_id, app_slug, granted_by, revoked_at, created_at
		FROM entitlement WHERE id = $1`, id))
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.Require(actor, authz.EntitlementRead, row.TenantID, row.ProjectID); err != nil {
		return nil, err
	}
	return row, nil
}

func scanEntitlement(row pgx.CollectableRow) (*db.Entitlement, error) {
	x := new(db.Entitlement)
	return x, row.Scan(&x.ID, &x.TenantID, &x.ProjectID, &x.AppSlug, &x.GrantedBy, &x.RevokedAt, &x.CreatedAt)
}

// EntitlementLimits are how far an entitlement goes; nil parts have no bound.
type EntitlementLimits struct {
	MaxInstances, MaxMembers, MaxGpus *int
	Versions                          []string
}
