package webhook

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
	verbs "github.com/gpuaas/app-platform/service/webhook"
)

// delivery is an event that is due at a webhook.
type delivery struct {
	id       ids.ID
	attempts int
	event    *event.Event
}

// batch is what a job sends before it looks again. It holds secrets and is never logged.
type batch struct {
	row     *db.Webhook
	secrets []string // the newest first
	due     []delivery
}

const loadSQL = `SELECT ` + rows.WebhookColumns + `, webhook.secret, webhook.previous_secret,
	platform.voucher(webhook.maker_id, webhook.made_under) FROM webhook
	JOIN project ON project.id = webhook.project_id AND project.deleted_at IS NULL
	WHERE webhook.id = $1 AND webhook.deleted_at IS NULL AND webhook.status = 'ACTIVE'`

const dueSQL = `SELECT ` + rows.EventColumns + `, d.id, d.attempts FROM webhook_delivery d
	JOIN app_instance_event ON app_instance_event.id = d.event_id
	WHERE d.webhook_id = $1 AND d.state = 'PENDING' AND d.next_attempt_at <= $2 ORDER BY d.next_attempt_at, d.id LIMIT $3`

// load reads a webhook with what is due; nothing is due at one that is not served any more.
func (w *Worker) load(ctx context.Context, id ids.ID) (batch, error) {
	var out batch
	var sealed, before, voucher []byte
	queries := &pgx.Batch{}
	queries.Queue(loadSQL, id).Query(func(found pgx.Rows) error {
		_, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (*db.Webhook, error) {
			var err error
			out.row, err = rows.Webhook(rows.Also{CollectableRow: row, Into: []any{&sealed, &before, &voucher}})
			return out.row, err
		})
		return err
	})
	queries.Queue(dueSQL, id, w.DB.Now(), batchSize).Query(func(found pgx.Rows) (err error) {
		out.due, err = pgx.CollectRows(found, w.scanDue)
		return err
	})
	if err := w.DB.Worker().SendBatch(ctx, queries).Close(); err != nil {
		return batch{}, fmt.Errorf("load webhook %s: %w", id, err)
	}
	if out.row == nil || len(out.due) == 0 {
		return batch{}, nil
	}
	if err := w.narrow(out.row, voucher); err != nil {
		return batch{}, err
	}
	if err := w.drop(ctx, &out); err != nil || len(out.due) == 0 {
		return batch{}, err
	}
	return out, w.open(ctx, &out, sealed, before)
}

// open unseals the secrets that sign now.
func (w *Worker) open(ctx context.Context, out *batch, sealed, before []byte) error {
	signing := [][]byte{sealed}
	if until := out.row.PreviousUntil; before != nil && until != nil && w.DB.Now().Before(*until) {
		signing = append(signing, before)
	}
	for _, one := range signing {
		secret, err := w.Vault.Open(ctx, one, verbs.Associated(out.row.ID))
		if err != nil {
			return fmt.Errorf("open the secret of webhook %s: %w", out.row.ID, err)
		}
		out.secrets = append(out.secrets, string(secret))
	}
	return nil
}

func (w *Worker) scanDue(row pgx.CollectableRow) (delivery, error) {
	var out delivery
	stored, err := rows.Event(rows.Also{CollectableRow: row, Into: []any{&out.id, &out.attempts}})
	if err != nil {
		return out, err
	}
	out.event = &event.Event{Event: stored}
	out.event.Cursor = w.feeds.Cursor(event.PositionOf(out.event))
	return out, nil
}
