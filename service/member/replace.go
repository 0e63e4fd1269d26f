package member

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/change"
)

// ReplaceInput is which member makes way, and where the new one lives.
type ReplaceInput struct {
	Input
	AllocationID ids.ID  // empty for the same one
	Intent       *Intent // or: an allocation is asked for
}

func (in ReplaceInput) request() *change.Request {
	request := in.Input.request(lifecycle.MemberReplace, "replaceMember")
	request.Intent, request.Asked.Input = in.Intent, in
	if in.AllocationID != "" {
		request.AllocationIDs = []ids.ID{in.AllocationID}
	}
	return request
}

// Replace puts a new member of the same component in another's place. As many members are asked for as
// before. It asks for <family>.member.replace, and for allocation.create when capacity is asked for; a
// member that is ACTIVE and HEALTHY is replaced for a reason only. Faults: those of change.Engine.Accept.
func (s *Service) Replace(ctx context.Context, in ReplaceInput) (*Changed, error) {
	return s.accept(ctx, in.request(), writeReplace)
}

// PlanReplace shows what Replace would do.
func (s *Service) PlanReplace(ctx context.Context, in ReplaceInput) (*change.Plan, error) {
	return s.engine().Plan(ctx, in.request())
}

func writeReplace(ctx context.Context, t *tx.Tx, c *change.Change) error { return c.Seat(ctx, t) }
