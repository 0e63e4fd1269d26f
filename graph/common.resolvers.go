package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
)

func (r *queryResolver) Node(ctx context.Context, id ids.ID) (model.Node, error) {
	return r.nodeReads().Node(ctx, r.DB, id)
}

func (r *reasonResolver) Code(ctx context.Context, obj *fault.Reason) (string, error) {
	return string(obj.Code), nil
}

func (r *Resolver) Mutation() exec.MutationResolver { return &mutationResolver{r} }

func (r *Resolver) Query() exec.QueryResolver { return &queryResolver{r} }

func (r *Resolver) Reason() exec.ReasonResolver { return &reasonResolver{r} }

func (r *Resolver) Subscription() exec.SubscriptionResolver { return &subscriptionResolver{r} }

type (
	mutationResolver     struct{ *Resolver }
	queryResolver        struct{ *Resolver }
	reasonResolver       struct{ *Resolver }
	subscriptionResolver struct{ *Resolver }
)
