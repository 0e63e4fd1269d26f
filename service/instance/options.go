package instance

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/rows"
)

// Reason is why an app does not fit an allocation.
type Reason = fault.Reason

// Options is everything a launch form needs.
type Options struct {
	Manifest    *db.Manifest
	Entitled    bool
	Allocations []Verdict
}

// Verdict is whether a launch into one allocation alone would be accepted; it is when there are no
// reasons.
type Verdict struct {
	Allocation *db.Allocation
	Reasons    []Reason
}

// LaunchOptions says what a launch of an app in a project could be made from. It asks for
// <family>.instance.create. NOT_FOUND: project, app or version.
func (s *Service) LaunchOptions(ctx context.Context, projectID ids.ID, slug, version string) (*Options, error) {
	var project *db.Project
	var app *db.App
	var stored *db.Manifest
	var free []*db.Allocation
	var entitled []int
	actor, err := s.DB.Read(ctx,
		tx.Row(&project, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1`, projectID),
		tx.Row(&app, rows.App, `SELECT `+rows.AppColumns+` FROM app WHERE slug = $1`, slug),
		tx.Row(&stored, rows.Manifest, `SELECT `+rows.ManifestColumns+` FROM manifest
			WHERE app_slug = $1 AND (version = $2 OR ($2 = '' AND stage = 'ACTIVE'))`, slug, version),
		tx.Rows(&free, rows.Allocation, `SELECT `+rows.AllocationColumns+` FROM allocation
			WHERE project_id = $1 AND status = 'READY' AND instance_id IS NULL ORDER BY id LIMIT 256`, projectID),
		tx.Rows(&entitled, scanInt, `SELECT 1 FROM entitlement WHERE project_id = $1 AND app_slug = $2 AND revoked_at IS NULL`, projectID, slug))
	if err != nil {
		return nil, err
	}
	if err := mayLaunch(actor, project, app, slug); err != nil {
		return nil, err
	}
	if stored == nil {
		return nil, fault.New(fault.NotFound, "app %q has no such version to launch", slug).At("version")
	}
	document, err := manifest.Parse(stored.Document)
	if err != nil {
		return nil, err
	}
	options := &Options{Manifest: stored, Entitled: len(entitled) > 0}
	for _, allocation := range free {
		verdict := manifest.Compatible(document, shapesOf([]*db.Allocation{allocation}), nil)
		options.Allocations = append(options.Allocations, Verdict{Allocation: allocation, Reasons: verdict.Reasons})
	}
	return options, nil
}

// mayLaunch asks for the family's create key on the project. Who may launch nothing in the project
// is not told whether the app exists.
func mayLaunch(actor *authz.Actor, project *db.Project, app *db.App, slug string) error {
	if project == nil {
		return fault.NoSuch()
	}
	where := authz.Object{TenantID: project.TenantID, ProjectID: project.ID}
	if app == nil {
		if err := authz.RequireAny(actor, where, authz.FamilyKeys("instance.create")...); err != nil {
			return err
		}
		return fault.New(fault.NotFound, "there is no app %q", slug).At("appSlug")
	}
	key, err := authz.FamilyKey(app.PermissionFamily, "instance.create")
	if err != nil {
		return err
	}
	return authz.RequireOn(actor, key, where)
}

func scanInt(row pgx.CollectableRow) (n int, err error) { return n, row.Scan(&n) }
