package catalog

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
)

// SetCanaryPercent changes how many of the projects a canary takes in, 1 to 100: a project that is in stays in when it
// rises. The present share changes nothing. Key: manifest.promote on the app's publisher, or on the platform.
// INVALID_ARGUMENT naming percent or reason, NOT_FOUND, FORBIDDEN, FAILED_PRECONDITION at manifestId when the version
// is not a canary or was halted, CONFLICT when a promotion came first.
func (s *Service) SetCanaryPercent(ctx context.Context, id ids.ID, percent int, reason string) (out *db.Manifest,
	err error) {
	var input check.Input
	input.Text("reason", reason, 1, check.MaxReason)
	if percent < 1 || percent > 100 {
		input.Bad("percent", "must be 1 to 100")
	}
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = setCanaryPercent(ctx, t, id, percent, reason)
		return err
	})
	return out, err
}

func setCanaryPercent(ctx context.Context, t *tx.Tx, id ids.ID, percent int, reason string) (*db.Manifest, error) {
	locked, err := attempt{"setCanaryPercent", authz.ManifestPromote, "manifestId"}.lock(ctx, t, id)
	if err != nil {
		return nil, err
	}
	row := locked.row
	switch {
	case row.Stage != lifecycle.StageCanary:
		return nil, fault.New(fault.FailedPrecondition, "version %s is %s, not CANARY", row.Version, row.Stage).
			At("manifestId")
	case row.CanaryHaltedAt != nil:
		return nil, fault.New(fault.FailedPrecondition, "the canary was halted: %s", row.CanaryHaltReason).
			At("manifestId")
	case row.CanaryPercent == percent:
		return row, nil
	}
	moved, err := row.Update().SetCanaryPercent(percent).Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("change the canary %s: %w", id, err)
	}
	return moved, locked.keep(ctx, t, row, moved, why{reason: reason})
}
