package webhook

import (
	"context"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/check"
	"github.com/gpuaas/app-platform/service/kit/maker"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/audit"
)

// UpdateInput is what changes of a webhook; nil stays as it is.
type UpdateInput struct {
	WebhookID        ids.ID
	URL, Description *string
	EventTypes       []string
	Paused           *bool
}

// Update changes, pauses or resumes a webhook. To a new address it sends only what the caller may read too. While it is
// paused, events wait at its cursor; once resumed, or with a new address, it does not count as failing any more. Key:
// webhook.manage. INVALID_ARGUMENT and DIAL_REFUSED name the field.
func (s *Service) Update(ctx context.Context, in UpdateInput) (out *db.Webhook, err error) {
	var input check.Input
	var refused error
	if in.URL != nil {
		refused = s.checkURL(&input, "input.url", *in.URL)
	}
	if in.EventTypes != nil {
		in.EventTypes = slices.Compact(slices.Sorted(slices.Values(in.EventTypes)))
		checkTypes(&input, "input.eventTypes", in.EventTypes)
	}
	if in.Description != nil {
		input.Text("input.description", *in.Description, 0, maxDescription)
	}
	if err := input.Err(); err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused
	}
	err = s.DB.Write(ctx, func(ctx context.Context, t *tx.Tx) error {
		out, err = update(ctx, t, in)
		return err
	})
	return out, err
}

func update(ctx context.Context, t *tx.Tx, in UpdateInput) (*db.Webhook, error) {
	const action = "updateWebhook"
	before, err := locked(ctx, t, action, in.WebhookID)
	if err != nil {
		return nil, err
	}
	row := *before
	if in.URL != nil && *in.URL != row.URL {
		if row.Families, err = narrowed(t, before); err != nil {
			return nil, audit.Refused(t, action, authz.WebhookManage, object(before), before.ID, err)
		}
		row.URL, row.FailingSince, row.LastError = *in.URL, nil, ""
	}
	if in.Description != nil {
		row.Description = *in.Description
	}
	if in.EventTypes != nil {
		row.EventTypes = in.EventTypes
	}
	if in.Paused != nil {
		row.Status = lifecycle.WebhookPaused
		if !*in.Paused {
			row.Status, row.FailingSince, row.LastError = lifecycle.WebhookActive, nil, ""
		}
	}
	if err := answers(ctx, t, &row, in); err != nil {
		return nil, err
	}
	after, err := one(ctx, t, rows.Webhook, `UPDATE webhook SET url = $2, families = $3, description = $4,
		event_types = $5, status = $6, failing_since = $7, last_error = $8, updated_at = $9, maker_id = $10,
		made_under = $11 WHERE id = $1 RETURNING `+rows.WebhookColumns,
		row.ID, row.URL, row.Families, row.Description, row.EventTypes, string(row.Status), row.FailingSince,
		row.LastError,
		t.Now, row.MakerID, row.MadeUnder)
	if err != nil {
		return nil, fmt.Errorf("update webhook %s: %w", row.ID, err)
	}
	if served(after) {
		wake(t, after)
	}
	return after, audit.Write(ctx, t, audit.Entry{Action: action, Key: authz.WebhookManage, Object: object(after),
		ObjectID: after.ID,
		Before:   shown(before), After: shown(after)})
}

// answers makes the caller the webhook's maker, whose keys it rests on, when the caller resumes it or gives it another
// address and may read all that it sends. Under break-glass a webhook that has a maker keeps it.
func answers(ctx context.Context, t *tx.Tx, row *db.Webhook, in UpdateInput) error {
	resumed := in.Paused != nil && !*in.Paused
	can := sends(object(row), row.Families)
	if !resumed && in.URL == nil || !can(t.Actor) {
		return nil
	}
	from, err := maker.Of(ctx, t, can)
	if err != nil || from.Maker == nil || from.Under != nil && row.MakerID != nil {
		return err
	}
	row.MakerID, row.MadeUnder = from.Maker, from.Under
	return nil
}
