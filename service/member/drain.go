package member

import (
	"context"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/change"
)

// Drain lets a member's work end; it takes no new work and stays a member. It requires <family>.node.operate; force,
// which loses the work, needs a reason. Faults: those of engine.Engine.Accept.
func (s *Service) Drain(ctx context.Context, in Input) (*Changed, error) {
	return s.accept(ctx, in.request(lifecycle.MemberDrain, "drainMember"))
}

// PlanDrain shows what Drain would do.
func (s *Service) PlanDrain(ctx context.Context, in Input) (*change.Plan, error) {
	return s.engine().Plan(ctx, in.request(lifecycle.MemberDrain, "drainMember"))
}
