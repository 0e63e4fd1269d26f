package member

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/change"
)

// ReplaceInput names the member to replace, and where the new one runs.
type ReplaceInput struct {
	Input
	AllocationID ids.ID  // empty for the same one
	Intent       *Intent // or: an allocation to place
}

func (in ReplaceInput) request() *change.Request {
	request := in.Input.request(lifecycle.MemberReplace, "replaceMember")
	request.Intent, request.Asked.Input = in.Intent, in
	if in.AllocationID != "" {
		request.AllocationIDs = []ids.ID{in.AllocationID}
	}
	return request
}

// Replace replaces a member by a new one of the same component. The desired count stays. It requires
// <family>.member.replace, and allocation.create with an intent; a member that is ACTIVE and HEALTHY is replaced for a
// reason only. Faults: those of engine.Engine.Accept.
func (s *Service) Replace(ctx context.Context, in ReplaceInput) (*Changed, error) {
	return s.accept(ctx, in.request())
}

// PlanReplace shows what Replace would do.
func (s *Service) PlanReplace(ctx context.Context, in ReplaceInput) (*change.Plan, error) {
	return s.engine().Plan(ctx, in.request())
}
