package graph

import (
	"context"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/service/canary"
	"github.com/gpuaas/app-platform/service/catalog"
)

func (r *mutationResolver) SubmitEvidence(ctx context.Context, input catalog.EvidenceInput) (*db.PromotionEvidence, error) {
	return r.Catalog.SubmitEvidence(ctx, input)
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

func (r *Resolver) Promotion() exec.PromotionResolver { return &promotionResolver{r} }

type promotionResolver struct{ *Resolver }
