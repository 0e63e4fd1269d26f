package instance

import (
	"context"
	"encoding/json"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/change"
)

// UpgradeInput is the version and config to upgrade to.
type UpgradeInput struct {
	InstanceID      ids.ID
	Version         string          // empty for the present one
	Config          json.RawMessage // nil for the present one
	DeadlineSeconds int
	PlanHash        string `json:"-"`
	Reason          string
	IdempotencyKey  string `json:"-"`
}

func (in UpgradeInput) request() *change.Request {
	if string(in.Config) == "null" {
		in.Config = nil
	}
	return &change.Request{
		Action: "upgradeInstance", Kind: lifecycle.InstanceUpgrade, InstanceID: in.InstanceID, Version: in.Version,
		Config:     in.Config,
		Conditions: change.Conditions{DeadlineSeconds: in.DeadlineSeconds},
		Asked: change.Asked{
			PlanHash: in.PlanHash, Reason: in.Reason, IdempotencyKey: in.IdempotencyKey, Input: in,
		},
	}
}

// Upgrade changes an instance's version or config. The instance's row keeps the old ones until the upgrade has
// succeeded; nothing is taken down when it fails. It requires <family>.instance.update.
//
// Faults: those of engine.Engine.Accept; NOT_FOUND and FAILED_PRECONDITION at input.version (no such version, neither
// ACTIVE nor in a canary that has chosen the project, nothing would change), INCOMPATIBLE, CONFIG_INVALID with the
// config's path.
func (s *Service) Upgrade(ctx context.Context, in UpgradeInput) (*Started, error) {
	return s.accept(ctx, in.request())
}

// PlanUpgrade shows what Upgrade would do.
func (s *Service) PlanUpgrade(ctx context.Context, in UpgradeInput) (*change.Plan, error) {
	return s.engine().Plan(ctx, in.request())
}
