package instance

import (
	"context"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbmanifest "github.com/gpuaas/app-platform/ent/generated/db/manifest"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/kit/overlay"
)

// maxChoices bounds how often a version is chosen anew because a promotion came between the choice and the hold.
const maxChoices = 3

// tested are the stages of versions that smoke launches may have: whatever is on its way to ACTIVE.
var tested = []lifecycle.Stage{lifecycle.StageDraft, lifecycle.StageStaged, lifecycle.StageCanary, lifecycle.StageActive}

// findManifest picks the version: the one named, or the one that a launch which names none gets. It is held against
// promotion until the commit.
func (p *launchPlan) findManifest(ctx context.Context, t *tx.Tx) (err error) {
	read := make(documents)
	if p.in.Version != "" {
		p.stored, err = p.namedManifest(ctx, t)
	} else {
		p.stored, err = p.chosenManifest(ctx, t, read)
	}
	if err != nil {
		return err
	}
	p.manifest, err = read.of(p.stored)
	return err
}

// documents are those of versions by their digests, each parsed once.
type documents map[string]*manifest.Manifest

func (d documents) of(stored *db.Manifest) (*manifest.Manifest, error) {
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

// namedManifest is the version that the launch asks for. Ordinary launches may have the active one, or that of a
// canary which has chosen the project; smoke launches whatever is on its way there.
func (p *launchPlan) namedManifest(ctx context.Context, t *tx.Tx) (*db.Manifest, error) {
	stored, err := t.Manifest.Query().Where(dbmanifest.AppSlug(p.app.Slug), dbmanifest.Version(p.in.Version)).Only(ctx)
	if db.IsNotFound(err) {
		return nil, fault.New(fault.NotFound, "app %q has no version %q", p.app.Slug, p.in.Version).At("input.version")
	}
	if err != nil {
		return nil, fmt.Errorf("load the manifest: %w", err)
	}
	if err := change.Hold(ctx, t, stored); err != nil {
		return nil, err
	}
	if p.in.Smoke && slices.Contains(tested, stored.Stage) {
		return stored, nil
	}
	return stored, enter(stored, p.project.ID, "input.version")
}

// chosenManifest is the version that a launch which names none gets.
func (p *launchPlan) chosenManifest(ctx context.Context, t *tx.Tx, read documents) (*db.Manifest, error) {
	for range maxChoices {
		open, err := t.Manifest.Query().Where(dbmanifest.AppSlug(p.app.Slug), dbmanifest.StageIn(lifecycle.StageActive, lifecycle.StageCanary)).All(ctx)
		if err != nil {
			return nil, fmt.Errorf("load the manifests: %w", err)
		}
		stored, err := choose(open, read, p.project.ID, p.terms)
		if err != nil {
			return nil, err
		}
		if stored == nil {
			return nil, fault.New(fault.FailedPrecondition, "app %q has no active version", p.app.Slug).At("input.appSlug")
		}
		if err := change.Hold(ctx, t, stored); err != nil {
			return nil, err
		}
		if enter(stored, p.project.ID, "") == nil {
			return stored, nil
		}
	}
	return nil, fault.New(fault.Conflict, "versions of app %q were promoted while this was under way", p.app.Slug).At("input.appSlug")
}

// choose picks among an app's versions what a project gets that names none: the canary that has chosen it, where policy
// and entitlement let the project have that, and the active one otherwise. Nil when there is neither.
func choose(versions []*db.Manifest, read documents, projectID ids.ID, terms *overlay.Terms) (*db.Manifest, error) {
	var active *db.Manifest
	for _, stored := range versions {
		switch {
		case stored.Stage == lifecycle.StageActive:
			active = stored
		case stored.Stage == lifecycle.StageCanary && enter(stored, projectID, "") == nil:
			document, err := read.of(stored)
			if err != nil {
				return nil, err
			}
			if len(ofApp(terms, stored, document)) == 0 {
				return stored, nil
			}
		}
	}
	return active, nil
}

func enter(stored *db.Manifest, projectID ids.ID, path string) error {
	return change.Enter(stored, projectID, "new instance", path)
}
