package graph

import (
	"github.com/gpuaas/app-platform/graph/generated/model"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/member"
)

func memberPayload(changed *member.Changed, err error) (*model.MemberPayload, error) {
	if err != nil {
		return nil, err
	}
	return &model.MemberPayload{Member: changed.Member, Operation: changed.Operation}, nil
}

func instancePayload(started *instance.Started, err error) (*model.InstancePayload, error) {
	if err != nil {
		return nil, err
	}
	return &model.InstancePayload{Instance: started.Instance, Operation: started.Operation}, nil
}

func intent(in *model.CapacityIntentInput) *member.Intent {
	if in == nil {
		return nil
	}
	return &member.Intent{Shape: in.Shape, GPUCount: in.GpuCount, SKU: value(in.Sku), Region: value(in.Region)}
}

func addInput(in model.AddMembersInput) member.AddInput {
	return member.AddInput{
		InstanceID: in.InstanceID, ComponentKey: in.ComponentKey, Count: in.Count, AllocationIDs: in.AllocationIds, Intent: intent(in.Intent),
		KeepFailed: in.KeepFailed, DeadlineSeconds: in.DeadlineSeconds, PlanHash: value(in.PlanHash), Reason: value(in.Reason),
		IdempotencyKey: in.IdempotencyKey,
	}
}

func planAddInput(in model.PlanAddMembersInput) member.AddInput {
	return member.AddInput{
		InstanceID: in.InstanceID, ComponentKey: in.ComponentKey, Count: in.Count, AllocationIDs: in.AllocationIds, Intent: intent(in.Intent),
	}
}

func memberInput(in model.MemberInput) member.Input {
	return member.Input{
		MemberID: in.MemberID, DeadlineSeconds: in.DeadlineSeconds, Reason: value(in.Reason), IdempotencyKey: in.IdempotencyKey,
	}
}

func drainInput(in model.DrainMemberInput) member.Input {
	return member.Input{
		MemberID: in.MemberID, Force: in.Force, OnDeadline: in.OnDeadline, DeadlineSeconds: in.DeadlineSeconds,
		PlanHash: value(in.PlanHash), Reason: value(in.Reason), IdempotencyKey: in.IdempotencyKey,
	}
}

func removeInput(in model.RemoveMemberInput) member.Input {
	return drainInput(model.DrainMemberInput(in))
}

func labelInput(in model.LabelMemberInput) member.LabelInput {
	return member.LabelInput{Labels: in.Labels, Input: member.Input{
		MemberID: in.MemberID, DeadlineSeconds: in.DeadlineSeconds, Reason: value(in.Reason), IdempotencyKey: in.IdempotencyKey,
	}}
}

func replaceInput(in model.ReplaceMemberInput) member.ReplaceInput {
	return member.ReplaceInput{AllocationID: value(in.AllocationID), Intent: intent(in.Intent), Input: member.Input{
		MemberID: in.MemberID, Force: in.Force, OnDeadline: in.OnDeadline, DeadlineSeconds: in.DeadlineSeconds,
		PlanHash: value(in.PlanHash), Reason: value(in.Reason), IdempotencyKey: in.IdempotencyKey,
	}}
}

func planReplaceInput(in model.PlanReplaceMemberInput) member.ReplaceInput {
	return member.ReplaceInput{
		AllocationID: value(in.AllocationID), Intent: intent(in.Intent), Input: member.Input{MemberID: in.MemberID, Force: in.Force},
	}
}

func upgradeInput(in model.UpgradeInstanceInput) instance.UpgradeInput {
	return instance.UpgradeInput{
		InstanceID: in.InstanceID, Version: value(in.Version), Config: in.Config, DeadlineSeconds: in.DeadlineSeconds,
		PlanHash: value(in.PlanHash), Reason: value(in.Reason), IdempotencyKey: in.IdempotencyKey,
	}
}

func rollbackInput(in model.RollbackInstanceInput) instance.RollbackInput {
	return instance.RollbackInput{
		InstanceID: in.InstanceID, Generation: in.Generation, DeadlineSeconds: in.DeadlineSeconds,
		PlanHash: value(in.PlanHash), Reason: value(in.Reason), IdempotencyKey: in.IdempotencyKey,
	}
}
