package meter_test

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/billing"
)

// openBooks gives the tenant an account, prices of jobs and tokens, and the month of the records, which cannot close
// while an allocation is not recorded to its end.
func (b *bench) openBooks() (period ids.ID) {
	b.Helper()
	period = ids.New(ids.BillingPeriod)
	b.SQL(`INSERT INTO billing_account (tenant_id, currency, grace_seconds, updated_at)
		VALUES ($1, 'EUR', 3600, now())`, b.project.TenantID)
	for id, month := range map[ids.ID][2]string{period: {"2026-02-01", "2026-03-01"},
		ids.New(ids.BillingPeriod): {"2026-03-01", "2100-01-01"}} {
		b.SQL(`INSERT INTO billing_period (id, tenant_id, currency, grace_seconds, starts_at, ends_at, status)
			VALUES ($1, $2, 'EUR', 3600, $3::timestamptz, $4::timestamptz,
			'OPEN')`, id, b.project.TenantID, month[0]+"T00:00:00Z", month[1]+"T00:00:00Z")
	}
	for meter, tiers := range map[string]string{"jobs": `[{"upTo":"50","price":"0.333"},{"price":"0.111"}]`,
		"tokens": `[{"price":"0.0157"}]`} {
		b.SQL(`INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, version, terms,
			hash, reason, created_by)
			VALUES ($1, $1, $2, '', '', 'EUR', 'PLATFORM', '2026-01-01', 1, $3, '', 'test', '')`, "prc_"+meter, meter,
			`{"measure":"QUANTITY","per":"1","tiers":`+tiers+`,"minimum":"0","roundUpTo":"0"}`)
	}
	b.SQL(`INSERT INTO usage_source (source, basis, tenant_id, project_id)
		VALUES ('alc_open', 'CAPACITY', $1, $2)`, b.project.TenantID, b.project.ID)
	return period
}

// book brings a period as far as it goes.
func (b *bench) book(period ids.ID) {
	b.Helper()
	require.NoError(b.TB, b.DB.As(b.TB.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
		look, err := billing.Begin(ctx, t)
		if err != nil {
			return err
		}
		if at := slices.IndexFunc(look.Due, func(due billing.Due) bool { return due.Period == period }); at >= 0 {
			_, err = billing.Step(ctx, t, look.Due[at])
		}
		return err
	}))
}

// settle waits until what is committed lies before the watermark: transactions of other tests hold it back, and a
// period that closes before it would have the rest as a correction on its next statement.
func (b *bench) settle() {
	b.Helper()
	var written string
	require.NoError(b.TB, b.Admin.QueryRow(b.TB.Context(), `SELECT pg_current_xact_id()::text`).Scan(&written))
	require.Eventually(b.TB, func() bool {
		return b.Count("pg_database",
			"datname = current_database() AND pg_snapshot_xmin(pg_current_snapshot()) > $1::text::xid8", written) == 1
	}, time.Minute, 10*time.Millisecond)
}

// closeBooks books what is left of a period, and returns what each account holds of each dimension.
func (b *bench) closeBooks(period ids.ID) (accounts []string) {
	b.Helper()
	b.settle()
	b.book(period)
	b.SQL(`UPDATE usage_source SET recorded_to = '2100-01-01', ended_at = now() WHERE basis = 'CAPACITY'`)
	b.book(period)
	require.Equal(b.TB, 1, b.Count("billing_period", "id = $1 AND status = 'CLOSED'", period))
	found, err := b.Admin.Query(b.TB.Context(), `SELECT account || ' ' || dimension || ' ' || trim_scale(sum(amount))
		FROM ledger_entry GROUP BY account, dimension
		HAVING sum(amount) <> 0 ORDER BY 1`)
	require.NoError(b.TB, err)
	accounts, err = pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(b.TB, err)
	return accounts
}
