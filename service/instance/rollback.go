package instance

import (
	"context"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/change"
)

// RollbackInput names the generation to return to.
type RollbackInput struct {
	InstanceID      ids.ID
	Generation      *int // nil for the one before, or the present one when an upgrade away from it has failed
	DeadlineSeconds int
	PlanHash        string `json:"-"`
	Reason          string
	IdempotencyKey  string `json:"-"`
}

func (in RollbackInput) request() *change.Request {
	return &change.Request{
		Action: "rollbackInstance", Kind: lifecycle.InstanceRollback, InstanceID: in.InstanceID,
		Generation: in.Generation,
		Conditions: change.Conditions{DeadlineSeconds: in.DeadlineSeconds},
		Asked: change.Asked{
			PlanHash: in.PlanHash, Reason: in.Reason, IdempotencyKey: in.IdempotencyKey, Input: in,
		},
	}
}

// Rollback brings an instance back to exactly an earlier generation's manifest and config. A deprecated version is
// accepted, a retired one not. It requires <family>.instance.update.
//
// Faults: those of engine.Engine.Accept; NOT_FOUND and FAILED_PRECONDITION at input.generation, INCOMPATIBLE.
func (s *Service) Rollback(ctx context.Context, in RollbackInput) (*Started, error) {
	return s.accept(ctx, in.request())
}

// PlanRollback shows what Rollback would do.
func (s *Service) PlanRollback(ctx context.Context, in RollbackInput) (*change.Plan, error) {
	return s.engine().Plan(ctx, in.request())
}
