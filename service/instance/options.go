package instance

import (
	"context"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// Reason is why an app does not fit an allocation.
type Reason = fault.Reason

// Options is everything a launch form needs.
type Options struct {
	Manifest    *db.Manifest
	Entitled    bool
	Versions    []Version // the active one and the canary first, then the newest, at most 50
	Allocations []Verdict
}

// Version is a version of the app and whether the project may launch it; it may when there are no reasons.
type Version struct {
	Version string
	Stage   lifecycle.Stage
	// Chosen says that a launch which names no version gets it.
	Chosen  bool
	Reasons []Reason
}

// Verdict is whether a launch into one allocation alone would be accepted; it is when there are no
// reasons, of the manifest, its stage, the entitlement or policy. The stage is no reason to who may test the version
// by a smoke launch.
type Verdict struct {
	Allocation *db.Allocation
	Reasons    []Reason
}

// maxVersions bounds the versions that the options list.
const maxVersions = 50

// versionsSQL reads an app's versions without the documents of those that no launch gets; the version asked for is
// among them, whatever its stage, and comes first.
var versionsSQL = `SELECT ` + strings.Replace(rows.ManifestColumns, "manifest.document",
	"CASE WHEN stage IN ('ACTIVE', 'CANARY') OR version = $2 THEN manifest.document ELSE '' END", 1) + ` FROM manifest
	WHERE app_slug = $1 AND (stage <> 'RETIRED' OR version = $2) ORDER BY version = $2 DESC, stage IN ('ACTIVE', 'CANARY') DESC, id DESC LIMIT $3`

// LaunchOptions says what a launch of an app in a project could be made from. It asks for
// <family>.instance.create. NOT_FOUND: project, app or version.
func (s *Service) LaunchOptions(ctx context.Context, projectID ids.ID, slug, version string) (*Options, error) {
	var project *db.Project
	var app *db.App
	var versions []*db.Manifest
	var free []*db.Allocation
	var levels []policy.Level
	var held *overlay.Limits
	actor, err := s.DB.Read(ctx,
		tx.Row(&project, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1`, projectID),
		tx.Row(&app, rows.App, `SELECT `+rows.AppColumns+` FROM app WHERE slug = $1`, slug),
		tx.Rows(&versions, rows.Manifest, versionsSQL, slug, version, maxVersions),
		tx.Rows(&free, rows.Allocation, `SELECT `+rows.AllocationColumns+` FROM allocation
			WHERE project_id = $1 AND status = 'READY' AND instance_id IS NULL ORDER BY id LIMIT 256`, projectID),
		overlay.Levels(&levels, projectID), overlay.Held(&held, projectID, slug, s.DB.Now()))
	if err != nil {
		return nil, err
	}
	if err := mayLaunch(actor, project, app, slug); err != nil {
		return nil, err
	}
	terms := &overlay.Terms{Policy: policy.Merge(levels...), Entitlement: held, App: slug}
	options, read := &Options{Entitled: held != nil}, make(documents)
	if err := options.choose(versions, read, version, project.ID, terms); err != nil {
		return nil, err
	}
	document, err := read.of(options.Manifest)
	if err != nil {
		return nil, err
	}
	whole := ofApp(terms, options.Manifest, document)
	where := authz.Object{TenantID: project.TenantID, ProjectID: project.ID}
	if smokes := slices.Contains(tested, options.Manifest.Stage) && actor.AllowsOn(authz.ManifestSmoke, tests(app, where)); !smokes {
		whole = slices.Concat(reasonsOf(enter(options.Manifest, project.ID, "version")), whole)
	}
	for _, allocation := range free {
		verdict := manifest.Compatible(document, shapesOf([]*db.Allocation{allocation}), nil)
		reasons := slices.Concat(verdict.Reasons, ofAllocation(terms, allocation), whole)
		options.Allocations = append(options.Allocations, Verdict{Allocation: allocation, Reasons: reasons})
	}
	return options, nil
}

// choose picks the version that would be launched, and says of each whether it may be.
func (o *Options) choose(versions []*db.Manifest, read documents, version string, projectID ids.ID, terms *overlay.Terms) error {
	byDefault, err := choose(versions, read, projectID, terms)
	if err != nil {
		return err
	}
	o.Manifest = byDefault
	if version != "" {
		o.Manifest = nil
		if len(versions) > 0 && versions[0].Version == version {
			o.Manifest = versions[0]
		}
	}
	if o.Manifest == nil {
		return fault.New(fault.NotFound, "app %q has no such version to launch", terms.App).At("version")
	}
	for _, stored := range versions {
		one := Version{Version: stored.Version, Stage: stored.Stage, Chosen: stored == byDefault, Reasons: reasonsOf(enter(stored, projectID, "version"))}
		if len(one.Reasons) == 0 {
			document, err := read.of(stored)
			if err != nil {
				return err
			}
			one.Reasons = ofApp(terms, stored, document)
		}
		o.Versions = append(o.Versions, one)
	}
	return nil
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
