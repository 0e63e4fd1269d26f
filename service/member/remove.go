package member

import (
	"context"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
)

// Remove takes a member out. One member less is asked for from now on, never fewer than the component's
// minimum; open drains, cordons and labellings of the member make way. It asks for
// <family>.member.remove; force needs a reason.
//
// Faults: those of change.Engine.Accept; LIMIT_EXCEEDED at input.memberId below the minimum.
func (s *Service) Remove(ctx context.Context, in Input) (*Changed, error) {
	return s.accept(ctx, in.request(lifecycle.MemberRemove, "removeMember"), writeRemove)
}

// PlanRemove shows what Remove would do.
func (s *Service) PlanRemove(ctx context.Context, in Input) (*change.Plan, error) {
	return s.engine().Plan(ctx, in.request(lifecycle.MemberRemove, "removeMember"))
}

func writeRemove(ctx context.Context, t *tx.Tx, c *change.Change) error { return c.Ask(ctx, t) }
