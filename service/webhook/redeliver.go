package webhook

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Redeliver sends one delivery again, with the same id and a fresh count of tries; one that waits for its next try is
// tried now. Key: webhook.manage. FAILED_PRECONDITION when the webhook is not served.
func (s *Service) Redeliver(ctx context.Context, id ids.ID) (out *db.WebhookDelivery, err error) {
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = redeliver(ctx, t, id)
		return err
	})
	return out, err
}

func redeliver(ctx context.Context, t *tx.Tx, id ids.ID) (*db.WebhookDelivery, error) {
	const action = "redeliverWebhook"
	before, err := one(ctx, t, rows.WebhookDelivery, `SELECT `+rows.WebhookDeliveryColumns+`
		FROM webhook_delivery WHERE id = $1`, id)
	if err != nil {
		return nil, fmt.Errorf("load delivery %s: %w", id, err)
	}
	if before == nil {
		return nil, audit.Missing(t, action, authz.WebhookManage, id)
	}
	row, err := locked(ctx, t, action, before.WebhookID)
	if err != nil {
		return nil, err
	}
	if !served(row) {
		return nil, audit.Refused(t, action, authz.WebhookManage, object(row), id,
			fault.New(fault.FailedPrecondition, "the webhook is %s: resume it first", row.Status).At("deliveryId"))
	}
	out, err := one(ctx, t, rows.WebhookDelivery, `UPDATE webhook_delivery SET state = 'PENDING', attempts = 0,
		error = '', next_attempt_at = $2, updated_at = $2
		WHERE id = $1 RETURNING `+rows.WebhookDeliveryColumns, id, t.Now)
	if err != nil {
		return nil, fmt.Errorf("redeliver %s: %w", id, err)
	}
	wake(t, row)
	return out, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.WebhookManage, Object: object(row),
		ObjectID: id,
		Before:   map[string]any{"state": before.State, "attempts": before.Attempts},
		After:    map[string]any{"state": out.State, "eventId": out.EventID}})
}
