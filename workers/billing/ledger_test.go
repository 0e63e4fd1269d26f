package billing

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/metrics"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

// ledgerMetric reads one of the ledger's numbers.
func ledgerMetric(t *testing.T, set *metrics.Set, name string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(set)
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "app_platform_ledger_"+name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	require.Fail(t, "no such metric", name)
	return 0
}

// TestATransactionThatDoesNotSumToZeroIsFound though it was changed behind the platform, on whichever page it is, and
// leaves the metric once a whole pass finds it in order again.
func TestATransactionThatDoesNotSumToZeroIsFound(t *testing.T) {
	t.Parallel()
	kit, set := platformtest.New(t), metrics.New(nil)
	tenant := kit.Tenant()
	kit.SQL(`INSERT INTO billing_period (id, tenant_id, currency, grace_seconds, starts_at, ends_at, status)
		VALUES ('bp', $1, 'EUR', 0, now() - interval '1 hour', now() + interval '1 hour', 'OPEN')`, tenant.ID)
	kit.SQL(`ALTER TABLE ledger_tx DISABLE TRIGGER USER`)
	kit.SQL(`ALTER TABLE ledger_entry DISABLE TRIGGER USER`)
	kit.SQL(`INSERT INTO ledger_tx (id, tenant_id, kind, period_id, of_period_id, amount, currency, effective_at,
		booked_xid)
		SELECT 'tx' || lpad(n::text, 6, '0'), $1, 'USAGE', 'bp', 'bp', 1, 'EUR', now(), '7'
		FROM generate_series(1, 12000) n`, tenant.ID)
	kit.SQL(`INSERT INTO ledger_entry (tx_id, n, tenant_id, account, amount, currency, booked_xid)
		SELECT t.id, e.n, t.tenant_id, 'ACCRUED', e.amount, 'EUR', t.booked_xid
		FROM ledger_tx t, (VALUES (1, 1.5), (2, -1.5)) e (n, amount)`)
	look := &ledgerLook{}
	turn := func() {
		require.NoError(t, look.balance(t.Context(), kit.DB, set))
	}
	for _, verified := range []float64{5_000, 10_000, 12_000, 5_000} {
		turn()
		require.InDelta(t, verified, ledgerMetric(t, set, "verified_transactions"), 0)
		require.Zero(t, ledgerMetric(t, set, "unbalanced_transactions"))
	}
	kit.SQL(`UPDATE ledger_entry SET amount = amount + 0.01 WHERE tx_id = 'tx011000' AND n = 1`)
	turn()
	require.Zero(t, ledgerMetric(t, set, "unbalanced_transactions"))
	for range 3 { // on the third page, and then for as long as a whole look takes
		turn()
		require.InDelta(t, 1, ledgerMetric(t, set, "unbalanced_transactions"), 0)
	}
	kit.SQL(`UPDATE ledger_entry SET amount = amount - 0.01 WHERE tx_id = 'tx011000' AND n = 1`)
	turn()
	require.InDelta(t, 1, ledgerMetric(t, set, "unbalanced_transactions"), 0, "the last whole look found it")
	turn()
	require.Zero(t, ledgerMetric(t, set, "unbalanced_transactions"))
}
