package change

import (
	"context"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbapp "github.com/gpuaas/app-platform/ent/generated/db/app"
	dbproject "github.com/gpuaas/app-platform/ent/generated/db/project"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/account"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/system"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Launch is the part of a request that only an instance which does not exist yet needs. Version, config and allocations
// are the request's own.
type Launch struct {
	ProjectID     ids.ID
	AppSlug, Name string
	Components    []Component // empty for the manifest's defaults
	// OperatingMode is who runs the control plane; ControlPlaneScope is whom it serves.
	OperatingMode     lifecycle.OperatingMode
	ControlPlaneScope lifecycle.ControlPlaneScope
	Smoke             bool
	// Volumes are those that it uses, by the slots of the manifest.
	Volumes []VolumeChoice `json:",omitempty"`
	// OperatorServiceAccountID is the account that the adapter may act by; nil for none.
	OperatorServiceAccountID *ids.ID `json:",omitempty"`
}

// Component is the number of members of a component, and their allocations.
type Component struct {
	Key           string
	Count         int
	AllocationIDs []ids.ID // empty for all of the launch's
	// Intent is the capacity that further members of it get; nil for none.
	Intent *capacity.Want `json:",omitempty"`
	// Requests reports whether the launch requests an allocation of Intent for each member of it.
	Requests bool `json:",omitempty"`
}

// locateLaunch loads the project and the app, requires the launch's keys and drafts the instance.
func (s *Subject) locateLaunch(ctx context.Context, t *tx.Tx, action string) error {
	project, err := t.Project.Query().Where(dbproject.ID(s.Launch.ProjectID)).Only(ctx)
	if db.IsNotFound(err) {
		return audit.Missing(t, action, authz.AppsInstanceCreate, s.Launch.ProjectID)
	}
	if err != nil {
		return fmt.Errorf("load project %s: %w", s.Launch.ProjectID, err)
	}
	app, err := launchedApp(ctx, t, project, s.Launch.AppSlug, action)
	if err != nil {
		return err
	}
	s.project, s.Instance = project, s.Launch.draft(project, app)
	if err := s.authoriseLaunch(t, app, action); err != nil {
		return err
	}
	if err := s.chooseOperator(ctx, t, action); err != nil {
		return err
	}
	if err := system.Runs(ctx, t, app, project.TenantID, "input.appSlug"); err != nil {
		return err
	}
	return InSandbox(app, project.ID, "input.appSlug")
}

// chooseOperator requires that the caller may have the adapter act by the account that the launch names.
func (s *Subject) chooseOperator(ctx context.Context, t *tx.Tx, action string) error {
	if s.Launch.OperatorServiceAccountID == nil {
		return nil
	}
	key, err := s.Key()
	if err != nil {
		return err
	}
	where := s.Object()
	_, err = account.Chosen(ctx, t, *s.Launch.OperatorServiceAccountID, where, "input.operatorServiceAccountId")
	return audit.Attempted(t, action, key, where, s.project.ID, err)
}

// InSandbox returns why a project may not launch an app that is in another project's sandbox: FAILED_PRECONDITION at
// the path.
func InSandbox(app *db.App, projectID ids.ID, path string) error {
	if !app.Sandbox || app.PublisherProjectID != nil && *app.PublisherProjectID == projectID {
		return nil
	}
	return fault.New(fault.FailedPrecondition,
		"app %q is in a sandbox: only the project that created it may launch it, until "+
			"the platform's staff opens it (openApp)", app.Slug).At(path)
}

// launchedApp loads the app. A caller who may launch nothing in the project does not learn whether the app exists.
func launchedApp(ctx context.Context, t *tx.Tx, project *db.Project, slug, action string) (*db.App, error) {
	app, err := t.App.Query().Where(dbapp.Slug(slug)).Only(ctx)
	if db.IsNotFound(err) {
		where := authz.Object{TenantID: project.TenantID, ProjectID: project.ID}
		if authz.RequireAny(t.Actor, where, authz.FamilyKeys("instance.create")...) != nil {
			return nil, audit.Require(t, action, authz.AppsInstanceCreate, where, project.ID)
		}
		return nil, fault.New(fault.NotFound, "there is no app %q", slug).At("input.appSlug")
	}
	if err != nil {
		return nil, fmt.Errorf("load app %s: %w", slug, err)
	}
	return app, nil
}

// draft returns the instance as far as request and app settle it.
func (l *Launch) draft(project *db.Project, app *db.App) *db.Instance {
	return &db.Instance{
		TenantID: project.TenantID, ProjectID: project.ID, Name: l.Name, AppSlug: app.Slug,
		PermissionFamily: app.PermissionFamily, Status: lifecycle.InstanceCreated, Smoke: l.Smoke,
		OperatingMode: string(l.OperatingMode), ControlPlaneScope: string(l.ControlPlaneScope),
		System: app.System, OperatorServiceAccountID: l.OperatorServiceAccountID,
	}
}

// authoriseLaunch requires <family>.instance.create on the project, control_plane.create on the tenant where the
// control plane serves more than the project or is not the tenant's own, allocation.create where the launch requests
// capacity, volume.use where it uses volumes, and manifest.smoke for a smoke launch.
func (s *Subject) authoriseLaunch(t *tx.Tx, app *db.App, action string) error {
	key, err := s.Key()
	if err != nil {
		return err
	}
	where := s.Object()
	if err := audit.Require(t, action, key, where, s.project.ID); err != nil {
		return err
	}
	if s.Launch.OperatingMode != lifecycle.ModeTenantDedicated ||
		s.Launch.ControlPlaneScope != lifecycle.ControlPlaneProject {
		tenant := authz.Object{TenantID: s.project.TenantID}
		if err := audit.Require(t, action, authz.ControlPlaneCreate, tenant, s.project.TenantID); err != nil {
			return err
		}
	}
	if s.Launch.requests() {
		if err := audit.Require(t, action, authz.AllocationCreate, where, s.project.ID); err != nil {
			return err
		}
	}
	if len(s.Launch.Volumes) > 0 {
		if err := audit.Require(t, action, authz.VolumeUse, where, s.project.ID); err != nil {
			return err
		}
	}
	if !s.Launch.Smoke {
		return nil
	}
	return audit.Require(t, action, authz.ManifestSmoke, SmokeScope(app, where), s.project.ID)
}

// ComponentPaths gives reasons, which name a component by its key, the paths of the input's own list.
func ComponentPaths(components []Component, reasons []fault.Reason) []fault.Reason {
	out := fault.Prefixed("input", reasons)
	for i, reason := range reasons {
		at := slices.IndexFunc(components, func(c Component) bool { return reason.Path == "components."+c.Key })
		switch {
		case at < 0:
			out[i].Path = "input.components"
		case reason.Code == fault.UnknownComponent:
			out[i].Path = fmt.Sprintf("input.components.%d.key", at)
		default:
			out[i].Path = fmt.Sprintf("input.components.%d.count", at)
		}
	}
	return out
}

// requests reports whether the launch requests capacity.
func (l *Launch) requests() bool {
	return slices.ContainsFunc(l.Components, func(c Component) bool { return c.Requests })
}

// SmokeScope returns the object on which manifest.smoke is required. An untrusted version runs in projects of the
// tenant that publishes the app, by a key of that tenant's, and anywhere by the platform's staff.
func SmokeScope(app *db.App, where authz.Object) authz.Object {
	if app.PublisherTenantID == nil || *app.PublisherTenantID != where.TenantID {
		return authz.Object{}
	}
	return where
}
