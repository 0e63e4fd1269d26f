package graph

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/operation"
)

func (r *allocationResolver) Node(ctx context.Context, obj *db.Allocation) (*db.ComputeNode, error) {
	panic(fmt.Errorf("not implemented: Node - node"))
}

func (r *allocationResolver) Instance(ctx context.Context, obj *db.Allocation) (*instance.View, error) {
	panic(fmt.Errorf("not implemented: Instance - instance"))
}

func (r *allocationResolver) ReleaseOperation(ctx context.Context, obj *db.Allocation) (*operation.View, error) {
	panic(fmt.Errorf("not implemented: ReleaseOperation - releaseOperation"))
}

func (r *mutationResolver) RequestAllocation(ctx context.Context, input model.RequestAllocationInput) (*model.RequestAllocationPayload, error) {
	panic(fmt.Errorf("not implemented: RequestAllocation - requestAllocation"))
}

func (r *mutationResolver) ReleaseAllocation(ctx context.Context, input model.ReleaseAllocationInput) (*model.ReleaseAllocationPayload, error) {
	panic(fmt.Errorf("not implemented: ReleaseAllocation - releaseAllocation"))
}

func (r *queryResolver) Allocations(ctx context.Context, projectID ids.ID, statuses []lifecycle.AllocationStatus, first *int, after *string) (*model.AllocationConnection, error) {
	panic(fmt.Errorf("not implemented: Allocations - allocations"))
}

func (r *Resolver) Allocation() exec.AllocationResolver { return &allocationResolver{r} }

type allocationResolver struct{ *Resolver }
