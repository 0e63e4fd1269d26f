package entitlement

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbentitlement "github.com/gpuaas/app-platform/ent/generated/db/entitlement"
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// RevokeEntitlement stops a project from launching an app; what runs goes on. Key:
// entitlement.manage on the project. NOT_FOUND when the project holds no such right.
func (s *Service) RevokeEntitlement(ctx context.Context, projectID ids.ID, appSlug, reason string) (out *db.Entitlement,
	err error) {
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
	if err == nil && row == nil {
		return nil, fault.New(fault.NotFound, "the project is not entitled to app %.40q", appSlug).At("appSlug")
	}
	if err != nil {
		return nil, err
	}
	before := granted(row)
	if row, err = row.Update().SetRevokedAt(t.Now).Save(ctx); err != nil {
		return nil, fmt.Errorf("revoke entitlement: %w", err)
	}
	return row, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.EntitlementManage, Object: object,
		ObjectID: row.ID,
		Before:   before, Reason: reason})
}

// authorise loads the project and requires entitlement.manage on it.
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

// held returns the entitlement that was not revoked, locked along with what launches rest on; nil without one. It may
// have expired.
func held(ctx context.Context, t *tx.Tx, projectID ids.ID, appSlug string) (*db.Entitlement, error) {
	if err := overlay.Lock(ctx, t, projectID, true); err != nil {
		return nil, err
	}
	row, err := t.Entitlement.Query().Where(dbentitlement.ProjectID(projectID), dbentitlement.AppSlug(appSlug),
		dbentitlement.RevokedAtIsNil()).ForUpdate().Only(ctx)
	if db.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load the entitlement of %s: %w", projectID, err)
	}
	return row, nil
}

// Entitled says which of the apps a project may launch. Key: entitlement.read on the project.
func (s *Service) Entitled(ctx context.Context, projectID ids.ID, slugs []string) (map[string]bool, error) {
	var project *db.Project
	var live []string
	actor, err := s.DB.Read(ctx,
		tx.Row(&project, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1`, projectID),
		tx.Rows(&live, pgx.RowTo[string], `SELECT app_slug FROM entitlement WHERE project_id = $1
			AND app_slug = ANY ($2)
			AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3)`, projectID, slugs, s.DB.Now()))
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
	actor, err := s.DB.Read(ctx, tx.Row(&row, rows.Entitlement,
		`SELECT `+rows.EntitlementColumns+` FROM entitlement WHERE id = $1`, id))
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

// Entitlements lists the rights of a project, newest first; with ended those too that were taken away or have
// expired. Key: entitlement.read on the project.
func (s *Service) Entitlements(ctx context.Context, projectID ids.ID, ended bool,
	args page.Args) (*page.Page[*db.Entitlement], error) {
	const list = "entitlements"
	before := ids.ID("zz") // beyond every id
	if err := args.Decode(list, &before); err != nil {
		return nil, err
	}
	var project *db.Project
	var found []*db.Entitlement
	actor, err := s.DB.Read(ctx,
		tx.Row(&project, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1`, projectID),
		tx.Rows(&found, rows.Entitlement, `SELECT `+rows.EntitlementColumns+` FROM entitlement WHERE project_id = $1
			AND id < $2
			AND ($3 OR (revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $4))) ORDER BY id DESC LIMIT $5`,
			projectID, before, ended, s.DB.Now(), args.First+1))
	if err != nil {
		return nil, err
	}
	if project == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.Require(actor, authz.EntitlementRead, project.TenantID, project.ID); err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *db.Entitlement) string { return page.Cursor(list, row.ID) }), nil
}
