package graph

import (
	"context"

	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/read"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/member"
)

func (r *planResolver) Instance(ctx context.Context, obj *change.Plan) (*instance.View, error) {
	return r.instance(ctx, obj.InstanceID)
}

func (r *planResolver) Supersedes(ctx context.Context, obj *change.Plan) ([]*operation.View, error) {
	return read.Visible(ctx, read.Of(ctx).Operations, obj.SupersedesIDs)
}

func (r *plannedMemberResolver) Member(ctx context.Context, obj *change.PlannedMember) (*db.Member, error) {
	return read.Maybe(ctx, read.Of(ctx).Members, obj.MemberID)
}

func (r *plannedMemberResolver) Allocation(ctx context.Context, obj *change.PlannedMember) (*db.Allocation, error) {
	return read.Maybe(ctx, read.Of(ctx).Allocations, obj.AllocationID)
}

func (r *queryResolver) PlanAddMembers(ctx context.Context, input model.PlanAddMembersInput) (*change.Plan, error) {
	return r.Resolver.Members.PlanAdd(ctx, planAddInput(input))
}

func (r *queryResolver) PlanDrainMember(ctx context.Context, input model.PlanMemberInput) (*change.Plan, error) {
	return r.Resolver.Members.PlanDrain(ctx, member.Input{MemberID: input.MemberID, Force: input.Force})
}

func (r *queryResolver) PlanRemoveMember(ctx context.Context, input model.PlanMemberInput) (*change.Plan, error) {
	return r.Resolver.Members.PlanRemove(ctx, member.Input{MemberID: input.MemberID, Force: input.Force})
}

func (r *queryResolver) PlanReplaceMember(ctx context.Context, input model.PlanReplaceMemberInput) (*change.Plan, error) {
	return r.Resolver.Members.PlanReplace(ctx, planReplaceInput(input))
}

func (r *queryResolver) PlanUpgradeInstance(ctx context.Context, input model.PlanUpgradeInstanceInput) (*change.Plan, error) {
	return r.Resolver.Instances.PlanUpgrade(ctx, instance.UpgradeInput{
		InstanceID: input.InstanceID, Version: value(input.Version), Config: input.Config,
	})
}

func (r *queryResolver) PlanRollbackInstance(ctx context.Context, input model.PlanRollbackInstanceInput) (*change.Plan, error) {
	return r.Resolver.Instances.PlanRollback(ctx, instance.RollbackInput{InstanceID: input.InstanceID, Generation: input.Generation})
}

func (r *queryResolver) PlanDecommissionInstance(ctx context.Context, input model.PlanDecommissionInstanceInput) (*change.Plan, error) {
	return r.Resolver.Instances.PlanDecommission(ctx, input.InstanceID, input.Force)
}

func (r *Resolver) Plan() exec.PlanResolver { return &planResolver{r} }

func (r *Resolver) PlannedMember() exec.PlannedMemberResolver { return &plannedMemberResolver{r} }

type (
	planResolver          struct{ *Resolver }
	plannedMemberResolver struct{ *Resolver }
)
