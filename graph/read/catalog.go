package read

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/kit/posix"
)

// catalogLoaders gather the keys of lists of apps, manifests, artifacts and service accounts.
type catalogLoaders struct {
	// Active and Canary hold the manifests of apps by slug, Icons their icons.
	Active, Canary *Loader[string, *db.Manifest]
	Icons          *Loader[string, string]
	// Entitled holds whether a project may launch an app.
	Entitled *Loader[Launch, bool]
	// Artifacts and Lacks belong to manifests, PinnedBy and Parts to artifacts, Reports and History to either.
	Artifacts *Loader[ids.ID, []*db.Artifact]
	Lacks     *Loader[ids.ID, []*fault.Reason]
	PinnedBy  *Loader[ids.ID, []*db.Manifest]
	Parts     *Loader[ids.ID, []*db.ArtifactPart]
	Reports   *Loader[ids.ID, []*db.PromotionEvidence]
	History   *Loader[ids.ID, []*db.Promotion]
	// Smokes and Smoked belong to artifacts.
	Smokes *Loader[ids.ID, []*db.ArtifactSmoke]
	Smoked *Loader[ids.ID, bool]
	// Signers holds the keys of artifact sources, Signer single ones.
	Sources *Loader[ids.ID, *db.ArtifactSource]
	Signers *Loader[ids.ID, []*db.SignerKey]
	Signer  *Loader[ids.ID, *db.SignerKey]
	// Keys belong to service accounts.
	Keys *Loader[ids.ID, []*db.ServiceAccountKey]
	// Accounts are the POSIX identities of people and service accounts, in their own tenant.
	Accounts *Loader[ids.ID, *posix.Identity]
}

// Launch is an app, by its slug, in a project.
type Launch struct {
	Project ids.ID
	App     string
}

// catalogLoaders returns the loaders of the catalog's objects.
func (s *Services) catalogLoaders(wait time.Duration) catalogLoaders {
	return catalogLoaders{
		Active:    loader(wait, s.Catalog.ActiveManifests),
		Canary:    loader(wait, s.Catalog.CanaryManifests),
		Icons:     loader(wait, s.Catalog.Icons),
		Entitled:  loader(wait, s.entitled),
		Artifacts: loader(wait, s.Catalog.ArtifactsOf),
		Lacks:     loader(wait, s.Catalog.Lacks),
		PinnedBy:  loader(wait, s.Catalog.PinnedBy),
		Parts:     loader(wait, s.Artifacts.PartsOf),
		Reports:   loader(wait, s.Trust.EvidenceOf),
		History:   loader(wait, s.Trust.HistoryOf),
		Smokes:    loader(wait, s.Trust.SmokesOf),
		Smoked:    loader(wait, s.Trust.Smoked),
		Sources:   loader(wait, s.ArtifactSources.Many),
		Signers:   loader(wait, s.ArtifactSources.KeysOf),
		Signer:    loader(wait, s.ArtifactSources.Keys),
		Keys:      loader(wait, s.Identity.KeysOf),
		Accounts:  loader(wait, s.Identity.PosixOf),
	}
}

// entitled reads once for each project, which is nearly always one.
func (s *Services) entitled(ctx context.Context, wanted []Launch) (map[Launch]bool, error) {
	slugs := make(map[ids.ID][]string)
	for _, launch := range wanted {
		slugs[launch.Project] = append(slugs[launch.Project], launch.App)
	}
	out := make(map[Launch]bool, len(wanted))
	for project, apps := range slugs {
		entitled, err := s.Entitlements.Entitled(ctx, project, apps)
		if err != nil {
			return nil, err
		}
		for app, may := range entitled {
			out[Launch{project, app}] = may
		}
	}
	return out, nil
}
