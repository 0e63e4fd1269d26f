package billing_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/billing"
	books "github.com/gpuaas/app-platform/workers/billing"
)

func TestTheWorkerOpensMonthsAndBooksOnceHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	tenant := k.Tenant()
	project := k.Project(tenant)
	k.Project(k.Tenant())
	worker := &books.Worker{DB: k.DB, Log: slog.New(slog.DiscardHandler), Every: 50 * time.Millisecond,
		Standard: billing.Standard{Currency: "KWD", Grace: time.Hour}}
	runs, err := worker.Once(t.Context())
	require.NoError(t, err)
	require.Zero(t, runs)
	require.Equal(t, 2, k.Count("billing_period", "status = 'OPEN' AND currency = 'KWD' AND starts_at <= now() AND ends_at > now()"))
	k.SQL(`INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, version, terms, hash, reason, created_by)
		VALUES ('prc_1', 'prc_1', 'tokens', '', '', 'KWD', 'PLATFORM', '2020-01-01', 1, '{"measure":"QUANTITY","per":"1","tiers":[{"price":"0.0015"}],"minimum":"0","roundUpTo":"0"}', '', '', '')`)
	k.SQL(`INSERT INTO usage_record (source, meter, usage_id, basis, tenant_id, project_id, app_instance_id, session, unit, quantity, from_at, to_at, digest)
		SELECT 'ins_1', 'tokens', 'u1', 'APP', $1, $2, 'ins_1', 'ins_1', 'token', 1001, starts_at, starts_at, '' FROM billing_period WHERE tenant_id = $1`, tenant.ID, project.ID)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 3)
	for range 3 {
		go func() { ended <- worker.Run(ctx) }()
	}
	require.Eventually(t, func() bool { return k.Count("billing_run", "") > 0 }, time.Minute, 20*time.Millisecond)
	_, err = worker.Once(t.Context())
	require.NoError(t, err)
	stop()
	for range 3 {
		require.NoError(t, <-ended)
	}
	require.Equal(t, 1, k.Count("billing_run", "lines = 1"))
	require.Equal(t, 1, k.Count("ledger_entry", "account = 'ACCRUED' AND amount = 1.502 AND currency = 'KWD' AND instance_id = 'ins_1'"), "1.5015 to the fils, half to even")
}
