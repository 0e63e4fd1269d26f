package catalog

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/page"
)

// EvidenceInput is a report for a manifest.
type EvidenceInput struct {
	ManifestID ids.ID
	Kind       lifecycle.EvidenceKind
	Report     string
	Digest     string
}

// ManifestFilter narrows a list of manifests.
type ManifestFilter struct {
	Search, AppSlug string
	Stages          []lifecycle.Stage
}

// SubmitEvidence stores a report.
func (s *Service) SubmitEvidence(ctx context.Context, in EvidenceInput) (*db.PromotionEvidence, error) {
	panic("not implemented")
}

// SetCanaryPercent changes how many projects a canary takes in.
func (s *Service) SetCanaryPercent(ctx context.Context, id ids.ID, percent int, reason string) (*db.Manifest, error) {
	panic("not implemented")
}

// ManifestList lists manifests of all apps.
func (s *Service) ManifestList(ctx context.Context, filter ManifestFilter, args page.Args) (*page.Page[*db.Manifest], error) {
	panic("not implemented")
}

// CanaryManifests reads the canaries of apps.
func (s *Service) CanaryManifests(ctx context.Context, slugs []string) (map[string]*db.Manifest, error) {
	panic("not implemented")
}

// Icons reads the pictures of apps.
func (s *Service) Icons(ctx context.Context, slugs []string) (map[string]string, error) {
	panic("not implemented")
}

// EvidenceOf reads the reports of manifests.
func (s *Service) EvidenceOf(ctx context.Context, manifests []ids.ID) (map[ids.ID][]*db.PromotionEvidence, error) {
	panic("not implemented")
}

// HistoryOf reads the steps of artifacts and manifests.
func (s *Service) HistoryOf(ctx context.Context, objects []ids.ID) (map[ids.ID][]*db.Promotion, error) {
	panic("not implemented")
}

// Lacks says what manifests lack for their next stage.
func (s *Service) Lacks(ctx context.Context, manifests []ids.ID) (map[ids.ID][]*fault.Reason, error) {
	panic("not implemented")
}

// PinnedBy reads the manifests that pin artifacts.
func (s *Service) PinnedBy(ctx context.Context, artifacts []ids.ID) (map[ids.ID][]*db.Manifest, error) {
	panic("not implemented")
}
