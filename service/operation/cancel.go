package operation

import (
	"context"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Cancel asks an operation to stop, if that is still safe.
func Cancel(ctx context.Context, database *tx.DB, id ids.ID, reason string) (*View, error) {
	return nil, fault.New(fault.Unavailable, "not in this build")
}

// TargetIds are the members that the operation acts on.
func (v *View) TargetIds() []ids.ID {
	if v.Targets == nil {
		return []ids.ID{}
	}
	return v.Targets
}
