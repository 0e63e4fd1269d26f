package member

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// AddInput describes the members to add, and where. A plan does not use the fields from PlanHash on.
type AddInput struct {
	InstanceID      ids.ID
	ComponentKey    string
	Count           int      // 1 to 64
	AllocationIDs   []ids.ID // free ones, or this instance's own; the members are spread over them in turn
	Intent          *Intent  // or: one allocation to place for each member
	KeepFailed      bool
	DeadlineSeconds int
	PlanHash        string `json:"-"`
	Reason          string
	IdempotencyKey  string `json:"-"`
}

// Added are members on their way in.
type Added struct {
	InstanceID ids.ID
	Members    []*db.Member
	Operation  *operation.View
}

func (in AddInput) request() *change.Request {
	return &change.Request{
		Action: "addMembers", Kind: lifecycle.MembersAdd, InstanceID: in.InstanceID, ComponentKey: in.ComponentKey,
		Count: in.Count, AllocationIDs: in.AllocationIDs, Intent: in.Intent,
		Conditions: change.Conditions{DeadlineSeconds: in.DeadlineSeconds, KeepFailed: in.KeepFailed},
		Asked: change.Asked{
			PlanHash: in.PlanHash, Reason: in.Reason, IdempotencyKey: in.IdempotencyKey, Input: in,
		},
	}
}

// Add adds members of a component: PENDING, with numbers that were never used, on the nodes of their allocations, which
// become the instance's. Capacity that an intent describes is placed in the same transaction and marked as the
// operation's own. It requires <family>.member.add, and allocation.create with an intent.
//
// Faults: those of engine.Engine.Accept; LIMIT_EXCEEDED at input.count beyond the component's bounds or the project's
// quota.
func (s *Service) Add(ctx context.Context, in AddInput) (*Added, error) {
	accepted, err := s.engine().Accept(ctx, in.request())
	if err != nil {
		return nil, err
	}
	return &Added{InstanceID: accepted.Instance.ID, Members: accepted.Members, Operation: accepted.Operation}, nil
}

// PlanAdd shows what Add would do.
func (s *Service) PlanAdd(ctx context.Context, in AddInput) (*change.Plan, error) {
	return s.engine().Plan(ctx, in.request())
}
