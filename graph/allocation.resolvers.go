package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/orphan"
)

func (r *allocationResolver) Node(ctx context.Context, obj *db.Allocation) (*db.ComputeNode, error) {
	return read.Maybe(ctx, read.Of(ctx).Nodes, obj.NodeID)
}

func (r *allocationResolver) Instance(ctx context.Context, obj *db.Allocation) (*instance.View, error) {
	return read.Maybe(ctx, read.Of(ctx).Instances, obj.InstanceID)
}

func (r *allocationResolver) ReleaseOperation(ctx context.Context, obj *db.Allocation) (*operation.View, error) {
	return read.Maybe(ctx, read.Of(ctx).Operations, obj.ReleaseOperationID)
}

func (r *allocationResolver) HourlyCost(ctx context.Context, obj *db.Allocation) (*orphan.Money, error) {
	return read.Maybe(ctx, read.Of(ctx).Hourly, &obj.ID)
}

func (r *mutationResolver) RequestAllocation(ctx context.Context, input allocation.RequestInput) (*model.RequestAllocationPayload, error) {
	got, err := r.Allocations.Request(ctx, input)
	if err != nil {
		return nil, err
	}
	return &model.RequestAllocationPayload{Allocations: got}, nil
}

func (r *mutationResolver) ReleaseAllocation(ctx context.Context, input allocation.ReleaseInput) (*model.ReleaseAllocationPayload, error) {
	released, err := r.Allocations.Release(ctx, input)
	if err != nil {
		return nil, err
	}
	return &model.ReleaseAllocationPayload{Allocation: released.Allocation, Operation: released.Operation}, nil
}

func (r *queryResolver) Allocations(ctx context.Context, projectID ids.ID, statuses []lifecycle.AllocationStatus, first *int, after *string) (*model.AllocationConnection, error) {
	args, err := page.Of(first, after, read.StandardPage, page.Max)
	if err != nil {
		return nil, err
	}
	return read.Connection[model.AllocationConnection](r.Resolver.Allocations.List(ctx, projectID, statuses, args))
}

func (r *Resolver) Allocation() exec.AllocationResolver { return &allocationResolver{r} }

type allocationResolver struct{ *Resolver }
