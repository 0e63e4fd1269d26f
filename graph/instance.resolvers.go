package graph

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/operation"
)

func (r *instanceResolver) Manifest(ctx context.Context, obj *instance.View) (*db.Manifest, error) {
	panic(fmt.Errorf("not implemented: Manifest - manifest"))
}

func (r *instanceResolver) OperatingMode(ctx context.Context, obj *instance.View) (model.OperatingMode, error) {
	panic(fmt.Errorf("not implemented: OperatingMode - operatingMode"))
}

func (r *instanceResolver) ControlPlaneScope(ctx context.Context, obj *instance.View) (model.ControlPlaneScope, error) {
	panic(fmt.Errorf("not implemented: ControlPlaneScope - controlPlaneScope"))
}

func (r *instanceResolver) Members(ctx context.Context, obj *instance.View, first *int, after *string) (*model.MemberConnection, error) {
	panic(fmt.Errorf("not implemented: Members - members"))
}

func (r *instanceResolver) Operations(ctx context.Context, obj *instance.View, first *int, after *string) (*model.OperationConnection, error) {
	panic(fmt.Errorf("not implemented: Operations - operations"))
}

func (r *instanceResolver) LastOperation(ctx context.Context, obj *instance.View) (*operation.View, error) {
	panic(fmt.Errorf("not implemented: LastOperation - lastOperation"))
}

func (r *instanceResolver) Events(ctx context.Context, obj *instance.View, first *int, after *string) (*model.EventConnection, error) {
	panic(fmt.Errorf("not implemented: Events - events"))
}

func (r *instanceResolver) Actions(ctx context.Context, obj *instance.View) ([]*model.ActionSpec, error) {
	panic(fmt.Errorf("not implemented: Actions - actions"))
}

func (r *instanceResolver) Allocations(ctx context.Context, obj *instance.View) ([]*db.Allocation, error) {
	panic(fmt.Errorf("not implemented: Allocations - allocations"))
}

func (r *memberResolver) Allocation(ctx context.Context, obj *db.Member) (*db.Allocation, error) {
	panic(fmt.Errorf("not implemented: Allocation - allocation"))
}

func (r *memberResolver) Node(ctx context.Context, obj *db.Member) (*db.ComputeNode, error) {
	panic(fmt.Errorf("not implemented: Node - node"))
}

func (r *memberResolver) LastOperation(ctx context.Context, obj *db.Member) (*operation.View, error) {
	panic(fmt.Errorf("not implemented: LastOperation - lastOperation"))
}

func (r *mutationResolver) LaunchInstance(ctx context.Context, input model.LaunchInstanceInput) (*model.LaunchInstancePayload, error) {
	panic(fmt.Errorf("not implemented: LaunchInstance - launchInstance"))
}

func (r *mutationResolver) DecommissionInstance(ctx context.Context, input model.DecommissionInstanceInput) (*model.DecommissionInstancePayload, error) {
	panic(fmt.Errorf("not implemented: DecommissionInstance - decommissionInstance"))
}

func (r *mutationResolver) InvokeAction(ctx context.Context, input model.InvokeActionInput) (*model.InvokeActionPayload, error) {
	panic(fmt.Errorf("not implemented: InvokeAction - invokeAction"))
}

func (r *queryResolver) Instance(ctx context.Context, id ids.ID) (*instance.View, error) {
	panic(fmt.Errorf("not implemented: Instance - instance"))
}

func (r *queryResolver) Instances(ctx context.Context, projectID ids.ID, filter *model.InstanceFilter, first *int, after *string) (*model.InstanceConnection, error) {
	panic(fmt.Errorf("not implemented: Instances - instances"))
}

func (r *queryResolver) LaunchOptions(ctx context.Context, projectID ids.ID, appSlug string, version *string) (*model.LaunchOptions, error) {
	panic(fmt.Errorf("not implemented: LaunchOptions - launchOptions"))
}

func (r *Resolver) Instance() exec.InstanceResolver { return &instanceResolver{r} }

func (r *Resolver) Member() exec.MemberResolver { return &memberResolver{r} }

type (
	instanceResolver struct{ *Resolver }
	memberResolver   struct{ *Resolver }
)
