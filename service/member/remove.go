package member

import (
	"context"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/change"
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
