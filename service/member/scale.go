package member

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// ScaleInput is the number of members that a component is to have, where new members live, and how members may leave.
// A plan does not use the fields from PlanHash on.
type ScaleInput struct {
	InstanceID   ids.ID
	ComponentKey string
	// ScaleTo is the wanted number, not the difference. By its name a stored input is known as that of a scaling.
	ScaleTo         int
	AllocationIDs   []ids.ID // of those that come: free ones, or this instance's own
	Intent          *Intent  // or: one allocation to place for each
	KeepFailed      bool
	Force           bool
	OnDeadline      lifecycle.DeadlineOutcome // empty for FAIL
	DeadlineSeconds int
	PlanHash        string `json:"-"`
	Reason          string
	IdempotencyKey  string `json:"-"`
}

// Scaled is a change of a component's members under way: an addition or a removal.
type Scaled struct {
	InstanceID     ids.ID
	Added, Removed []*db.Member
	Operation      *operation.View
}

func (in ScaleInput) request() *change.Request {
	return &change.Request{
		// The present count decides later between an addition and a removal; a removal accepts every condition.
		Action: "scaleComponent", Kind: lifecycle.MemberRemove, InstanceID: in.InstanceID,
		ComponentKey: in.ComponentKey,
		Scale:        &change.Scale{To: in.ScaleTo}, AllocationIDs: in.AllocationIDs, Intent: in.Intent,
		Force: in.Force,
		Conditions: change.Conditions{
			DeadlineSeconds: in.DeadlineSeconds, OnDeadline: in.OnDeadline, KeepFailed: in.KeepFailed,
		},
		Asked: change.Asked{
			PlanHash: in.PlanHash, Reason: in.Reason, IdempotencyKey: in.IdempotencyKey, Input: in,
		},
	}
}

// Scale brings a component to a number of members by one operation: it adds the missing ones, or removes the surplus,
// which the platform chooses by the rule of package scaling unless the adapter does. The adapter receives members.add
// or member.remove, so that every adapter that supports these can be scaled. It requires <family>.member.add, and
// allocation.create with an intent, or <family>.member.remove.
//
// Faults: those of engine.Engine.Accept; FAILED_PRECONDITION at input.count when as many are wanted already;
// LIMIT_EXCEEDED at input.count beyond the component's bounds or the project's quota; CONFLICT while others change
// them.
func (s *Service) Scale(ctx context.Context, in ScaleInput) (*Scaled, error) {
	accepted, err := s.engine().Accept(ctx, in.request())
	if err != nil {
		return nil, err
	}
	return &Scaled{
		InstanceID: accepted.Instance.ID, Added: accepted.Members, Removed: accepted.Going,
		Operation: accepted.Operation,
	}, nil
}

// PlanScale shows what Scale would do.
func (s *Service) PlanScale(ctx context.Context, in ScaleInput) (*change.Plan, error) {
	return s.engine().Plan(ctx, in.request())
}
