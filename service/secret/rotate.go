package secret

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// maxOverlap is the longest time for which two values of a secret count.
const maxOverlap = 24 * time.Hour

// RotateInput says which secret gets a new value.
type RotateInput struct {
	SecretID       ids.ID
	OverlapSeconds int
	Reason         string
}

// Rotate creates a new value of a secret, which is delivered again; it expires when the secret does. The old value is
// kept for the overlap and then wiped. It requires secret.rotate on the secret's project. Faults: INVALID_ARGUMENT,
// NOT_FOUND, FORBIDDEN, SECRET_SPENT when it has expired or was revoked, UNAVAILABLE when the keeper does not answer.
func (s *Service) Rotate(ctx context.Context, in RotateInput) (out *View, err error) {
	var wrong check.Input
	wrong.Reason("reason", in.Reason)
	overlap := time.Duration(in.OverlapSeconds) * time.Second
	if overlap < 0 || overlap > maxOverlap {
		wrong.Bad("overlapSeconds", "must be 0 to %d", int(maxOverlap.Seconds()))
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	err = s.prepared(ctx, func(ctx context.Context, t *tx.Tx, fresh *custody.Fresh) error {
		out, err = s.rotate(ctx, t, in, overlap, fresh)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Service) rotate(ctx context.Context, t *tx.Tx, in RotateInput, overlap time.Duration,
	fresh *custody.Fresh) (*View, error) {
	const action = "rotateRuntimeSecret"
	before, err := lock(ctx, t, action, authz.SecretRotate, in.SecretID)
	if err != nil {
		return nil, err
	}
	if before.over(t.Now) {
		return nil, audit.Refused(t, action, authz.SecretRotate, before.object(), in.SecretID, spent())
	}
	if fresh == nil {
		return nil, custody.ErrUnprepared
	}
	next := *before
	next.Version++
	sealed, err := s.sealed(t, &next, fresh)
	if err != nil {
		return nil, err
	}
	var until *time.Time
	if overlap > 0 {
		end := t.Now.Add(overlap)
		until = &end
	}
	after, err := one(ctx, t, `UPDATE runtime_secret SET version = $2, sealed = $3, keeper = $4, previous_until = $5,
		rotated_at = $6, deliveries = 0
		WHERE id = $1 RETURNING `+columns, in.SecretID, next.Version, sealed, fresh.Keeper(), until, t.Now)
	if err != nil {
		return nil, fmt.Errorf("rotate secret %s: %w", in.SecretID, err)
	}
	return after, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.SecretRotate, Object: before.object(),
		ObjectID: in.SecretID,
		Before:   trail(before), After: trail(after), Reason: in.Reason})
}
