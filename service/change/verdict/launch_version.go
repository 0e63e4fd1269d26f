package verdict

import (
	"context"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmanifest "github.com/gpuaas/app-platform/ent/generated/db/manifest"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/capacity"
	"github.com/gpuaas/app-platform/service/kit/overlay"
)

// maxChoices bounds how often a version is chosen again because a promotion came between the choice and the lock.
const maxChoices = 3

// tested are the stages of versions that smoke launches may have: everything on its way to ACTIVE.
var tested = []lifecycle.Stage{
	lifecycle.StageDraft, lifecycle.StageStaged, lifecycle.StageCanary, lifecycle.StageActive,
}

// Testable reports whether smoke launches may have a version of the stage.
func Testable(stage lifecycle.Stage) bool { return slices.Contains(tested, stage) }

// Launchable returns why the version's stage keeps the project's new instances out: FAILED_PRECONDITION at the path,
// with reason NOT_IN_CANARY for a canary.
func Launchable(stored *db.Manifest, projectID ids.ID, path string) error {
	return enter(stored, projectID, "new instance", path)
}

// launchVersion picks the version, the named one or the default, and keeps it from promotion until the commit.
func (v *Verdicts) launchVersion(ctx context.Context, t *tx.Tx) (err error) {
	read := make(Documents)
	if v.Version != "" {
		v.Target, err = v.namedManifest(ctx, t)
	} else {
		v.Target, err = v.chosenManifest(ctx, t, read)
	}
	if err != nil {
		return err
	}
	v.Next, err = read.Of(v.Target)
	return err
}

// Documents are the manifests of versions by digest, each parsed once.
type Documents map[string]*manifest.Manifest

// Of returns a version's manifest.
func (d Documents) Of(stored *db.Manifest) (*manifest.Manifest, error) {
	if known := d[stored.Digest]; known != nil {
		return known, nil
	}
	parsed, err := manifest.Parse(stored.Document)
	if err != nil {
		return nil, err
	}
	d[stored.Digest] = parsed
	return parsed, nil
}

// namedManifest returns the version that the launch names. Ordinary launches may have the active one, or that of a
// canary which has chosen the project; smoke launches also those before it.
func (v *Verdicts) namedManifest(ctx context.Context, t *tx.Tx) (*db.Manifest, error) {
	app := v.Instance.AppSlug
	stored, err := t.Manifest.Query().Where(dbmanifest.AppSlug(app), dbmanifest.Version(v.Version)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, fault.New(fault.NotFound, "app %q has no version %q", app, v.Version).At("input.version")
	}
	if err != nil {
		return nil, fmt.Errorf("load the manifest: %w", err)
	}
	if err := hold(ctx, t, stored); err != nil {
		return nil, err
	}
	if v.Launch.Smoke && Testable(stored.Stage) {
		return stored, nil
	}
	return stored, Launchable(stored, v.Project.ID, "input.version")
}

// chosenManifest returns the version of a launch that names none.
func (v *Verdicts) chosenManifest(ctx context.Context, t *tx.Tx, read Documents) (*db.Manifest, error) {
	app := v.Instance.AppSlug
	for range maxChoices {
		open, err := t.Manifest.Query().
			Where(dbmanifest.AppSlug(app), dbmanifest.StageIn(lifecycle.StageActive, lifecycle.StageCanary)).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("load the manifests: %w", err)
		}
		stored, err := Choose(open, read, v.Project.ID, v.Terms)
		if err != nil {
			return nil, err
		}
		if stored == nil {
			return nil, fault.New(fault.FailedPrecondition, "app %q has no active version", app).At("input.appSlug")
		}
		if err := hold(ctx, t, stored); err != nil {
			return nil, err
		}
		if Launchable(stored, v.Project.ID, "") == nil {
			return stored, nil
		}
	}
	return nil, fault.New(fault.Conflict, "versions of app %q were promoted during this request: try again", app).
		At("input.appSlug")
}

// Choose returns the default version of an app for a project: the canary that has chosen the project, where policy and
// entitlement allow it, and otherwise the active one. Nil when there is neither.
func Choose(versions []*db.Manifest, read Documents, projectID ids.ID, terms *overlay.EffectivePolicy) (*db.Manifest,
	error) {
	var active *db.Manifest
	for _, stored := range versions {
		switch {
		case stored.Stage == lifecycle.StageActive:
			active = stored
		case stored.Stage == lifecycle.StageCanary && Launchable(stored, projectID, "") == nil:
			document, err := read.Of(stored)
			if err != nil {
				return nil, err
			}
			if len(OfApp(terms, stored, document)) == 0 {
				return stored, nil
			}
		}
	}
	return active, nil
}

// OfApp returns the reasons of policy and entitlement against a version of an app, wherever it is launched.
func OfApp(terms *overlay.EffectivePolicy, stored *db.Manifest, document *manifest.Manifest) []fault.Reason {
	rules := terms.Policy
	answers := []error{rules.App(terms.App, "appSlug"), rules.Version(terms.App, stored.Version, "version")}
	limits := terms.Entitlement.Within(overlay.Wanted{Version: stored.Version, VersionPath: "version"})
	return slices.Concat(Reasons(limits), Reasons(policy.Join(append(answers,
		ofManifest(rules, document, "version")...)...)))
}

// OfDefaults returns the reasons of entitlement, policy and quota against a launch that leaves numbers and mode to
// their defaults, beside what the project has.
func OfDefaults(terms *overlay.EffectivePolicy, usage *overlay.Usage, project *db.Project,
	document *manifest.Manifest) []fault.Reason {
	rules := terms.Policy
	counts, _ := manifest.Counts(document, nil)
	members := 0
	for _, count := range counts {
		members += count
	}
	limits := terms.Entitlement.Within(overlay.Wanted{Instances: usage.AppInstances + 1, Members: members,
		InstancesPath: "appSlug", MembersPath: "components"})
	denied := policy.Join(
		rules.Mode(lifecycle.ModeTenantDedicated, lifecycle.ControlPlaneProject, "operatingMode"),
		rules.MembersOfInstance(members, "components"), rules.Members(usage.Members+members, "components"),
		rules.Instances(usage.Instances+1, "projectId"), rules.GPUs(usage.GPUs, "allocations"),
		rules.HourlyCost(usage.Spending, "allocations"))
	return slices.Concat(Reasons(limits), Reasons(denied),
		Reasons(capacity.WithinMembers(project, usage.Members, members, "components")))
}

// Reasons returns the reasons of a refusal; nil for no error.
func Reasons(err error) []fault.Reason {
	if err == nil {
		return nil
	}
	return fault.From(err).Reasons
}
