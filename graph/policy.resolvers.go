package graph

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/policy"
)

func (r *mutationResolver) SetPolicy(ctx context.Context, input model.SetPolicyInput) (*db.PolicyOverlay, error) {
	panic(fmt.Errorf("not implemented: SetPolicy - setPolicy"))
}

func (r *queryResolver) PolicyOverlays(ctx context.Context, tenantID *ids.ID, projectID *ids.ID, first *int, after *string) (*model.PolicyOverlayConnection, error) {
	panic(fmt.Errorf("not implemented: PolicyOverlays - policyOverlays"))
}

func (r *queryResolver) EffectivePolicy(ctx context.Context, projectID ids.ID) (*policy.EffectiveView, error) {
	panic(fmt.Errorf("not implemented: EffectivePolicy - effectivePolicy"))
}

func (r *queryResolver) PreviewPolicy(ctx context.Context, input model.SetPolicyInput) (*policy.Preview, error) {
	panic(fmt.Errorf("not implemented: PreviewPolicy - previewPolicy"))
}
