package graph

import (
	"context"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/service/canary"
	"github.com/gpuaas/app-platform/service/catalog"
	"github.com/gpuaas/app-platform/service/catalog/trust"
)

func (r *mutationResolver) SubmitEvidence(ctx context.Context, input catalog.EvidenceInput) (*db.PromotionEvidence, error) {
	return r.Catalog.SubmitEvidence(ctx, input)
}

func (r *mutationResolver) SubmitArtifactSmoke(ctx context.Context, input trust.SmokeInput) (*db.ArtifactSmoke, error) {
	return r.Trust.SubmitSmoke(ctx, input)
}

func (r *mutationResolver) RegisterRunner(ctx context.Context, input trust.RunnerInput) (*db.EvidenceRunner, error) {
	return r.Trust.RegisterRunner(ctx, input)
}

func (r *mutationResolver) RevokeRunner(ctx context.Context, runnerID ids.ID, reason string) (*db.EvidenceRunner, error) {
	return r.Trust.RevokeRunner(ctx, runnerID, reason)
}

func (r *mutationResolver) SetPromotionTerms(ctx context.Context, input trust.TermsInput) (*db.App, error) {
	return r.Trust.SetTerms(ctx, input)
}

func (r *mutationResolver) SetCanaryPercent(ctx context.Context, manifestID ids.ID, percent int, reason string) (*db.Manifest, error) {
	return r.Catalog.SetCanaryPercent(ctx, manifestID, percent, reason)
}

func (r *promotionResolver) Actor(ctx context.Context, obj *db.Promotion) (*authz.Ref, error) {
	return &authz.Ref{Kind: obj.ActorKind, ID: obj.ActorID, Name: obj.ActorName}, nil
}

func (r *queryResolver) CanaryReport(ctx context.Context, manifestID ids.ID) (*canary.Report, error) {
	return r.Canaries.Report(ctx, manifestID)
}

func (r *queryResolver) EvidenceRunners(ctx context.Context) ([]*db.EvidenceRunner, error) {
	return r.Trust.Runners(ctx)
}

func (r *Resolver) Promotion() exec.PromotionResolver { return &promotionResolver{r} }

type promotionResolver struct{ *Resolver }
