package billing_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/billing"
	"github.com/gpuaas/app-platform/service/kit/page"
)

func TestARunBooksUsageOnceAndTheMonthCloses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2.125"))
	b.use("alc_1", "mem_1", "", 0, 3600)
	b.use("alc_1", "mem_2", "", 3600, 1800)
	b.use("alc_2", "mem_3", "ORPHAN", 0, 3600)
	run := b.step(b.past)
	require.NotNil(t, run)
	require.Equal(t, []int{1, 2, 0}, []int{run.Number, run.Lines, run.Unpriced})
	b.balanced()
	require.Equal(t, "3.19", b.account("RECEIVABLE"), "3.1875, rounded once, half to even")
	require.Equal(t, "0", b.account("ACCRUED"), "the month is closed")
	require.Equal(t, "2.12", b.account("PLATFORM_BORNE"), "what failures cost is the platform's")
	require.Equal(t, "-5.3125", b.account("REVENUE"))
	require.Equal(t, "CLOSED", b.text(`SELECT status FROM billing_period WHERE id = $1`, b.past))
	require.Equal(t, "1.06 mem_2 op_1 alc_1", b.text(`SELECT trim_scale(amount) || ' ' || member_id || ' ' ||
		operation_id || ' ' || allocation_id FROM ledger_entry
		WHERE account = 'ACCRUED' AND member_id = 'mem_2'`), "an entry says whose usage it is")

	statement, err := b.service.Statement(b.admin, billing.Filter{TenantID: &b.tenant.ID, PeriodID: &b.past})
	require.NoError(t, err)
	require.True(t, statement.Final)
	require.Len(t, statement.Lines, 1, "what the platform bears is not the tenant's")
	require.Equal(t, []string{"3.19", "10800", "5400", "h100"},
		[]string{statement.Total.String(), statement.Lines[0].Quantity.String(),
			statement.Lines[0].Billed.String(), statement.Lines[0].SKU})
	ofProject, err := b.service.Statement(b.admin, billing.Filter{ProjectID: &b.project.ID, PeriodID: &b.past})
	require.NoError(t, err)
	require.Equal(t, statement.Total.String(), ofProject.Total.String())
}

func TestSlicesAndLateUsageLeaveTheBooksOfOneRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100",
		`{"measure":"TIME","per":"60","tiers":[{"upTo":"600","price":"0.333"},{"price":"0.111"}],"minimum":"0","roundUpTo":"60"}`)
	b.SQL(`INSERT INTO usage_source (source, basis, tenant_id, project_id)
		VALUES ('alc_1', 'CAPACITY', $1, $2)`, b.tenant.ID, b.project.ID)
	for i := range 7 {
		b.use("alc_1", "mem_1", "", time.Duration(i*101), 101)
		require.NotNil(t, b.step(b.past), "while capacity is not recorded to the end, the period waits")
	}
	require.Nil(t, b.step(b.past), "nothing is new")
	b.balanced()
	require.Equal(t, "3.55", b.account("ACCRUED"), "720 s: ten minutes at 0.333 and two at 0.111 are 3.552")
	b.SQL(`UPDATE usage_source SET recorded_to = '2100-01-01'`)
	require.Nil(t, b.step(b.past))
	require.Equal(t, "CLOSED", b.text(`SELECT status FROM billing_period WHERE id = $1`, b.past))

	b.use("alc_1", "mem_1", "", 10_000, 61)
	run := b.step(b.past)
	require.Equal(t, b.present, run.StatementID, "what is late goes on the next statement")
	b.balanced()
	require.Equal(t, "3.55", b.account("RECEIVABLE"), "what was closed stays")
	require.Equal(t, "2026-09", b.text(`SELECT to_char(effective_at AT TIME ZONE 'UTC', 'YYYY-MM') FROM ledger_tx
		WHERE kind = 'CORRECTION'`))
	statement, err := b.service.Statement(b.admin, billing.Filter{ProjectID: &b.project.ID, PeriodID: &b.present})
	require.NoError(t, err)
	require.True(t, statement.Lines[0].Correction)
	require.Equal(t, "0.11", statement.Total.String(), "768 s in all: 780 s are 3.663, of which 3.55 are booked")
	verified, err := b.service.Verify(b.admin, run.ID)
	require.NoError(t, err)
	require.True(t, verified.Same, verified.Differs)
}

