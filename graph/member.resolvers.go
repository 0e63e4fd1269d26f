package graph

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/graph/generated/model"
)

func (r *mutationResolver) AddMembers(ctx context.Context, input model.AddMembersInput) (*model.AddMembersPayload, error) {
	added, err := r.Resolver.Members.Add(ctx, addInput(input))
	if err != nil {
		return nil, err
	}
	changed, err := r.instance(ctx, added.InstanceID)
	return &model.AddMembersPayload{Instance: changed, Members: added.Members, Operation: added.Operation}, err
}

func (r *mutationResolver) DrainMember(ctx context.Context, input model.DrainMemberInput) (*model.MemberPayload, error) {
	return memberPayload(r.Resolver.Members.Drain(ctx, drainInput(input)))
}

func (r *mutationResolver) CordonMember(ctx context.Context, input model.MemberInput) (*model.MemberPayload, error) {
	return memberPayload(r.Resolver.Members.Cordon(ctx, memberInput(input)))
}

func (r *mutationResolver) UncordonMember(ctx context.Context, input model.MemberInput) (*model.MemberPayload, error) {
	return memberPayload(r.Resolver.Members.Uncordon(ctx, memberInput(input)))
}

func (r *mutationResolver) LabelMember(ctx context.Context, input model.LabelMemberInput) (*model.MemberPayload, error) {
	return memberPayload(r.Resolver.Members.Label(ctx, labelInput(input)))
}

func (r *mutationResolver) RemoveMember(ctx context.Context, input model.RemoveMemberInput) (*model.MemberPayload, error) {
	return memberPayload(r.Resolver.Members.Remove(ctx, removeInput(input)))
}

func (r *mutationResolver) ReplaceMember(ctx context.Context, input model.ReplaceMemberInput) (*model.ReplaceMemberPayload, error) {
	changed, err := r.Resolver.Members.Replace(ctx, replaceInput(input))
	if err != nil {
		return nil, err
	}
	return &model.ReplaceMemberPayload{Member: changed.Member, Replacement: changed.Replacement, Operation: changed.Operation}, nil
}

func (r *mutationResolver) RecoverMember(ctx context.Context, input model.MemberInput) (*model.MemberPayload, error) {
	return memberPayload(r.Resolver.Members.Recover(ctx, memberInput(input)))
}

func (r *queryResolver) Member(ctx context.Context, id ids.ID) (*db.Member, error) {
	return r.Resolver.Instances.Member(ctx, id)
}
