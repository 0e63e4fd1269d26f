package instance

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/change/verdict"
	"github.com/gpuaas/app-platform/service/kit/cordon"
	"github.com/gpuaas/app-platform/service/kit/overlay"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/kit/system"
)

// Reason is why an app does not fit an allocation.
type Reason = fault.Reason

// Options is everything that a launch form needs.
type Options struct {
	Manifest    *db.Manifest
	Entitled    bool
	Profile     isolation.Profile
	Versions    []Version // the active one and the canary first, then the newest, at most 50
	Allocations []Verdict
}

// Version is a version of the app and whether the project may launch it; it may when Reasons is empty.
type Version struct {
	Version string
	Stage   lifecycle.Stage
	// Chosen marks the version of a launch that names none.
	Chosen  bool
	Reasons []Reason
}

// Verdict reports whether a launch into one allocation alone, with the manifest's own numbers of members and the
// default operating mode, would be accepted: it would when Reasons is empty. Reasons come from the manifest, its stage,
// the entitlement, policy with its ceilings, or the project's quota. The stage is not a reason for callers who may test
// the version by a smoke launch.
type Verdict struct {
	Allocation *db.Allocation
	Reasons    []Reason
	// Class is what would keep members apart; empty when it does not fit, or the node has not reported its isolation.
	Class isolation.Class
}

// maxVersions bounds the versions that the options list.
const maxVersions = 50

// versionsSQL reads an app's versions without the documents of those that no launch gets. It includes the requested
// version, whatever its stage, and puts it first.
var versionsSQL = `SELECT ` + strings.Replace(rows.ManifestColumns, "manifest.document",
	"CASE WHEN stage IN ('ACTIVE', 'CANARY') OR version = $2 THEN manifest.document ELSE '' END", 1) + ` FROM manifest
	WHERE app_slug = $1 AND (stage <> 'RETIRED' OR version = $2)
	ORDER BY version = $2 DESC, stage IN ('ACTIVE', 'CANARY') DESC, id DESC LIMIT $3`

