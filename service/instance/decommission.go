package instance

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/change"
)

// DecommissionInput names the instance to tear down.
type DecommissionInput struct {
	InstanceID      ids.ID
	Force           bool
	OnDeadline      lifecycle.DeadlineOutcome // empty for FAIL
	PlanHash        string                    `json:"-"`
	DeadlineSeconds int
	Reason          string
	IdempotencyKey  string `json:"-"`
}

// Decommission accepts the teardown of an instance. It supersedes a launch and operations of members that are still
// under way: they end as canceled, and the teardown takes over what they had begun. It requires
// <family>.instance.delete; force needs a reason.
//
// Faults: those of engine.Engine.Accept; FAILED_PRECONDITION when nothing of it is left, CONFLICT naming another
// operation under way.
func (s *Service) Decommission(ctx context.Context, in DecommissionInput) (*Started, error) {
	return s.accept(ctx, in.request())
}

// PlanDecommission shows what Decommission would do.
func (s *Service) PlanDecommission(ctx context.Context, in DecommissionInput) (*change.Plan, error) {
	return s.engine().Plan(ctx, in.request())
}

func (in DecommissionInput) request() *change.Request {
	return &change.Request{
		Action: "decommissionInstance", Kind: lifecycle.InstanceDecommission, InstanceID: in.InstanceID,
		Force:      in.Force,
		Conditions: change.Conditions{DeadlineSeconds: in.DeadlineSeconds, OnDeadline: in.OnDeadline},
		Asked: change.Asked{
			PlanHash: in.PlanHash, Reason: in.Reason, IdempotencyKey: in.IdempotencyKey, Input: in,
		},
	}
}
