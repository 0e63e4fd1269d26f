package orphan

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/internal/tx"
)

// heldSQL is what the allocations that open operations work on have cost since these were requested, at the prices of
// now: those of their targets, or of the whole instance where they name none. An operation has a row only if each of
// its allocations has a price.
const heldSQL = `SELECT o.id, min(price.price_currency),
		round(sum(price.price_hourly) * greatest(extract(epoch FROM now() - o.created_at), 0) / 3600, 6)
	FROM operation o CROSS JOIN LATERAL (
		SELECT a.* FROM allocation a WHERE a.released_at IS NULL AND (a.id = o.allocation_id OR EXISTS (
			SELECT FROM member m WHERE m.allocation_id = a.id AND m.instance_id = o.instance_id AND m.status <> 'REMOVED'
				AND (coalesce(o.targets, '[]') = '[]' OR o.targets ? m.id)))) held
	LEFT JOIN LATERAL platform.hourly_now(held.tenant_id, held.project_id, platform.billing_currency(held.tenant_id),
		held.shape, held.gpu_count, held.sku, held.region) price ON true
	WHERE o.id = ANY ($1) AND o.ended_at IS NULL
	GROUP BY o.id, o.created_at HAVING bool_and(price.price_currency IS NOT NULL)`

// held is what an operation or an allocation costs.
type held struct {
	Of       ids.ID
	Currency string
	Cost     money.Decimal
}

// HeldBy returns the cost so far of what open operations hold, by operation. It leaves out those that have ended, or of
// which a price is missing. The caller has authorised the operations.
func (s *Service) HeldBy(ctx context.Context, operations []ids.ID) (map[ids.ID]*Money, error) {
	return s.costs(ctx, heldSQL, operations)
}

// Held is a query for the cost of what one open operation holds; another read runs it in its own transaction.
type Held struct{ rows []held }

// Query returns the query to run. The caller has authorised the operation.
func (h *Held) Query(operation ids.ID) tx.Query {
	return tx.Rows(&h.rows, pgx.RowToStructByPos[held], heldSQL, []ids.ID{operation})
}

// Cost returns the cost so far once the query has run; nil for an operation that has ended, or of which a price is
// missing.
func (h *Held) Cost() *Money {
	if len(h.rows) == 0 {
		return nil
	}
	return MoneyOf(h.rows[0].Currency, h.rows[0].Cost)
}

// hourlySQL is what an hour of rented allocations costs now. It leaves out those without a price.
const hourlySQL = `SELECT a.id, price.price_currency, price.price_hourly FROM allocation a
	CROSS JOIN LATERAL platform.hourly_now(a.tenant_id, a.project_id, platform.billing_currency(a.tenant_id),
		a.shape, a.gpu_count, a.sku, a.region) price
	WHERE a.id = ANY ($1) AND a.released_at IS NULL`

// HourlyOf returns what an hour of allocations costs, by allocation. It leaves out those that are released or have no
// price. The caller has authorised the allocations.
func (s *Service) HourlyOf(ctx context.Context, allocations []ids.ID) (map[ids.ID]*Money, error) {
	return s.costs(ctx, hourlySQL, allocations)
}

// costs runs a query of costs and returns them by id.
func (s *Service) costs(ctx context.Context, sql string, of []ids.ID) (map[ids.ID]*Money, error) {
	var rows []held
	if _, err := s.DB.Read(ctx, tx.Rows(&rows, pgx.RowToStructByPos[held], sql, of)); err != nil {
		return nil, fmt.Errorf("read what is rented costs: %w", err)
	}
	out := make(map[ids.ID]*Money, len(rows))
	for _, row := range rows {
		out[row.Of] = MoneyOf(row.Currency, row.Cost)
	}
	return out, nil
}
