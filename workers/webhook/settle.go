package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
)

// recovered is for how long a receiver must have failed for all that waits to be due as soon as it answers again; a
// single event that it cannot take is not such a failure.
const recovered = time.Minute

// settle writes down how a batch went: each delivery, and the state of its webhook. What was sent again, dropped or
// settled otherwise meanwhile stays as it is.
func (w *Worker) settle(ctx context.Context, row *db.Webhook, results []result) error {
	var delivered, failed, dead int64
	err := w.DB.As(ctx, w.actor, func(ctx context.Context, t *tx.Tx) error {
		delivered, failed, dead = 0, 0, 0
		now, err := lock(ctx, t, row.ID)
		if err != nil || now == nil {
			return err // its deliveries were dropped with it
		}
		writes := &pgx.Batch{}
		for _, one := range results {
			switch state := w.write(writes, t.Now, one); {
			case one.ok:
				delivered++
			case state == lifecycle.DeliveryDead:
				dead++
				fallthrough
			default:
				failed++
			}
		}
		standing(writes, t.Now, now, results)
		return t.SendBatch(ctx, writes).Close()
	})
	if err != nil {
		return fmt.Errorf("settle deliveries of webhook %s: %w", row.ID, err)
	}
	w.Stats.Delivered.Add(delivered)
	w.Stats.Failed.Add(failed)
	w.Stats.Dead.Add(dead)
	return nil
}

// write queues what became of one delivery, and answers its state.
func (w *Worker) write(writes *pgx.Batch, now time.Time, one result) lifecycle.DeliveryState {
	tries, state := one.delivery.attempts+1, lifecycle.DeliveryPending
	var next, taken *time.Time
	switch {
	case one.ok:
		state, taken = lifecycle.DeliveryDelivered, &now
	case tries >= maxTries:
		state = lifecycle.DeliveryDead
	default:
		at := now.Add(max(w.Pace.Backoff(tries), one.after))
		next = &at
	}
	var status *int
	if one.status != 0 {
		status = &one.status
	}
	writes.Queue(`UPDATE webhook_delivery SET state = $2, attempts = $3, response_status = $4, error = $5,
		next_attempt_at = $6, delivered_at = $7, updated_at = $8
		WHERE id = $1 AND state = 'PENDING' AND attempts = $9`,
		one.delivery.id, string(state), tries, status, one.text, next, taken, now, one.delivery.attempts)
	return state
}

// standing queues the state of a locked webhook after a batch.
func standing(writes *pgx.Batch, now time.Time, row *db.Webhook, results []result) {
	last := results[len(results)-1]
	status, since, delivered := row.Status, row.FailingSince, row.LastDeliveredAt
	if since == nil {
		since = &now
	}
	for _, one := range results {
		if one.ok {
			since, delivered = nil, &now
		}
		if one.gone {
			status, last = lifecycle.WebhookPaused, one
		}
	}
	if since != nil && now.Sub(*since) > failingFor {
		status = lifecycle.WebhookFailing
	}
	writes.Queue(`UPDATE webhook SET status = $2, failing_since = $3, last_delivered_at = $4, last_error = $5,
		updated_at = $6 WHERE id = $1`,
		row.ID, string(status), since, delivered, last.text, now)
	if since == nil && row.FailingSince != nil && now.Sub(*row.FailingSince) > recovered {
		writes.Queue(`UPDATE webhook_delivery SET next_attempt_at = $2 WHERE webhook_id = $1 AND state = 'PENDING'
			AND next_attempt_at > $2`, row.ID, now)
	}
}