func TestADeletedProjectsUsageStaysOnTheBooks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	b.use("alc_1", "mem_1", "", 0, 3600)
	run := b.step(b.past)
	b.SQL(`UPDATE project SET deleted_at = now() WHERE id = $1`, b.project.ID)
	for who, ctx := range map[string]context.Context{"an operator": b.operator, "the tenant's admin": b.admin} {
		verified, err := b.service.Verify(ctx, run.ID)
		require.NoError(t, err)
		require.True(t, verified.Same, "%s: %s: %s, %s", who, verified.Differs, verified.Recorded, verified.Recomputed)
	}
	plan, err := b.service.PlanReopen(b.operator, b.past)
	require.NoError(t, err)
	require.Empty(t, plan.Changes, "nothing is new")
}

func TestSeveralWorkersBookOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	for i := range 20 {
		b.use("alc_1", "mem_1", "", time.Duration(i*60), 60)
	}
	b.settle()
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			_ = b.DB.As(t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
				_, err := step(ctx, t, b.past)
				return err
			})
		})
	}
	all.Wait()
	b.step(b.past)
	b.balanced()
	require.Equal(t, "0.67", b.account("RECEIVABLE"))
	require.Equal(t, 1, b.Count("billing_run", ""))
	require.Equal(t, 1, b.Count("ledger_tx", "kind = 'USAGE'"))
}

func TestAKilledWorkerHasBookedNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	b.use("alc_1", "mem_1", "", 0, 1800)
	b.settle()
	err := b.DB.As(t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
		if _, err := step(ctx, t, b.past); err != nil {
			return err
		}
		return context.Canceled // before the commit
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, b.Count("billing_run", "")+b.Count("ledger_tx", "")+b.Count("ledger_entry", ""))
	run := b.step(b.past)
	require.Equal(t, "1", b.account("RECEIVABLE"))
	require.Equal(t, 1, run.Number)
}

// A transaction that began before a run and commits after it has an earlier time than the run's: a cut-off by the clock
// would never look at what it wrote.
func TestUsageThatCommitsLateIsBooked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	b.SQL(`INSERT INTO usage_source (source, basis, tenant_id, project_id)
		VALUES ('alc_1', 'CAPACITY', $1, $2)`, b.tenant.ID, b.project.ID)
	open, err := b.Admin.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = open.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = open.Exec(t.Context(), `INSERT INTO usage_record (source, meter, usage_id, basis, tenant_id, project_id,
		allocation_id, sku, session, unit, quantity, from_at, to_at, digest)
		VALUES ('alc_1', 'gpu_seconds', 'late', 'CAPACITY', $1, $2, 'alc_1', 'h100', 'alc_1', 'second', 3600, $3, $4,
		'')`, b.tenant.ID, b.project.ID,
		b.start.Add(time.Hour), b.start.Add(2*time.Hour))
	require.NoError(t, err)
	b.use("alc_1", "mem_1", "", 0, 3600)
	first := b.hasty(b.past)
	require.NoError(t, open.Commit(t.Context()))
	b.step(b.past)
	require.Equal(t, "4", b.account("ACCRUED"))
	if first != nil { // which is made again without what came after it
		verified, err := b.service.Verify(b.admin, first.ID)
		require.NoError(t, err)
		require.True(t, verified.Same, verified.Differs)
	}
}

func TestVerifyNamesTheFirstRecordThatDiffers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	id := b.use("alc_1", "mem_1", "", 0, 3600)
	b.use("alc_2", "mem_2", "", 0, 3600)
	run := b.step(b.past)
	verified, err := b.service.Verify(b.admin, run.ID)
	require.NoError(t, err)
	require.True(t, verified.Same, verified.Differs)
	b.tamper(`UPDATE ledger_entry SET amount = amount + 1 WHERE account = 'ACCRUED' AND member_id = 'mem_1'`)
	verified, err = b.service.Verify(b.admin, run.ID)
	require.NoError(t, err)
	require.False(t, verified.Same)
	require.Contains(t, verified.Differs, "ledger of line")
	b.tamper(`UPDATE usage_record SET to_at = to_at + interval '1 hour' WHERE usage_id = $1`, id)
	verified, err = b.service.Verify(b.admin, run.ID)
	require.NoError(t, err)
	require.Contains(t, verified.Differs, "line ")
	require.Contains(t, verified.Recorded, `"amount":"4"`)
	require.Contains(t, verified.Recomputed, `"amount":"6"`)
}

