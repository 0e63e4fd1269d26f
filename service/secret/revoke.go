package secret

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Revoke ends a secret and wipes its values; one that is revoked already is returned as it is. It requires
// secret.revoke on the secret's project. A value that was delivered before stays with its receiver, and a pull token
// stays valid until it expires, at most 15 minutes. Faults: INVALID_ARGUMENT, NOT_FOUND, FORBIDDEN.
func (s *Service) Revoke(ctx context.Context, id ids.ID, reason string) (out *View, err error) {
	var wrong check.Input
	wrong.Reason("reason", reason)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = revoke(ctx, t, id, reason)
		return err
	})
	return out, err
}

func revoke(ctx context.Context, t *tx.Tx, id ids.ID, reason string) (*View, error) {
	const action = "revokeRuntimeSecret"
	before, err := lock(ctx, t, action, authz.SecretRevoke, id)
	if err != nil || before.RevokedAt != nil {
		return before, err
	}
	after, err := one(ctx, t, `UPDATE runtime_secret SET revoked_at = $2, sealed = NULL, previous = NULL, previous_until
		= NULL WHERE id = $1
		RETURNING `+columns, id, t.Now)
	if err != nil {
		return nil, fmt.Errorf("revoke secret %s: %w", id, err)
	}
	return after, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.SecretRevoke, Object: before.object(),
		ObjectID: id,
		Before:   trail(before), After: map[string]any{"revokedAt": after.RevokedAt}, Reason: reason})
}
