package webhook

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/kit/rows"
)

// lapsedText is what a webhook shows whose maker may see nothing of what it sends.
const lapsedText = "its maker (makerId) may not read its events any more: resume it, or change its address, as " +
	"someone who may"

// scanVouched scans a webhook and who answers for it: of its families those are left whose events its maker may read
// now.
func (w *Worker) scanVouched(row pgx.CollectableRow) (*db.Webhook, error) {
	var voucher []byte
	found, err := rows.Webhook(rows.Also{CollectableRow: row, Into: []any{&voucher}})
	if err != nil {
		return nil, err
	}
	return found, w.narrow(found, voucher)
}

// narrow takes from a webhook the families that its maker may not read at this moment.
func (w *Worker) narrow(row *db.Webhook, raw []byte) error {
	maker, err := tx.ParseVoucher(raw)
	if err != nil {
		return fmt.Errorf("read who answers for webhook %s: %w", row.ID, err)
	}
	row.Families = slices.DeleteFunc(row.Families, func(family string) bool {
		key, err := authz.EventKey(family)
		return err != nil || len(maker.Vouched([]string{key.String()}, row.TenantID, row.ProjectID, w.DB.Now())) == 0
	})
	return nil
}

// drop gives up what is due of families that the webhook's maker may not read any more. It can be sent again once
// a user who may answers for the webhook.
func (w *Worker) drop(ctx context.Context, of *batch) error {
	var dropped []string
	of.due = slices.DeleteFunc(of.due, func(one delivery) bool {
		seen := slices.Contains(of.row.Families, one.event.PermissionFamily)
		if !seen {
			dropped = append(dropped, string(one.id))
		}
		return !seen
	})
	if len(dropped) == 0 {
		return nil
	}
	_, err := w.DB.Worker().Exec(ctx, `UPDATE webhook_delivery SET state = 'DEAD', error = $2, next_attempt_at = NULL,
		updated_at = now()
		WHERE id = ANY ($1) AND state = 'PENDING'`, dropped, lapsedText)
	if err != nil {
		return fmt.Errorf("give up deliveries of webhook %s: %w", of.row.ID, err)
	}
	return nil
}

// lapse says once, on the webhook, that nothing is sent for it.
func (w *Worker) lapse(ctx context.Context, row *db.Webhook) error {
	if row.LastError == lapsedText {
		return nil
	}
	if _, err := w.DB.Worker().Exec(ctx, `UPDATE webhook SET last_error = $2 WHERE id = $1`, row.ID,
		lapsedText); err != nil {
		return fmt.Errorf("note that webhook %s has lapsed: %w", row.ID, err)
	}
	return nil
}
