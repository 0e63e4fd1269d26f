package graph

import (
	"context"
	"errors"
	"time"

	"github.com/vikstrous/dataloadgen"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
)

// catalogLoaders gather what lists of apps, manifests and service accounts ask for.
type catalogLoaders struct {
	active    *dataloadgen.Loader[string, *db.Manifest]
	artifacts *dataloadgen.Loader[ids.ID, []*db.Artifact]
	entitled  *dataloadgen.Loader[launch, bool]
	keys      *dataloadgen.Loader[ids.ID, []*db.ServiceAccountKey]
	canary    *dataloadgen.Loader[string, *db.Manifest]
	icons     *dataloadgen.Loader[string, string]
	sources   *dataloadgen.Loader[ids.ID, *db.ArtifactSource]
	signers   *dataloadgen.Loader[ids.ID, []*db.SignerKey]
	signer    *dataloadgen.Loader[ids.ID, *db.SignerKey]
	parts     *dataloadgen.Loader[ids.ID, []*db.ArtifactPart]
	pinnedBy  *dataloadgen.Loader[ids.ID, []*db.Manifest]
	reports   *dataloadgen.Loader[ids.ID, []*db.PromotionEvidence]
	history   *dataloadgen.Loader[ids.ID, []*db.Promotion]
	lacks     *dataloadgen.Loader[ids.ID, []*fault.Reason]
}

// launch is an app in a project.
type launch struct {
	project ids.ID
	app     string
}

func (r *Resolver) catalogLoaders(wait time.Duration) *catalogLoaders {
	return &catalogLoaders{
		active:    loader(wait, r.Catalog.ActiveManifests),
		artifacts: loader(wait, r.Catalog.ArtifactsOf),
		entitled:  loader(wait, r.entitled),
		keys:      loader(wait, r.Identity.KeysOf),
		canary:    loader(wait, r.Catalog.CanaryManifests),
		icons:     loader(wait, r.Catalog.Icons),
		sources:   loader(wait, r.ArtifactSources.Many),
		signers:   loader(wait, r.ArtifactSources.KeysOf),
		signer:    loader(wait, r.ArtifactSources.Keys),
		parts:     loader(wait, r.Artifacts.PartsOf),
		pinnedBy:  loader(wait, r.Catalog.PinnedBy),
		reports:   loader(wait, r.Catalog.EvidenceOf),
		history:   loader(wait, r.Catalog.HistoryOf),
		lacks:     loader(wait, r.Catalog.Lacks),
	}
}

// entitled asks once a project, which is nearly always one.
func (r *Resolver) entitled(ctx context.Context, wanted []launch) (map[launch]bool, error) {
	slugs := make(map[ids.ID][]string)
	for _, l := range wanted {
		slugs[l.project] = append(slugs[l.project], l.app)
	}
	out := make(map[launch]bool, len(wanted))
	for project, apps := range slugs {
		held, err := r.Catalog.Entitled(ctx, project, apps)
		if err != nil {
			return nil, err
		}
		for app, may := range held {
			out[launch{project, app}] = may
		}
	}
	return out, nil
}

// some is a loaded list; what the loader did not find is an empty one.
func some[T any](list []T, err error) ([]T, error) {
	if errors.Is(err, dataloadgen.ErrNotFound) {
		return []T{}, nil
	}
	return list, err
}

// found is a loaded object; nil when the loader did not find it.
func found[T any](object *T, err error) (*T, error) {
	if errors.Is(err, dataloadgen.ErrNotFound) {
		return nil, nil
	}
	return object, err
}

// pointers is the elements of a list as the generated types want them.
func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}
