package audit

import (
	"context"

	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/overlay"
)

// Access asks policy for a way of access to the object of an attempt; at is the path of the input that it is about.
// What policy refuses is recorded.
func Access(ctx context.Context, t *tx.Tx, attempt Entry, way policy.Access, at string) error {
	rules, err := overlay.Load(ctx, t, attempt.Object.TenantID, attempt.Object.ProjectID)
	if err != nil {
		return err
	}
	return RefusedByPolicy(t, attempt.Action, attempt.Key, attempt.Object, attempt.ObjectID, rules.Access(way, at))
}
