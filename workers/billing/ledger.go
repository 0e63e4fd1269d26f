package billing

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/internal/tx"
)

// ledgerPage is how many transactions of the ledger a look sums up: at the product's pace, ten million in a day and a
// half.
const ledgerPage = 5_000

// ledgerSQL sums up the entries of the transactions after one, in the order of their ids.
const ledgerSQL = `SELECT coalesce(max(id), ''), count(*), count(*) FILTER (WHERE sum <> 0)
	FROM (SELECT page.id, coalesce(sum(e.amount), 0) AS sum FROM (SELECT id FROM ledger_tx WHERE id > $1 ORDER BY id LIMIT $2) page
		LEFT JOIN ledger_entry e ON e.tx_id = page.id GROUP BY page.id) sums`

// ledgerLook goes through the whole ledger again and again, a page at each look. The database refuses a transaction
// that does not sum to zero when it is booked; this finds one that was changed behind it. Where it is, is known to the
// process alone: after a restart it begins again.
type ledgerLook struct {
	after     string // the id up to which the present look through all of it has come
	now, last found
}

// found is what a look through the ledger has found.
type found struct {
	verified, unbalanced int64
}

// balance sums up the next page and publishes what was found, in the last look through all of it and this one.
func (l *ledgerLook) balance(ctx context.Context, db *tx.DB, into *metrics.Set) error {
	var last string
	var page found
	err := db.Worker().QueryRow(ctx, ledgerSQL, l.after, ledgerPage).Scan(&last, &page.verified, &page.unbalanced)
	if err != nil {
		return fmt.Errorf("sum up the ledger: %w", err)
	}
	l.now.verified += page.verified
	l.now.unbalanced += page.unbalanced
	into.Balanced(l.now.verified, max(l.now.unbalanced, l.last.unbalanced))
	l.after = last
	if page.verified < ledgerPage {
		l.after, l.last, l.now = "", l.now, found{}
	}
	return nil
}
