package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/allocation"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/kit/tariff"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/member"
	"github.com/gpuaas/app-platform/service/orphan"
	"github.com/gpuaas/app-platform/service/retry"
)

func (r *planResolver) Instance(ctx context.Context, obj *change.Plan) (*instance.View, error) {
	return r.instance(ctx, obj.InstanceID)
}

func (r *planResolver) Supersedes(ctx context.Context, obj *change.Plan) ([]*operation.View, error) {
	return read.Visible(ctx, read.Of(ctx).Operations, obj.SupersedesIDs)
}

func (r *plannedCapacityResolver) HourlyPrice(ctx context.Context, obj *change.PlannedCapacity) (*orphan.Money, error) {
	return read.Hourly(obj.Hourly), nil
}

func (r *plannedCostResolver) Hourly(ctx context.Context, obj *tariff.Line) (*orphan.Money, error) {
	return read.Hourly(obj.Hourly), nil
}

func (r *plannedCostResolver) PriceID(ctx context.Context, obj *tariff.Line) (*ids.ID, error) {
	if obj.Hourly == nil {
		return nil, nil
	}
	return &obj.Hourly.PriceID, nil
}

func (r *plannedMemberResolver) Member(ctx context.Context, obj *change.PlannedMember) (*db.Member, error) {
	return read.Maybe(ctx, read.Of(ctx).Members, obj.MemberID)
}

func (r *plannedMemberResolver) Allocation(ctx context.Context, obj *change.PlannedMember) (*db.Allocation, error) {
	return read.Maybe(ctx, read.Of(ctx).Allocations, obj.AllocationID)
}

func (r *queryResolver) PlanLaunchInstance(ctx context.Context, input instance.LaunchInput) (*change.Plan, error) {
	return r.Resolver.Instances.PlanLaunch(ctx, input)
}

func (r *queryResolver) PlanReleaseAllocation(ctx context.Context, allocationID ids.ID) (*allocation.Plan, error) {
	return r.Resolver.Allocations.PlanRelease(ctx, allocationID)
}

func (r *queryResolver) PlanAddMembers(ctx context.Context, input member.AddInput) (*change.Plan, error) {
	return r.Resolver.Members.PlanAdd(ctx, input)
}

func (r *queryResolver) PlanDrainMember(ctx context.Context, input member.Input) (*change.Plan, error) {
	return r.Resolver.Members.PlanDrain(ctx, input)
}

func (r *queryResolver) PlanRemoveMember(ctx context.Context, input member.Input) (*change.Plan, error) {
	return r.Resolver.Members.PlanRemove(ctx, input)
}

func (r *queryResolver) PlanRemoveMembers(ctx context.Context, input member.RemoveInput) (*change.Plan, error) {
	return r.Resolver.Members.PlanRemoveMany(ctx, input)
}

func (r *queryResolver) PlanScaleComponent(ctx context.Context, input member.ScaleInput) (*change.Plan, error) {
	return r.Resolver.Members.PlanScale(ctx, input)
}

func (r *queryResolver) PlanReplaceMember(ctx context.Context, input member.ReplaceInput) (*change.Plan, error) {
	return r.Resolver.Members.PlanReplace(ctx, input)
}

func (r *queryResolver) PlanUpgradeInstance(ctx context.Context, input instance.UpgradeInput) (*change.Plan, error) {
	return r.Resolver.Instances.PlanUpgrade(ctx, input)
}

func (r *queryResolver) PlanRollbackInstance(ctx context.Context, input instance.RollbackInput) (*change.Plan, error) {
	return r.Resolver.Instances.PlanRollback(ctx, input)
}

func (r *queryResolver) PlanRetryOperation(ctx context.Context, input retry.Input) (*change.Plan, error) {
	return r.Retries.Plan(ctx, input)
}

func (r *queryResolver) PlanDecommissionInstance(ctx context.Context, input instance.DecommissionInput) (*change.Plan, error) {
	return r.Resolver.Instances.PlanDecommission(ctx, input)
}

func (r *releasePlanResolver) Instance(ctx context.Context, obj *allocation.Plan) (*instance.View, error) {
	if obj.InstanceID == nil {
		return nil, nil
	}
	return r.instance(ctx, *obj.InstanceID)
}

func (r *planReplaceMemberInputResolver) AllocationID(ctx context.Context, obj *member.ReplaceInput, data *ids.ID) error {
	obj.AllocationID = read.Value(data)
	return nil
}

func (r *Resolver) Plan() exec.PlanResolver { return &planResolver{r} }

func (r *Resolver) PlannedCapacity() exec.PlannedCapacityResolver { return &plannedCapacityResolver{r} }

func (r *Resolver) PlannedCost() exec.PlannedCostResolver { return &plannedCostResolver{r} }

func (r *Resolver) PlannedMember() exec.PlannedMemberResolver { return &plannedMemberResolver{r} }

func (r *Resolver) ReleasePlan() exec.ReleasePlanResolver { return &releasePlanResolver{r} }

func (r *Resolver) PlanReplaceMemberInput() exec.PlanReplaceMemberInputResolver {
	return &planReplaceMemberInputResolver{r}
}

type (
	planResolver                   struct{ *Resolver }
	plannedCapacityResolver        struct{ *Resolver }
	plannedCostResolver            struct{ *Resolver }
	plannedMemberResolver          struct{ *Resolver }
	releasePlanResolver            struct{ *Resolver }
	planReplaceMemberInputResolver struct{ *Resolver }
)
