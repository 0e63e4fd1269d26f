package instance

import (
	"context"
	"encoding/json"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/change"
)

// UpgradeInput is what an instance is upgraded to.
type UpgradeInput struct {
	InstanceID      ids.ID
	Version         string          // empty for the present one
	Config          json.RawMessage // nil for the present one
	DeadlineSeconds int
	PlanHash        string
	Reason          string
	IdempotencyKey  string
}

// RollbackInput is what an instance is brought back to.
type RollbackInput struct {
	InstanceID      ids.ID
	Generation      *int // nil for the one before
	DeadlineSeconds int
	PlanHash        string
	Reason          string
	IdempotencyKey  string
}

// Drift is a difference between what is meant and what the adapter sees.
type Drift struct {
	Code     string  `json:"code"`
	Message  string  `json:"message"`
	MemberID *ids.ID `json:"memberId,omitempty"`
}

var errPending = fault.New(fault.Unavailable, "not in this build")

// Upgrade changes an instance's version or config.
func (s *Service) Upgrade(ctx context.Context, in UpgradeInput) (*Started, error) {
	return nil, errPending
}

// PlanUpgrade shows what Upgrade would do.
func (s *Service) PlanUpgrade(ctx context.Context, in UpgradeInput) (*change.Plan, error) {
	return nil, errPending
}

// Rollback brings an instance back to an earlier generation.
func (s *Service) Rollback(ctx context.Context, in RollbackInput) (*Started, error) {
	return nil, errPending
}

// PlanRollback shows what Rollback would do.
func (s *Service) PlanRollback(ctx context.Context, in RollbackInput) (*change.Plan, error) {
	return nil, errPending
}

// PlanDecommission shows what Decommission would do.
func (s *Service) PlanDecommission(ctx context.Context, id ids.ID, force bool) (*change.Plan, error) {
	return nil, errPending
}

// Generations are what instances run and have run, newest first, at most 50 each. The caller has authorised the instances.
func (s *Service) Generations(ctx context.Context, instances []ids.ID) (map[ids.ID][]*db.Generation, error) {
	return nil, errPending
}

// Drift is where what the adapter sees differs from what is meant.
func (v *View) Drift() ([]*Drift, error) { return []*Drift{}, nil }
