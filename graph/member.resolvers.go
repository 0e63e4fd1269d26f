package graph

import (
	"context"
	"github.com/gpuaas/app-platform/graph/read"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/exec"
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/graph/shape"
	"github.com/gpuaas/app-platform/service/member"
)

func (r *mutationResolver) AddMembers(ctx context.Context, input member.AddInput) (*model.AddMembersPayload, error) {
	added, err := r.Resolver.Members.Add(ctx, input)
	if err != nil {
		return nil, err
	}
	changed, err := r.instance(ctx, added.InstanceID)
	return &model.AddMembersPayload{Instance: changed, Members: added.Members, Operation: added.Operation}, err
}

func (r *mutationResolver) DrainMember(ctx context.Context, input member.Input) (*model.MemberPayload, error) {
	return shape.MemberPayload(r.Resolver.Members.Drain(ctx, input))
}

func (r *mutationResolver) CordonMember(ctx context.Context, input member.Input) (*model.MemberPayload, error) {
	return shape.MemberPayload(r.Resolver.Members.Cordon(ctx, input))
}

func (r *mutationResolver) UncordonMember(ctx context.Context, input member.Input) (*model.MemberPayload, error) {
	return shape.MemberPayload(r.Resolver.Members.Uncordon(ctx, input))
}

func (r *mutationResolver) LabelMember(ctx context.Context, input member.LabelInput) (*model.MemberPayload, error) {
	return shape.MemberPayload(r.Resolver.Members.Label(ctx, input))
}

func (r *mutationResolver) RemoveMember(ctx context.Context, input member.Input) (*model.MemberPayload, error) {
	return shape.MemberPayload(r.Resolver.Members.Remove(ctx, input))
}

func (r *mutationResolver) RemoveMembers(ctx context.Context, input member.RemoveInput) (*model.RemoveMembersPayload, error) {
	removed, err := r.Resolver.Members.RemoveMany(ctx, input)
	if err != nil {
		return nil, err
	}
	changed, err := r.instance(ctx, removed.InstanceID)
	return &model.RemoveMembersPayload{Instance: changed, Members: removed.Members, Operation: removed.Operation}, err
}

func (r *mutationResolver) ScaleComponent(ctx context.Context, input member.ScaleInput) (*model.ScaleComponentPayload, error) {
	scaled, err := r.Resolver.Members.Scale(ctx, input)
	if err != nil {
		return nil, err
	}
	changed, err := r.instance(ctx, scaled.InstanceID)
	return &model.ScaleComponentPayload{Instance: changed, Added: scaled.Added, Removed: scaled.Removed,
		Operation: scaled.Operation}, err
}

func (r *mutationResolver) ReplaceMember(ctx context.Context, input member.ReplaceInput) (*model.ReplaceMemberPayload, error) {
	changed, err := r.Resolver.Members.Replace(ctx, input)
	if err != nil {
		return nil, err
	}
	return &model.ReplaceMemberPayload{Member: changed.Member, Replacement: changed.Replacement,
		Operation: changed.Operation}, nil
}

func (r *mutationResolver) RecoverMember(ctx context.Context, input member.Input) (*model.MemberPayload, error) {
	return shape.MemberPayload(r.Resolver.Members.Recover(ctx, input))
}

func (r *queryResolver) Member(ctx context.Context, id ids.ID) (*db.Member, error) {
	return r.Resolver.Instances.Member(ctx, id)
}

func (r *replaceMemberInputResolver) AllocationID(ctx context.Context, obj *member.ReplaceInput, data *ids.ID) error {
	obj.AllocationID = read.Value(data)
	return nil
}

func (r *Resolver) ReplaceMemberInput() exec.ReplaceMemberInputResolver {
	return &replaceMemberInputResolver{r}
}

type replaceMemberInputResolver struct{ *Resolver }
