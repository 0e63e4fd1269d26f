package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// priceSQL is a price for a second of any capacity, for ever: what is used is on the books with its quantity.
const priceSQL = `INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, version,
	terms, hash, reason, created_by)
	VALUES ('prc_chaos', 'prc_chaos', 'capacity', '', '', 'EUR', 'PLATFORM', '2020-01-01', 1,
		'{"measure":"TIME","per":"1","tiers":[{"price":"0.01"}],"minimum":"0","roundUpTo":"0"}', '', 'chaos', '')`

// usedSQL names what of the usage is not on the books, or is there more than once.
const usedSQL = `SELECT project_id || ' ' || meter || ' used ' || coalesce(u.quantity, 0) || ', booked '
	|| coalesce(b.quantity, 0)
	FROM (SELECT project_id, meter, sum(quantity) AS quantity FROM usage_record WHERE basis <> 'SHOWBACK' GROUP BY 1, 2) u
	FULL JOIN (SELECT project_id, meter, sum(quantity) AS quantity FROM ledger_tx WHERE kind IN ('USAGE', 'CORRECTION')
	GROUP BY 1, 2) b
		USING (project_id, meter) WHERE u.quantity IS DISTINCT FROM b.quantity`

// bookRules are what must hold of usage and books.
var bookRules = []rule{
	{"the ledger is at zero", `SELECT currency || ' ' || sum(amount) FROM ledger_entry GROUP BY currency
		HAVING sum(amount) <> 0`},
	{"every transaction of the ledger is at zero", `SELECT tx_id || ' ' || sum(amount) FROM ledger_entry
		GROUP BY tx_id, currency HAVING sum(amount) <> 0`},
	{"a run books a line once", `SELECT run_id || ' ' || line_key || ' ' || count(*) FROM ledger_tx
		WHERE run_id IS NOT NULL GROUP BY run_id, line_key
		HAVING count(*) > 1`},
	{"no second of capacity is recorded twice", `SELECT source || ' ' || from_at || ' before ' || until
		FROM (SELECT source, from_at,
			lag(to_at) OVER (PARTITION BY source ORDER BY from_at, to_at) AS until FROM usage_record WHERE basis = 'CAPACITY') r
		WHERE from_at < until`},
	{"no second of capacity is lost", `SELECT source || ' lacks ' || max(to_at) - min(from_at) - sum(to_at - from_at)
		FROM usage_record
		WHERE basis = 'CAPACITY' GROUP BY source HAVING max(to_at) - min(from_at) > sum(to_at - from_at)`},
	{"what was used is on the books, once", usedSQL},
	{"capacity was used", `SELECT 'nothing' WHERE NOT EXISTS (SELECT FROM usage_record WHERE basis = 'CAPACITY')`},
}

// price opens the price book: what is used from now on costs something.
func (s *Suite) price(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.stack.AdminDSN())
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, priceSQL)
	return err
}

// awaitBooks waits until all capacity is recorded to its end and booked: all of it was given back. What is not booked
// by the end of ctx is found by the rules.
func (s *Suite) awaitBooks(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.stack.AdminDSN())
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for begun := time.Now(); time.Since(begun) < booksMost; pause(ctx, 500*time.Millisecond) {
		open, err := list(ctx, conn, `SELECT source FROM usage_source WHERE basis = 'CAPACITY' AND ended_at IS NULL
			UNION ALL `+usedSQL)
		if err != nil || len(open) == 0 {
			return err
		}
	}
	return nil
}

// booksMost bounds the wait for the books: a node's silence is resolved within it.
const booksMost = 90 * time.Second
