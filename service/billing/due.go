package billing

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
)

// Tenants lists who has projects: those are billed.
func Tenants(ctx context.Context, t *tx.Tx) ([]ids.ID, error) {
	return many(ctx, t, pgx.RowTo[ids.ID], `SELECT DISTINCT tenant_id FROM project ORDER BY tenant_id`)
}

// Due lists the periods of which something may be new: those that are not closed, and closed ones for which usage or prices
// were written since their last run.
func Due(ctx context.Context, t *tx.Tx) ([]ids.ID, error) {
	return many(ctx, t, pgx.RowTo[ids.ID], dueSQL, nil)
}

// isDue reports whether something may be new of one period.
func isDue(ctx context.Context, t *tx.Tx, period ids.ID) (bool, error) {
	found, err := many(ctx, t, pgx.RowTo[ids.ID], dueSQL, period)
	return len(found) > 0, err
}

const dueSQL = `SELECT p.id FROM billing_period p
		LEFT JOIN LATERAL (SELECT r.generation, r.watermark, r.created_at FROM billing_run r WHERE r.period_id = p.id ORDER BY r.seq DESC LIMIT 1) r ON true
		WHERE ($1::text IS NULL OR p.id = $1) AND (p.status <> 'CLOSED' OR EXISTS (SELECT FROM usage_record u WHERE u.tenant_id = p.tenant_id AND u.basis <> 'SHOWBACK'
				AND u.from_at < p.ends_at AND u.to_at >= p.starts_at
				AND (r.watermark IS NULL OR NOT platform.before_mark(u.recorded_generation, u.recorded_xid, r.generation, r.watermark)))
			OR EXISTS (SELECT FROM price_version v WHERE v.currency = p.currency AND (v.tenant_id IS NULL OR v.tenant_id = p.tenant_id)
				AND v.valid_from < p.ends_at AND (v.valid_to IS NULL OR v.valid_to > p.starts_at)
				AND r.watermark IS NOT NULL AND (NOT platform.before_mark(v.recorded_generation, v.recorded_xid, r.generation, r.watermark)
					OR v.superseded_xid IS NOT NULL AND NOT platform.before_mark(v.superseded_generation, v.superseded_xid, r.generation, r.watermark))))
		ORDER BY p.starts_at, p.id`
