package billing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/internal/tx"
)

// closing is an entry of a period's closing that has not been taken back.
type closing struct {
	project ids.ID
	account string
	grant   *ids.ID
	amount  money.Decimal
}

// reopen takes back what closing the period booked, entry by entry, credit too.
func reopen(ctx context.Context, t *tx.Tx, p *Period) error {
	turn, err := turnOf(ctx, t, p)
	if err != nil {
		return err
	}
	sums, err := many(ctx, t, func(row pgx.CollectableRow) (c closing, err error) {
		err = row.Scan(&c.project, &c.account, &c.grant, &c.amount)
		return c, err
	}, `SELECT x.project_id, e.account, e.grant_id, sum(e.amount) FROM ledger_tx x JOIN ledger_entry e ON e.tx_id = x.id
		WHERE x.period_id = $1 AND x.kind IN ('CLOSE', 'CREDIT_USED', 'REOPEN')
		GROUP BY 1, 2, 3 HAVING sum(e.amount) <> 0 ORDER BY 1, 2, 3`, p.ID)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	for len(sums) > 0 {
		end := 0
		back := p.posting(Reopen, fmt.Sprintf("%s|reopen|%d|%s", p.ID, turn, sums[0].project), sums[0].project,
			money.Decimal{}, t.Now)
		for ; end < len(sums) && sums[end].project == back.project; end++ {
			one := entry{account: sums[end].account, amount: sums[end].amount.Neg()}
			if sums[end].grant != nil {
				one.grant = *sums[end].grant
			}
			back.entries = append(back.entries, one)
		}
		back.queue(batch)
		sums = sums[end:]
	}
	if err := t.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("reopen period %s: %w", p.ID, err)
	}
	return p.move(ctx, t, Closing)
}
