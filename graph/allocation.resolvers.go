package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/page"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

func (r *allocationResolver) Node(ctx context.Context, obj *db.Allocation) (*db.ComputeNode, error) {
	return maybe(ctx, loadersOf(ctx).nodes, obj.NodeID)
}

func (r *allocationResolver) Instance(ctx context.Context, obj *db.Allocation) (*instance.View, error) {
	return maybe(ctx, loadersOf(ctx).instances, obj.InstanceID)
}

func (r *allocationResolver) ReleaseOperation(ctx context.Context, obj *db.Allocation) (*operation.View, error) {
	return maybe(ctx, loadersOf(ctx).operations, obj.ReleaseOperationID)
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
	args, err := page.Of(first, after, standardPage, page.Max)
	if err != nil {
		return nil, err
	}
	found, err := r.Resolver.Allocations.List(ctx, projectID, statuses, args)
	if err != nil {
		return nil, err
	}
	return &model.AllocationConnection{Edges: edges(found, allocationEdge), PageInfo: pageInfo(found)}, nil
}

func (r *Resolver) Allocation() exec.AllocationResolver { return &allocationResolver{r} }

type allocationResolver struct{ *Resolver }
