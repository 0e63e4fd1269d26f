package webhook

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// Replay sends what happened after a cursor of the project's feed again, each event with the delivery id that it had.
// Key: webhook.manage. CURSOR_INVALID and CURSOR_EXPIRED at after; FAILED_PRECONDITION for a cursor that the webhook
// has not reached yet, since events would be skipped.
func (s *Service) Replay(ctx context.Context, id ids.ID, after, reason string) (out *db.Webhook, err error) {
	var input check.Input
	input.Reason("reason", reason)
	if err := input.Err(); err != nil {
		return nil, err
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		const action = "replayWebhook"
		before, err := locked(ctx, t, action, id)
		if err != nil {
			return err
		}
		to, err := s.Feeds.Resume(ctx, before.ProjectID, after)
		if err != nil {
			return err
		}
		if stands, err := s.Feeds.Parse(before.Cursor); err == nil && stands.Before(to) {
			return audit.Refused(t, action, authz.WebhookManage, object(before), id,
				fault.New(fault.FailedPrecondition, "the webhook has not reached this cursor yet").At("after"))
		}
		out, err = one(ctx, t, rows.Webhook, `UPDATE webhook SET cursor = $2, updated_at = $3 WHERE id = $1
			RETURNING `+rows.WebhookColumns, id,
			s.Feeds.Cursor(to), t.Now)
		if err != nil {
			return fmt.Errorf("replay webhook %s: %w", id, err)
		}
		wake(t, out)
		return audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.WebhookManage, Object: object(out),
			ObjectID: id,
			Before:   map[string]any{"cursor": before.Cursor}, After: map[string]any{"cursor": out.Cursor},
			Reason: reason})
	})
	return out, err
}
