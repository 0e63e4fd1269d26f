package member

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/service/change"
)

var errPending = fault.New(fault.Unavailable, "not in this build")

// Add brings members of a component in.
func (s *Service) Add(ctx context.Context, in AddInput) (*Added, error) { return nil, errPending }

// PlanAdd shows what Add would do.
func (s *Service) PlanAdd(ctx context.Context, in AddInput) (*change.Plan, error) {
	return nil, errPending
}

// Drain lets a member's work end.
func (s *Service) Drain(ctx context.Context, in Input) (*Changed, error) { return nil, errPending }

// PlanDrain shows what Drain would do.
func (s *Service) PlanDrain(ctx context.Context, in Input) (*change.Plan, error) {
	return nil, errPending
}

// Cordon lets a member take no new work.
func (s *Service) Cordon(ctx context.Context, in Input) (*Changed, error) { return nil, errPending }

// Uncordon lets a member take work again.
func (s *Service) Uncordon(ctx context.Context, in Input) (*Changed, error) { return nil, errPending }

// Label labels a member.
func (s *Service) Label(ctx context.Context, in LabelInput) (*Changed, error) { return nil, errPending }

// Remove takes a member out.
func (s *Service) Remove(ctx context.Context, in Input) (*Changed, error) { return nil, errPending }

// PlanRemove shows what Remove would do.
func (s *Service) PlanRemove(ctx context.Context, in Input) (*change.Plan, error) {
	return nil, errPending
}

// Replace puts a new member in another's place.
func (s *Service) Replace(ctx context.Context, in ReplaceInput) (*Changed, error) {
	return nil, errPending
}

// PlanReplace shows what Replace would do.
func (s *Service) PlanReplace(ctx context.Context, in ReplaceInput) (*change.Plan, error) {
	return nil, errPending
}

// Recover brings a failed member in again.
func (s *Service) Recover(ctx context.Context, in Input) (*Changed, error) { return nil, errPending }
