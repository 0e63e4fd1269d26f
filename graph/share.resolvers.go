package graph

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/impact"
	"github.com/gpuaas/app-platform/service/share"
)

func (r *controlPlaneShareResolver) ControlPlane(ctx context.Context, obj *db.ControlPlaneShare) (*share.ControlPlane, error) {
	panic(fmt.Errorf("not implemented: ControlPlane - controlPlane"))
}

func (r *mutationResolver) OfferControlPlane(ctx context.Context, input model.OfferControlPlaneInput) (*db.ControlPlaneShare, error) {
	panic(fmt.Errorf("not implemented: OfferControlPlane - offerControlPlane"))
}

func (r *mutationResolver) AcceptControlPlane(ctx context.Context, shareID ids.ID, reason *string) (*db.ControlPlaneShare, error) {
	panic(fmt.Errorf("not implemented: AcceptControlPlane - acceptControlPlane"))
}

func (r *mutationResolver) DeclineControlPlane(ctx context.Context, shareID ids.ID, reason *string) (*db.ControlPlaneShare, error) {
	panic(fmt.Errorf("not implemented: DeclineControlPlane - declineControlPlane"))
}

func (r *mutationResolver) WithdrawControlPlane(ctx context.Context, shareID ids.ID, reason string) (*db.ControlPlaneShare, error) {
	panic(fmt.Errorf("not implemented: WithdrawControlPlane - withdrawControlPlane"))
}

func (r *mutationResolver) DetachControlPlane(ctx context.Context, shareID ids.ID, reason *string) (*db.ControlPlaneShare, error) {
	panic(fmt.Errorf("not implemented: DetachControlPlane - detachControlPlane"))
}

func (r *queryResolver) ControlPlaneShares(ctx context.Context, projectID ids.ID, ended bool, first *int, after *string) (*model.ControlPlaneShareConnection, error) {
	panic(fmt.Errorf("not implemented: ControlPlaneShares - controlPlaneShares"))
}

func (r *queryResolver) ImpactOf(ctx context.Context, instanceID ids.ID) (*impact.Impact, error) {
	panic(fmt.Errorf("not implemented: ImpactOf - impactOf"))
}

func (r *sharedControlPlaneResolver) Actions(ctx context.Context, obj *share.ControlPlane) ([]*model.ActionSpec, error) {
	panic(fmt.Errorf("not implemented: Actions - actions"))
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
