package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/policy"
)

func (r *mutationResolver) SetPolicy(ctx context.Context, input policy.SetInput) (*db.PolicyOverlay, error) {
	return r.Policies.SetPolicy(ctx, input)
}

func (r *queryResolver) PolicyOverlays(ctx context.Context, tenantID *ids.ID, projectID *ids.ID, first *int, after *string) (*model.PolicyOverlayConnection, error) {
	args, err := page.Of(first, after, read.ShortPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.PolicyOverlayConnection](r.Policies.Overlays(ctx, tenantID, projectID, args))
}

func (r *queryResolver) EffectivePolicy(ctx context.Context, projectID ids.ID) (*policy.EffectiveView, error) {
	return r.Policies.Effective(ctx, projectID)
}

func (r *queryResolver) PreviewPolicy(ctx context.Context, input policy.SetInput) (*policy.Preview, error) {
	return r.Policies.Preview(ctx, input)
}
