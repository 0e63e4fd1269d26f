package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
	"github.com/gpuaas/app-platform/service/ledger/event"
	verbs "github.com/gpuaas/app-platform/service/webhook"
	"github.com/gpuaas/app-platform/workers/chores"
)

// servedSQL chooses the webhooks of a project that are served.
const servedSQL = `SELECT ` + rows.WebhookColumns + `, platform.voucher(webhook.maker_id, webhook.made_under)
	FROM webhook
	WHERE project_id = $1 AND deleted_at IS NULL AND status = 'ACTIVE'
	AND EXISTS (SELECT FROM project WHERE id = $1 AND deleted_at IS NULL) ORDER BY id`

// look dispatches what is new to every webhook of a project; found reports whether there was anything.
func (w *Worker) look(ctx context.Context, project ids.ID) (found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	stored, err := w.DB.Worker().Query(ctx, servedSQL, project)
	if err != nil {
		return false, err
	}
	served, err := pgx.CollectRows(stored, w.scanVouched)
	if err != nil {
		return false, err
	}
	var failed error
	for _, row := range served {
		if len(row.Families) == 0 {
			failed = errors.Join(failed, w.lapse(ctx, row))
			continue
		}
		more, err := w.follow(ctx, row)
		found, failed = found || more, errors.Join(failed, err)
	}
	return found, failed
}

// follow brings a webhook to the end of its project's feed, page by page, and sees to it that what is due is served.
func (w *Worker) follow(ctx context.Context, row *db.Webhook) (found bool, err error) {
	for {
		place, err := w.place(ctx, row)
		if err != nil {
			return found, err
		}
		events, err := w.feeds.Project(ctx, row.ProjectID, row.Families, place, pageSize)
		if err != nil {
			return found, err
		}
		moved, err := w.advance(ctx, row, events)
		found = found || len(events) > 0
		if err != nil || !moved || len(events) < pageSize {
			return found, err
		}
	}
}

// place returns where a webhook is in its feed. Its cursor is stored with the events, so that it is of their past,
// wherever the database was restored or promoted. A cursor of an earlier database restarts at the feed's end.
func (w *Worker) place(ctx context.Context, row *db.Webhook) (event.Position, error) {
	place, err := w.feeds.Resume(ctx, row.ProjectID, row.Cursor)
	if err == nil || !fault.Is(err, fault.CursorExpired) {
		return place, err
	}
	place, err = w.feeds.Now(ctx)
	if err != nil {
		return place, err
	}
	w.Log.Warn("a webhook's cursor is of an earlier database; it begins again at the newest event", "webhook", row.ID)
	_, err = w.DB.Worker().Exec(ctx, `UPDATE webhook SET cursor = $2 WHERE id = $1 AND cursor = $3`, row.ID,
		w.feeds.Cursor(place), row.Cursor)
	row.Cursor = w.feeds.Cursor(place)
	return place, err
}

// advance writes the deliveries of a page, the webhook's new cursor and its job, unless the webhook was changed since
// it was read; moved reports whether the cursor advanced. Nothing is written when there is nothing to do.
func (w *Worker) advance(ctx context.Context, row *db.Webhook, events []*event.Event) (moved bool, err error) {
	if len(events) == 0 {
		var due bool
		err := w.DB.Worker().QueryRow(ctx, `SELECT EXISTS (SELECT FROM webhook_delivery WHERE webhook_id = $1
			AND state = 'PENDING'
			AND next_attempt_at <= now())`, row.ID).Scan(&due)
		if err != nil || !due {
			return false, err
		}
	}
	err = w.DB.As(ctx, w.actor, func(ctx context.Context, t *tx.Tx) error {
		moved = false
		now, err := tx.Collect(ctx, t, rows.Webhook, `SELECT `+rows.WebhookColumns+` FROM webhook
			WHERE id = $1 AND cursor = $2 AND deleted_at IS NULL AND status = 'ACTIVE'
			FOR UPDATE`, row.ID, row.Cursor)
		if err != nil || len(now) == 0 {
			return err // whoever changed it has woken us
		}
		taken, err := w.take(ctx, t, now[0], events)
		if err != nil {
			return err
		}
		if taken > 0 {
			row.Cursor, moved = w.feeds.Cursor(event.PositionOf(events[taken-1])), taken == len(events)
			if _, err := t.Exec(ctx, `UPDATE webhook SET cursor = $2 WHERE id = $1`, row.ID, row.Cursor); err != nil {
				return err
			}
		}
		return w.plan(ctx, t, now[0])
	})
	if err != nil {
		return false, fmt.Errorf("dispatch to webhook %s: %w", row.ID, err)
	}
	return moved, nil
}

