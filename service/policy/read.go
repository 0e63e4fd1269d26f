package policy

import (
	"context"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/kit/scope"
)

// Overlays lists the overlays of a place, the one that holds first, then those before it. A project implies its
// tenant; with neither it is the platform's place. Key: policy.read at the scope; for the platform's, anywhere.
func (s *Service) Overlays(ctx context.Context, tenantID, projectID *ids.ID,
	args page.Args) (*page.Page[*db.PolicyOverlay], error) {
	const list = "policyOverlays"
	before := 1 << 40 // beyond every revision
	if err := args.Decode(list, &before); err != nil {
		return nil, err
	}
	at := place{scope: lifecycle.PolicyPlatform}
	switch {
	case projectID != nil:
		at = place{scope: lifecycle.PolicyProject, projectID: *projectID}
	case tenantID != nil:
		at = place{scope: lifecycle.PolicyTenant, tenantID: *tenantID}
	}
	named := scope.Scope{TenantID: tenantID, ProjectID: projectID}
	var found []*db.PolicyOverlay
	actor, err := s.DB.Read(ctx, named.With(
		tx.Rows(&found, rows.PolicyOverlay, `SELECT `+rows.PolicyOverlayColumns+` FROM policy_overlay
			WHERE scope = $1 AND tenant_id IS NOT DISTINCT FROM CASE WHEN $1 = 'PROJECT' THEN tenant_id ELSE nullif($2, '') END
				AND project_id IS NOT DISTINCT FROM nullif($3, '') AND revision < $4
			ORDER BY revision DESC LIMIT $5`, at.scope, at.tenantID, at.projectID, before, args.First+1))...)
	if err != nil {
		return nil, err
	}
	if at.scope == lifecycle.PolicyPlatform {
		err = authz.RequireAnywhere(actor, authz.PolicyRead)
	} else {
		err = named.Require(actor, authz.PolicyRead)
	}
	if err != nil {
		return nil, err
	}
	return page.Cut(args, found, func(row *db.PolicyOverlay) string { return page.Cursor(list, row.Revision) }), nil
}

// Overlay reads one overlay, also one that holds no longer. Key: policy.read at its scope; for the platform's,
// anywhere.
func (s *Service) Overlay(ctx context.Context, id ids.ID) (*db.PolicyOverlay, error) {
	var row *db.PolicyOverlay
	actor, err := s.DB.Read(ctx, tx.Row(&row, rows.PolicyOverlay, `SELECT `+rows.PolicyOverlayColumns+`
		FROM policy_overlay WHERE id = $1`, id))
	switch {
	case err != nil:
		return nil, err
	case row == nil:
		return nil, fault.NoSuch()
	case row.TenantID == nil:
		return row, authz.RequireAnywhere(actor, authz.PolicyRead)
	case row.ProjectID == nil:
		return row, authz.Require(actor, authz.PolicyRead, *row.TenantID, "")
	}
	return row, authz.Require(actor, authz.PolicyRead, *row.TenantID, *row.ProjectID)
}

// Effective returns what policy leaves of a project's choices, with the origin of every rule. Key: policy.read on
// the project.
func (s *Service) Effective(ctx context.Context, projectID ids.ID) (*EffectiveView, error) {
	var project *db.Project
	var levels []policy.Level
	actor, err := s.DB.Read(ctx,
		tx.Row(&project, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1`, projectID),
		overlay.Levels(&levels, projectID))
	if err != nil {
		return nil, err
	}
	if project == nil {
		return nil, fault.NoSuch()
	}
	if err := authz.Require(actor, authz.PolicyRead, project.TenantID, project.ID); err != nil {
		return nil, err
	}
	effective := policy.Merge(levels...)
	return &EffectiveView{ProjectID: projectID, Hash: effective.Hash(), Rules: effective.Rules()}, nil
}
