package instance

import (
	"context"
	"slices"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/overlay"
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
// reasons, of the manifest, the entitlement or policy.
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
	var levels []policy.Level
	var held *overlay.Limits
	actor, err := s.DB.Read(ctx,
		tx.Row(&project, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1`, projectID),
		tx.Row(&app, rows.App, `SELECT `+rows.AppColumns+` FROM app WHERE slug = $1`, slug),
		tx.Row(&stored, rows.Manifest, `SELECT `+rows.ManifestColumns+` FROM manifest
			WHERE app_slug = $1 AND (version = $2 OR ($2 = '' AND stage = 'ACTIVE'))`, slug, version),
		tx.Rows(&free, rows.Allocation, `SELECT `+rows.AllocationColumns+` FROM allocation
			WHERE project_id = $1 AND status = 'READY' AND instance_id IS NULL ORDER BY id LIMIT 256`, projectID),
		overlay.Levels(&levels, projectID), overlay.Held(&held, projectID, slug, s.DB.Now()))
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
	terms := &overlay.Terms{Policy: policy.Merge(levels...), Entitlement: held, App: slug}
	options := &Options{Manifest: stored, Entitled: held != nil}
	whole := ofApp(terms, stored, document)
	for _, allocation := range free {
		verdict := manifest.Compatible(document, shapesOf([]*db.Allocation{allocation}), nil)
		reasons := slices.Concat(verdict.Reasons, ofAllocation(terms, allocation), whole)
		options.Allocations = append(options.Allocations, Verdict{Allocation: allocation, Reasons: reasons})
	}
	return options, nil
}

// ofApp are the reasons of policy and entitlement against the app's version, wherever it is launched.
func ofApp(terms *overlay.Terms, stored *db.Manifest, document *manifest.Manifest) []Reason {
	rules := terms.Policy
	answers := []error{rules.App(terms.App, "appSlug"), rules.Version(terms.App, stored.Version, "version")}
	for _, artifact := range document.Artifacts {
		answers = append(answers, rules.Source(artifact.Ref, "version"))
	}
	limits := terms.Entitlement.Within(overlay.Wanted{Version: stored.Version, VersionPath: "version"})
	return slices.Concat(reasonsOf(limits), reasonsOf(policy.Join(answers...)))
}

// ofAllocation are those against one allocation.
func ofAllocation(terms *overlay.Terms, allocation *db.Allocation) []Reason {
	rules := terms.Policy
	limits := terms.Entitlement.Within(overlay.Wanted{GPUs: allocation.GpuCount, GPUsPath: "allocations.0"})
	return slices.Concat(reasonsOf(limits), reasonsOf(policy.Join(rules.Region(allocation.Region, "allocations.0"), rules.SKU(allocation.Sku, "allocations.0"))))
}

func reasonsOf(err error) []Reason {
	if err == nil {
		return nil
	}
	return fault.From(err).Reasons
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