// take writes a delivery for each event that the webhook chose, as far as its window has space, and returns how many
// events it has handled. An event that was sent before is sent again: a user requested a replay.
func (w *Worker) take(ctx context.Context, t *tx.Tx, row *db.Webhook, events []*event.Event) (taken int, err error) {
	var waiting int
	err = t.QueryRow(ctx, `SELECT count(id) FROM webhook_delivery WHERE webhook_id = $1 AND state = 'PENDING'`,
		row.ID).Scan(&waiting)
	if err != nil {
		return 0, err
	}
	var deliveries, chosen, types []string
	for _, one := range events {
		if verbs.Chooses(row.EventTypes, string(one.Type)) {
			if waiting+len(chosen) >= window {
				break
			}
			deliveries = append(deliveries, string(ids.New(ids.WebhookDelivery)))
			chosen, types = append(chosen, string(one.ID)), append(types, string(one.Type))
		}
		taken++
	}
	if len(chosen) == 0 {
		return taken, nil
	}
	// Each is due a microsecond after the one before, so that they go out in the feed's order.
	_, err = t.Exec(ctx, `INSERT INTO webhook_delivery (id, tenant_id, project_id, webhook_id, event_id, event_type,
		next_attempt_at, created_at, updated_at)
		SELECT d.id, $1, $2, $3, d.event, d.type, $4::timestamptz + (d.n - $5) * interval '1 microsecond', $4, $4
		FROM unnest($6::text[], $7::text[], $8::text[]) WITH ORDINALITY AS d (id, event, type, n)
		ON CONFLICT (webhook_id, event_id) DO UPDATE SET state = 'PENDING', attempts = 0, error = '', next_attempt_at
		= EXCLUDED.next_attempt_at,
			updated_at = EXCLUDED.updated_at WHERE webhook_delivery.state <> 'PENDING'`,
		row.TenantID, row.ProjectID, row.ID, t.Now, len(chosen), deliveries, chosen, types)
	return taken, err
}

// plan makes the job that serves a locked webhook next, or none when nothing waits. A job that is to come later than it
// must is replaced; one that runs looks again before it ends, which waits for this transaction.
func (w *Worker) plan(ctx context.Context, t *tx.Tx, row *db.Webhook) error {
	var next *time.Time
	err := t.QueryRow(ctx, `SELECT min(next_attempt_at) FROM webhook_delivery WHERE webhook_id = $1
		AND state = 'PENDING'`,
		row.ID).Scan(&next)
	if err != nil || next == nil {
		return err
	}
	at := w.later(row, *next, t.Now)
	now := !at.After(t.Now)
	if now {
		at = time.Time{} // River takes any time that is given for one to come
	}
	made, err := w.jobs.InsertTx(ctx, chores.Tx(t), serve{WebhookID: row.ID}, serveAt(at))
	if err != nil {
		return fmt.Errorf("create a job for webhook %s: %w", row.ID, err)
	}
	if made.UniqueSkippedAsDuplicate && waits(made.Job.State) && (now || made.Job.ScheduledAt.After(at)) {
		switch _, err := w.jobs.JobDeleteTx(ctx, chores.Tx(t), made.Job.ID); {
		case errors.Is(err, rivertype.ErrJobRunning):
			return nil // it began meanwhile
		case err != nil && !errors.Is(err, rivertype.ErrNotFound):
			return fmt.Errorf("replace a job of webhook %s: %w", row.ID, err)
		}
		if _, err := w.jobs.InsertTx(ctx, chores.Tx(t), serve{WebhookID: row.ID}, serveAt(at)); err != nil {
			return fmt.Errorf("create a job for webhook %s: %w", row.ID, err)
		}
	}
	if now {
		t.Wake(chores.Topic)
	}
	return nil
}

// later is when a webhook is served that has something due at a time: now at the earliest, and while its receiver fails
// not before it has rested.
func (w *Worker) later(row *db.Webhook, due, now time.Time) time.Time {
	if row.FailingSince != nil {
		rest := now.Add(w.Pace.Rest(now.Sub(*row.FailingSince)))
		if due.Before(rest) {
			return rest
		}
	}
	if due.Before(now) {
		return now
	}
	return due
}
