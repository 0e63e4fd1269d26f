package billing

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/billing/count"
)

// Many statements add up what one would in production.
func TestMain(m *testing.M) {
	count.PerStatement = 9
	os.Exit(m.Run())
}

// The database adds usage up before it is rated. That must give the very bytes that the records themselves give, one by
// one, in another order and twice.
func TestSumsOfTheDatabaseGiveTheBytesOfTheRecords(t *testing.T) {
	t.Parallel()
	k := platformtest.New(t)
	tenant := k.Tenant()
	project := k.Project(tenant)
	random := rand.New(rand.NewPCG(7, 7)) // #nosec G404 -- a test
	start := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	p := &Period{ID: ids.New(ids.BillingPeriod), TenantID: tenant.ID, Currency: "EUR", StartsAt: start,
		EndsAt: start.AddDate(0, 1, 0)}
	for i, cut := range []time.Duration{-time.Hour, 5 * time.Hour, 9*time.Hour + 7*time.Second} {
		terms := fmt.Sprintf(
			`{"measure":"%s","per":"3600","tiers":[{"upTo":"9000","price":"%d.7"},{"price":"0.3"}],"minimum":"0","roundUpTo":"60"}`,
			[]string{"QUANTITY", "TIME", "QUANTITY"}[i], i+1)
		k.SQL(`INSERT INTO price_version (id, origin, meter, sku, region, currency, scope, valid_from, valid_to,
			version,
			terms, hash, reason, created_by)
			VALUES ($1, $1, 'capacity', '', '', 'EUR', 'PLATFORM', $2, $3, $4, $5, '', '',
			'')`, ids.New(ids.PriceVersion), start.Add(cut),
			start.Add([]time.Duration{5 * time.Hour, 9*time.Hour + 7*time.Second, 1000 * time.Hour}[i]), i, terms)
	}
	var records []rating.Record
	for i := range 80 {
		from := start.Add(time.Duration(random.IntN(43_200)-3_600) * time.Second)
		r := rating.Record{Source: fmt.Sprint("alc_", i%3), Meter: "gpu_seconds", ID: fmt.Sprint(i),
			Basis: rating.Capacity, Project: string(project.ID),
			Use: rating.Use{Allocation: fmt.Sprint("alc_", i%3), Member: fmt.Sprint("mem_", i%4)}, SKU: "h100",
			Unit:    "second",
			Session: fmt.Sprint("s", i%5), Quantity: money.Shift(int64(random.IntN(9_999_999)), 3), From: from,
			To: from.Add(time.Duration(random.IntN(9_000)) * time.Second)}
		records = append(records, r, r)
		k.SQL(`INSERT INTO usage_record (source, meter, usage_id, basis, tenant_id, project_id, allocation_id,
			member_id,
			sku, session, unit, quantity, from_at, to_at, digest)
			VALUES ($1, $2, $3, 'CAPACITY', $4, $5, $1, $6, 'h100', $7, 'second', $8::text::numeric, $9, $10,
			'')`, r.Source, r.Meter, r.ID, tenant.ID, project.ID,
			r.Member, r.Session, r.Quantity.String(), r.From, r.To)
	}
	k.SQL(`ANALYZE usage_record`) // the planner's expectation cuts the slices
	random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	for _, to := range []time.Time{p.EndsAt, start.Add(6 * time.Hour)} {
		require.NoError(t, k.DB.As(t.Context(), authz.System("test"), func(ctx context.Context, tr *tx.Tx) error {
			var at mark
			require.Eventually(t, func() bool { // transactions of other tests hold the watermark back
				var passed bool
				m, err := newMark(ctx, tr)
				at = m
				return err == nil && tr.QueryRow(ctx, `SELECT
					bool_and(platform.before_mark(recorded_generation, recorded_xid, $1,
					$2::text::xid8)) FROM usage_record`,
					m.generation, m.watermark).Scan(&passed) == nil && passed
			}, time.Minute, 10*time.Millisecond)
			summed, err := rate(ctx, tr, p, to, at)
			require.NoError(t, err)
			prices, err := pricesAt(ctx, tr, p, to, at)
			require.NoError(t, err)
			require.Len(t, prices, map[bool]int{true: 3, false: 2}[to.Equal(p.EndsAt)])
			engine, err := rating.New(rating.Engine{Tenant: string(tenant.ID), Currency: "EUR", From: start, To: to,
				Prices: prices})
			require.NoError(t, err)
			single, err := engine.Rate(records)
			require.NoError(t, err)
			require.Equal(t, string(single.Bytes()), string(summed.Bytes()))
			return nil
		}))
	}
}
