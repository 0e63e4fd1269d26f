package member

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// Remove removes a member. The desired count falls by one, never below the component's minimum; open drains, cordons
// and labellings of the member are superseded. It requires <family>.member.remove; force needs a reason.
//
// Faults: those of engine.Engine.Accept; LIMIT_EXCEEDED at input.memberId below the minimum.
func (s *Service) Remove(ctx context.Context, in Input) (*Changed, error) {
	return s.accept(ctx, in.request(lifecycle.MemberRemove, "removeMember"))
}

// PlanRemove shows what Remove would do.
func (s *Service) PlanRemove(ctx context.Context, in Input) (*change.Plan, error) {
	return s.engine().Plan(ctx, in.request(lifecycle.MemberRemove, "removeMember"))
}

// RemoveInput names several members of one instance that are removed together.
type RemoveInput struct {
	MemberIDs       []ids.ID // 1 to 64
	Force           bool
	OnDeadline      lifecycle.DeadlineOutcome // empty for FAIL
	DeadlineSeconds int
	PlanHash        string `json:"-"`
	Reason          string
	IdempotencyKey  string `json:"-"`
}

// Removed are members on their way out.
type Removed struct {
	InstanceID ids.ID
	Members    []*db.Member
	Operation  *operation.View
}

func (in RemoveInput) request() *change.Request {
	request := Input{
		Force: in.Force, OnDeadline: in.OnDeadline, DeadlineSeconds: in.DeadlineSeconds, PlanHash: in.PlanHash,
		Reason: in.Reason, IdempotencyKey: in.IdempotencyKey,
	}.request(lifecycle.MemberRemove, "removeMembers")
	request.MemberIDs, request.Asked.Input = in.MemberIDs, in
	if request.MemberIDs == nil {
		request.MemberIDs = []ids.ID{} // none, which is refused
	}
	return request
}

// RemoveMany removes several members of one instance by one operation: all of them leave, or it fails. The desired
// counts of their components fall, never below a minimum. It requires <family>.member.remove; force needs a reason.
//
// Faults: those of engine.Engine.Accept; NOT_FOUND for a member of another instance; LIMIT_EXCEEDED at input.memberIds
// below a minimum.
func (s *Service) RemoveMany(ctx context.Context, in RemoveInput) (*Removed, error) {
	accepted, err := s.engine().Accept(ctx, in.request())
	if err != nil {
		return nil, err
	}
	return &Removed{InstanceID: accepted.Instance.ID, Members: accepted.Going, Operation: accepted.Operation}, nil
}

// PlanRemoveMany shows what RemoveMany would do.
func (s *Service) PlanRemoveMany(ctx context.Context, in RemoveInput) (*change.Plan, error) {
	return s.engine().Plan(ctx, in.request())
}
