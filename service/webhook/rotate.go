package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/custody"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// maxOverlap is the longest time for which two secrets sign, in seconds: a week.
const maxOverlap = 604_800

// Rotate creates a new signing secret, which no other call returns. For the overlap the previous secret signs too; one
// before that ends now. Key: webhook.manage. INVALID_ARGUMENT at overlapSeconds; UNAVAILABLE when the keeper of
// secrets, which is called between two transactions, does not answer.
func (s *Service) Rotate(ctx context.Context, id ids.ID, overlapSeconds int) (*Created, error) {
	var input check.Input
	if overlapSeconds < 0 || overlapSeconds > maxOverlap {
		input.Bad("overlapSeconds", "must be 0 to %d seconds", maxOverlap)
	}
	if err := input.Err(); err != nil {
		return nil, err
	}
	out := &Created{}
	err := s.Vault.Prepared(ctx, func(fresh *custody.Fresh) error {
		return s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
			return rotate(ctx, t, id, overlapSeconds, fresh, out)
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func rotate(ctx context.Context, t *tx.Tx, id ids.ID, overlapSeconds int, fresh *custody.Fresh, out *Created) error {
	const action = "rotateWebhookSecret"
	if _, err := locked(ctx, t, action, id); err != nil {
		return err
	}
	secret, sealed, err := mint(fresh, id)
	if err != nil {
		return err
	}
	var until *time.Time
	if overlapSeconds > 0 {
		end := t.Now.Add(time.Duration(overlapSeconds) * time.Second)
		until = &end
	}
	row, err := one(ctx, t, rows.Webhook, `UPDATE webhook SET previous_secret = CASE WHEN $3::timestamptz IS NULL
		THEN NULL ELSE secret END,
		previous_until = $3, secret = $2, secret_rotated_at = $4, updated_at = $4 WHERE id = $1
		RETURNING `+rows.WebhookColumns, id, sealed, until, t.Now)
	if err != nil {
		return fmt.Errorf("rotate the secret of webhook %s: %w", id, err)
	}
	out.Webhook, out.Secret = row, &secret
	return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.WebhookManage, Object: object(row), ObjectID: id,
		After: map[string]any{"previousUntil": row.PreviousUntil}})
}
