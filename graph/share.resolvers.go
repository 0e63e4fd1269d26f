package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/graph/shape"
	"github.com/gpuaas/app-platform/service/kit/impact"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/share"
)

func (r *controlPlaneShareResolver) ControlPlane(ctx context.Context, obj *db.ControlPlaneShare) (*share.ControlPlane, error) {
	return read.Maybe(ctx, read.Of(ctx).ControlPlanes, &obj.ID)
}

func (r *mutationResolver) OfferControlPlane(ctx context.Context, input share.OfferInput) (*db.ControlPlaneShare, error) {
	return r.Shares.Offer(ctx, input)
}

func (r *mutationResolver) AcceptControlPlane(ctx context.Context, shareID ids.ID, reason *string) (*db.ControlPlaneShare, error) {
	return r.Shares.Accept(ctx, share.Input{ShareID: shareID, Reason: read.Value(reason)})
}

func (r *mutationResolver) DeclineControlPlane(ctx context.Context, shareID ids.ID, reason *string) (*db.ControlPlaneShare, error) {
	return r.Shares.Decline(ctx, share.Input{ShareID: shareID, Reason: read.Value(reason)})
}

func (r *mutationResolver) WithdrawControlPlane(ctx context.Context, shareID ids.ID, reason string) (*db.ControlPlaneShare, error) {
	return r.Shares.Withdraw(ctx, share.Input{ShareID: shareID, Reason: reason})
}

func (r *mutationResolver) DetachControlPlane(ctx context.Context, shareID ids.ID, reason *string) (*db.ControlPlaneShare, error) {
	return r.Shares.Detach(ctx, share.Input{ShareID: shareID, Reason: read.Value(reason)})
}

func (r *queryResolver) ControlPlaneShares(ctx context.Context, projectID ids.ID, ended bool, first *int, after *string) (*model.ControlPlaneShareConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.ControlPlaneShareConnection](r.Shares.List(ctx, projectID, ended, args))
}

func (r *queryResolver) ImpactOf(ctx context.Context, instanceID ids.ID) (*impact.Impact, error) {
	return impact.Read(ctx, r.DB, instanceID)
}

func (r *sharedControlPlaneResolver) Actions(ctx context.Context, obj *share.ControlPlane) ([]*model.ActionSpec, error) {
	return shape.Actions(obj.Actions), nil
}

func (r *Resolver) ControlPlaneShare() exec.ControlPlaneShareResolver {
	return &controlPlaneShareResolver{r}
}

func (r *Resolver) SharedControlPlane() exec.SharedControlPlaneResolver {
	return &sharedControlPlaneResolver{r}
}

type (
	controlPlaneShareResolver  struct{ *Resolver }
	sharedControlPlaneResolver struct{ *Resolver }
)
