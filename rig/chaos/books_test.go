package chaos

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	aSecond = `INSERT INTO usage_record (source, meter, usage_id, basis, tenant_id, project_id, allocation_id, session,
		unit, quantity, from_at, to_at, digest)
		SELECT 'alc_1', 'gpu_seconds', '%id', 'CAPACITY', tenant_id, id, 'alc_1', 'alc_1', 'second', 60,
		'2026-11-01 00:%m:00Z', '2026-11-01 00:%m:59Z', '' FROM project WHERE id = 'PROJECT'`
	aBooking = `INSERT INTO ledger_tx (id, tenant_id, project_id, kind, run_id, period_id, of_period_id, line_key,
		meter,
		quantity, amount, currency, effective_at)
		SELECT 'ltx_%id', tenant_id, id, 'USAGE', 'brn_1', 'bpr_1', 'bpr_1', 'k', 'gpu_seconds', 60, 1, 'EUR', now()
		FROM project WHERE id = 'PROJECT'`
	anEntry = `INSERT INTO ledger_entry (tx_id, n, tenant_id, account, amount, currency)
		SELECT 'ltx_1', %id, tenant_id, 'ACCRUED', %id - 2, 'EUR' FROM project WHERE id = 'PROJECT'`
)

func numbered(statement, id, minute string) string {
	return strings.NewReplacer("%id", id, "%m", minute).Replace(statement)
}

func TestEachRuleOfTheBooksNamesWhatBreaksIt(t *testing.T) {
	t.Parallel()
	c := newCourt(t)
	whole := []string{numbered(aSecond, "1", "01"), numbered(aBooking, "1", ""), numbered(anEntry, "1", ""),
		numbered(anEntry, "3", "")}
	breaks := map[string][]string{
		"the ledger is at zero":                      {`UPDATE ledger_entry SET amount = 2 WHERE n = 3`},
		"every transaction of the ledger is at zero": {`UPDATE ledger_entry SET tx_id = 'ltx_2' WHERE n = 3`},
		"a run books a line once":                    {numbered(aBooking, "2", "")},
		"no second of capacity is recorded twice":    {numbered(aSecond, "2", "01")},
		"no second of capacity is lost":              {numbered(aSecond, "2", "03")},
		"what was used is on the books, once":        {`DELETE FROM ledger_tx`},
		"capacity was used":                          {`DELETE FROM usage_record`},
	}
	require.Len(t, breaks, len(bookRules), "a rule without its breach")
	c.broken(func(on querier) {
		found, err := judgeRules(t.Context(), on, bookRules)
		require.NoError(t, err)
		require.Empty(t, found, "nothing is broken yet")
	}, whole...)
	for _, one := range bookRules {
		c.broken(func(on querier) {
			found, err := judgeRules(t.Context(), on, []rule{one})
			require.NoError(t, err, one.name)
			require.NotEmpty(t, found, one.name)
			require.True(t, strings.HasPrefix(found[0], one.name+": "), found[0])
		}, append(whole, breaks[one.name]...)...)
	}
}
