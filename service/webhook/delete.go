package webhook

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Delete ends a webhook at once: its secrets are deleted and what waits to be sent is dropped. Key: webhook.manage.
func (s *Service) Delete(ctx context.Context, id ids.ID, reason string) (out *db.Webhook, err error) {
	var input check.Input
	input.Reason("reason", reason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "deleteWebhook"
		before, err := locked(ctx, t, action, id)
		if err != nil {
			return err
		}
		out, err = one(ctx, t, rows.Webhook, `UPDATE webhook SET deleted_at = $2, updated_at = $2, secret = NULL,
			previous_secret = NULL, previous_until = NULL
			WHERE id = $1 RETURNING `+rows.WebhookColumns, id, t.Now)
		if err != nil {
			return fmt.Errorf("delete webhook %s: %w", id, err)
		}
		_, err = t.Exec(ctx, `UPDATE webhook_delivery SET state = 'DEAD', error = 'the webhook was deleted',
			next_attempt_at = NULL, updated_at = $2
			WHERE webhook_id = $1 AND state = 'PENDING'`, id, t.Now)
		if err != nil {
			return fmt.Errorf("drop the deliveries of webhook %s: %w", id, err)
		}
		wake(t, out)
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.WebhookManage, Object: object(out),
			ObjectID: id, Before: shown(before), Reason: reason})
	})
	return out, err
}