func TestTheLedgerIsBalancedAndIsWrittenOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	b.use("alc_1", "mem_1", "", 0, 3600)
	b.step(b.past)
	for _, statement := range []string{
		`UPDATE ledger_entry SET amount = 0`, `DELETE FROM ledger_entry`, `UPDATE ledger_tx SET amount = 0`,
		`DELETE FROM ledger_tx`,
		`DELETE FROM billing_run`, `UPDATE price_version SET terms = ''`, `DELETE FROM price_version`,
		`DELETE FROM credit_grant`,
	} {
		_, err := b.DB.Worker().Exec(t.Context(), statement)
		require.ErrorContains(t, err, "permission denied", statement)
	}
	_, err := b.DB.Worker().Exec(t.Context(), `INSERT INTO ledger_entry (tx_id, n, tenant_id, account, amount, currency)
		SELECT id, 99, tenant_id, 'ACCRUED', 1, 'EUR' FROM ledger_tx LIMIT 1`)
	require.ErrorContains(t, err, "ledger_entry_tx_id", "no entry is added to a transaction that is over")
	_, err = b.DB.Worker().Exec(t.Context(), `WITH made AS (INSERT INTO ledger_tx (id, tenant_id, kind, period_id,
		of_period_id, amount, currency, effective_at)
		VALUES ('ltx_x', $1, 'CLOSE', $2, $2, 0, 'EUR', now()) RETURNING *)
		INSERT INTO ledger_entry (tx_id, n, tenant_id, account, amount, currency)
		SELECT id, 0, tenant_id, 'ACCRUED', 1, 'EUR' FROM made`, b.tenant.ID, b.past)
	require.ErrorContains(t, err, "does not sum to zero")
	require.Zero(t, b.Count("ledger_tx", "id = 'ltx_x'"))
}

func TestWithoutAPriceNothingIsZero(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "a100", hourly("2"))
	b.use("alc_1", "mem_1", "", 0, 3600)
	run := b.step(b.past)
	require.Equal(t, 1, run.Unpriced)
	require.Zero(t, b.Count("ledger_tx", "kind = 'USAGE'"))
	statement, err := b.service.Statement(b.admin, billing.Filter{TenantID: &b.tenant.ID, PeriodID: &b.past})
	require.NoError(t, err)
	require.Equal(t, 1, statement.Unpriced)
	require.Nil(t, statement.Lines[0].Amount)
	require.Equal(t, "7200", statement.Lines[0].Quantity.String())
}

func TestOthersSeeNothingOfTheBooks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	b.use("alc_1", "mem_1", "", 0, 3600)
	run := b.step(b.past)
	other := b.Tenant()
	stranger := b.As(b.User(other, platformtest.Across(authz.TenantAdmin, other)))
	viewer := b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project)))
	member := b.As(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project)))
	for who, want := range map[context.Context]fault.Code{stranger: fault.NotFound, viewer: fault.Forbidden} {
		_, err := b.service.Statement(who, billing.Filter{ProjectID: &b.project.ID, PeriodID: &b.past})
		require.Equal(t, want, fault.From(err).Code)
		_, err = b.service.Periods(who, b.tenant.ID)
		require.Equal(t, want, fault.From(err).Code)
	}
	_, err := b.service.Verify(stranger, run.ID)
	require.Equal(t, fault.NotFound, fault.From(err).Code)
	_, err = b.service.Runs(stranger, b.tenant.ID, page.Args{First: 1})
	require.Equal(t, fault.NotFound, fault.From(err).Code)
	_, err = b.service.Grants(stranger, b.tenant.ID)
	require.Equal(t, fault.NotFound, fault.From(err).Code)
	_, err = b.service.Statement(member, billing.Filter{TenantID: &b.tenant.ID})
	require.Equal(t, fault.Forbidden, fault.From(err).Code, "a project's admin sees the project's alone")
	own, err := b.service.Statement(member, billing.Filter{ProjectID: &b.project.ID, PeriodID: &b.past})
	require.NoError(t, err)
	require.Equal(t, "2", own.Total.String())
	runs, err := b.service.Runs(b.admin, b.tenant.ID, page.Args{First: 1})
	require.NoError(t, err)
	require.Equal(t, []ids.ID{run.ID}, []ids.ID{runs.Rows[0].ID})
	periods, err := b.service.Periods(b.admin, b.tenant.ID)
	require.NoError(t, err)
	require.Len(t, periods, 2)
}
