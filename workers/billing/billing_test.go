package billing_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
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
	require.Equal(t, 2, k.Count("billing_period",
		"status = 'OPEN' AND currency = 'KWD' AND starts_at <= now() AND ends_at > now()"))
	k.SQL(`INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, version, terms, hash,
		reason, created_by)
		VALUES ('prc_1', 'prc_1', 'tokens', '', '', 'KWD', 'PLATFORM', '2020-01-01', 1,
		'{"measure":"QUANTITY","per":"1","tiers":[{"price":"0.0015"}],"minimum":"0","roundUpTo":"0"}', '', '', '')`)
	k.SQL(`INSERT INTO usage_record (source, meter, usage_id, basis, tenant_id, project_id, app_instance_id, session,
		unit, quantity, from_at, to_at, digest)
		SELECT 'ins_1', 'tokens', 'u1', 'APP', $1, $2, 'ins_1', 'ins_1', 'token', 1001, starts_at, starts_at, ''
		FROM billing_period WHERE tenant_id = $1`, tenant.ID, project.ID)
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
	require.Equal(t, 1, k.Count("ledger_entry",
		"account = 'ACCRUED' AND amount = 1.502 AND currency = 'KWD' AND instance_id = 'ins_1'"),
		"1.5015 to the fils, half to even")
}

// warnings counts what is warned of.
type warnings struct {
	slog.Handler
	count atomic.Int32
}

func (w *warnings) Enabled(context.Context, slog.Level) bool { return true }

func (w *warnings) Handle(context.Context, slog.Record) error {
	w.count.Add(1)
	return nil
}

func TestATenantThatFailsIsWarnedOfOnceAndStopsNoOther(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	bad, good := k.Tenant(), k.Tenant()
	k.Project(bad)
	k.Project(good)
	k.SQL(`CREATE FUNCTION refuse_period() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION
		'not this tenant'; END $$`)
	k.SQL(`CREATE TRIGGER refuse BEFORE INSERT ON billing_period FOR EACH ROW
		WHEN (NEW.tenant_id = '` + string(bad.ID) +
		`') EXECUTE FUNCTION refuse_period()`)
	warned := &warnings{}
	worker := &books.Worker{DB: k.DB, Log: slog.New(warned), Every: time.Hour,
		Standard: billing.Standard{Currency: "EUR"}}
	_, err := worker.Once(t.Context())
	require.ErrorContains(t, err, "tenant "+string(bad.ID))
	require.Equal(t, 1, k.Count("billing_period", ""), "the other has its month")
	k.SQL(`DROP TRIGGER refuse ON billing_period`)
	_, err = worker.Once(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, k.Count("billing_period", ""))

	k.SQL(`CREATE TRIGGER refuse BEFORE INSERT ON billing_run FOR EACH ROW EXECUTE FUNCTION refuse_period()`)
	k.SQL(`INSERT INTO usage_record (source, meter, usage_id, basis, tenant_id, project_id, app_instance_id, session,
		unit, quantity, from_at, to_at, digest)
		SELECT id, 'tokens', 'u1', 'APP', tenant_id, id, id, id, 'token', 1, now(), now(), '' FROM project`)
	require.Eventually(t, func() bool { // transactions of other tests hold the watermark back
		_, err := worker.Once(t.Context())
		return err != nil && strings.Count(err.Error(), "period ") == 2
	}, time.Minute, 10*time.Millisecond)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	require.Eventually(t, func() bool { return warned.count.Load() > 0 }, time.Minute, 10*time.Millisecond)
	stop()
	require.NoError(t, <-ended)
	require.Equal(t, int32(1), warned.count.Load(), "two periods failed in one look, which is one warning")
}
