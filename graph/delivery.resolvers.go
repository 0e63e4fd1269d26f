package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/service/delivery"
)

func (r *artifactPartResolver) SizeBytes(ctx context.Context, obj *db.ArtifactPart) (float64, error) {
	return float64(obj.SizeBytes), nil
}

func (r *mutationResolver) OpenArtifactDelivery(ctx context.Context, taskID ids.ID) (*delivery.Delivery, error) {
	return r.Deliveries.Open(ctx, taskID)
}

func (r *Resolver) ArtifactPart() exec.ArtifactPartResolver { return &artifactPartResolver{r} }

type artifactPartResolver struct{ *Resolver }