// LaunchOptions returns the versions and allocations that a launch of an app in a project could use. It requires
// <family>.instance.create. NOT_FOUND: project, app or version.
func (s *Service) LaunchOptions(ctx context.Context, projectID ids.ID, slug, version string) (*Options, error) {
	var project *db.Project
	var app *db.App
	var versions []*db.Manifest
	var free []*db.Allocation
	var under []*db.ComputeNode
	var levels []policy.Level
	var held *overlay.Limits
	var quota **int
	var own **ids.ID
	usage := &overlay.Usage{}
	actor, err := s.DB.Read(ctx,
		tx.Row(&project, rows.ProjectRef, `SELECT id, tenant_id FROM project WHERE id = $1`, projectID),
		tx.Row(&quota, pgx.RowToAddrOf[*int], `SELECT max_members FROM project WHERE id = $1`, projectID),
		tx.Row(&app, rows.App, `SELECT `+rows.AppColumns+` FROM app WHERE slug = $1`, slug),
		tx.Rows(&versions, rows.Manifest, versionsSQL, slug, version, maxVersions),
		tx.Rows(&free, rows.Allocation, `SELECT `+rows.AllocationColumns+` FROM allocation
			WHERE project_id = $1 AND status = 'READY' AND instance_id IS NULL ORDER BY id LIMIT 256`, projectID),
		tx.Rows(&under, rows.ComputeNode, `SELECT `+rows.ComputeNodeColumns+` FROM compute_node
			WHERE id IN (SELECT node_id
			FROM allocation
			WHERE project_id = $1 AND status = 'READY' AND instance_id IS NULL)`, projectID),
		tx.Row(&own, pgx.RowToAddrOf[*ids.ID], system.OwnSQL),
		overlay.Levels(&levels, projectID), overlay.Held(&held, projectID, slug, s.DB.Now()),
		usage.Read(projectID, slug))
	if err != nil {
		return nil, err
	}
	if err := mayLaunch(actor, project, app, slug); err != nil {
		return nil, err
	}
	terms := &overlay.EffectivePolicy{Policy: policy.Merge(levels...), Entitlement: held, App: slug}
	options, read := &Options{Entitled: held != nil}, make(verdict.Documents)
	if err := options.choose(versions, read, version, project.ID, terms); err != nil {
		return nil, err
	}
	document, err := read.Of(options.Manifest)
	if err != nil {
		return nil, err
	}
	options.Profile = document.Walls(nil).Profile
	boxed := slices.Concat(verdict.Reasons(change.InSandbox(app, project.ID, "appSlug")),
		verdict.Reasons(system.RunsIn(app, project.TenantID, *own, "appSlug")))
	for i := range options.Versions {
		options.Versions[i].Reasons = slices.Concat(boxed, options.Versions[i].Reasons)
	}
	whole := slices.Concat(boxed, verdict.OfApp(terms, options.Manifest, document))
	where := authz.Object{TenantID: project.TenantID, ProjectID: project.ID}
	smokes := actor.AllowsOn(authz.ManifestSmoke, change.SmokeScope(app, where))
	if !smokes || !verdict.Testable(options.Manifest.Stage) {
		whole = slices.Concat(verdict.Reasons(verdict.Launchable(options.Manifest, project.ID, "version")), whole)
	}
	project.MaxMembers = rows.Value(quota)
	whole = append(whole, verdict.OfDefaults(terms, usage, project, document)...)
	for _, allocation := range free {
		shape := verdict.Shape(allocation, nodeOf(allocation, under), terms.Policy)
		fit := manifest.Compatible(document, []manifest.AllocationShape{shape}, nil)
		class, _ := document.Grant(shape, "")
		taking := verdict.Reasons(cordon.Check(nodeOf(allocation, under), "allocations.0"))
		reasons := slices.Concat(taking, fit.Reasons, ofAllocation(terms, allocation), whole)
		options.Allocations = append(options.Allocations, Verdict{Allocation: allocation, Reasons: reasons,
			Class: class})
	}
	return options, nil
}

// nodeOf returns the allocation's node; nil when it is not among them.
func nodeOf(allocation *db.Allocation, nodes []*db.ComputeNode) *db.ComputeNode {
	for _, node := range nodes {
		if allocation.NodeID != nil && node.ID == *allocation.NodeID {
			return node
		}
	}
	return nil
}

// choose picks the version that would be launched, and lists for each why it may not be.
func (o *Options) choose(
	versions []*db.Manifest, read verdict.Documents, version string, projectID ids.ID, terms *overlay.EffectivePolicy,
) error {
	byDefault, err := verdict.Choose(versions, read, projectID, terms)
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
		return fault.New(fault.NotFound, "app %q has no version by this name that can be launched",
			terms.App).At("version")
	}
	for _, stored := range versions {
		one := Version{Version: stored.Version, Stage: stored.Stage, Chosen: stored == byDefault}
		one.Reasons = verdict.Reasons(verdict.Launchable(stored, projectID, "version"))
		if len(one.Reasons) == 0 {
			document, err := read.Of(stored)
			if err != nil {
				return err
			}
			one.Reasons = verdict.OfApp(terms, stored, document)
		}
		o.Versions = append(o.Versions, one)
	}
	return nil
}

// ofAllocation returns the reasons of policy and entitlement against one allocation.
func ofAllocation(terms *overlay.EffectivePolicy, allocation *db.Allocation) []Reason {
	rules := terms.Policy
	limits := terms.Entitlement.Within(overlay.Wanted{GPUs: allocation.GpuCount, GPUsPath: "allocations.0"})
	denied := policy.Join(rules.Region(allocation.Region, "allocations.0"), rules.SKU(allocation.Sku, "allocations.0"))
	return slices.Concat(verdict.Reasons(limits), verdict.Reasons(denied))
}

// mayLaunch requires the family's create key on the project. A caller who may launch nothing in the project does not
// learn whether the app exists.
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
