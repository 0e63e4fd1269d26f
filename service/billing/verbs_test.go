package billing_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/rating"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/billing"
	"github.com/gpuaas/app-platform/service/price"
)

func (b *books) credit(amount string, priority int, expires *time.Time) *billing.Grant {
	b.t.Helper()
	given, err := b.service.GrantCredit(b.operator, billing.GrantInput{TenantID: b.tenant.ID,
		Amount: money.Must(amount), Currency: "EUR",
		Priority: priority, ExpiresAt: expires, Reason: "welcome", IdempotencyKey: amount})
	require.NoError(b.t, err)
	return given
}

func TestCreditPaysByPriorityAndExpiresAndComesBackWhenAPeriodIsReopened(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	b.credit("5", 2, nil)
	soon := time.Now().Add(time.Hour)
	b.credit("1.50", 1, &soon)
	require.Equal(t, b.credit("5", 2, nil).ID, b.credit("5", 2, nil).ID, "a repeat gives nothing more")
	b.use("alc_1", "mem_1", "", 0, 3600)
	b.step(b.past)
	b.balanced()
	left := func() (out []string) {
		grants, err := b.service.Grants(b.admin, b.tenant.ID)
		require.NoError(t, err)
		for _, g := range grants {
			out = append(out, g.Left.String())
		}
		return out
	}
	require.Equal(t, []string{"0", "4.5"}, left())
	require.Equal(t, "0", b.account("RECEIVABLE"))
	statement, err := b.service.Statement(b.admin, billing.Filter{TenantID: &b.tenant.ID, PeriodID: &b.past})
	require.NoError(t, err)
	require.Equal(t, []string{"2", "2", "0"}, []string{statement.Charges.String(), statement.Credits.String(),
		statement.Total.String()})

	b.use("alc_1", "mem_1", "", 7200, 3600)
	b.settle()
	plan, err := b.service.PlanReopen(b.operator, b.past)
	require.NoError(t, err)
	require.Equal(t, []string{"2", "4"}, []string{plan.Changes[0].Before.String(), plan.Changes[0].After.String()})
	_, err = b.service.Reopen(b.operator, b.past, "another", "late usage")
	require.Equal(t, fault.PlanStale, fault.From(err).Code)
	_, err = b.service.Reopen(b.admin, b.past, plan.Hash, "late usage")
	require.Equal(t, fault.Forbidden, fault.From(err).Code)
	reopened, err := b.service.Reopen(b.operator, b.past, plan.Hash, "late usage")
	require.NoError(t, err)
	require.Equal(t, billing.Closing, reopened.Status)
	b.balanced()
	require.Equal(t, []string{"1.5", "5"}, left(), "what closing had used is there again")
	require.Equal(t, 1, b.Count("audit_entry", "allowed AND action = 'reopenPeriod' AND reason = 'late usage'"))
	_, err = b.service.Reopen(b.operator, b.past, plan.Hash, "again")
	require.Equal(t, fault.FailedPrecondition, fault.From(err).Code)
	b.step(b.past)
	b.balanced()
	require.Equal(t, []string{"0", "2.5"}, left())
	statement, err = b.service.Statement(b.admin, billing.Filter{TenantID: &b.tenant.ID, PeriodID: &b.past})
	require.NoError(t, err)
	require.Equal(t, []string{"4", "4", "0"}, []string{statement.Charges.String(), statement.Credits.String(),
		statement.Total.String()})

	b.tamper(`UPDATE credit_grant SET expires_at = now() - interval '1 second' WHERE priority = 2`)
	for range 2 {
		require.NoError(t, b.DB.As(t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
			_, err := billing.Expire(ctx, t, b.tenant.ID)
			return err
		}))
	}
	b.balanced()
	require.Equal(t, "-2.5", b.account("BREAKAGE"), "once")
}

func TestARefusedReopeningWritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	b.use("alc_1", "mem_1", "", 0, 3600)
	b.step(b.past)
	plan, err := b.service.PlanReopen(b.operator, b.past)
	require.NoError(t, err)
	written := func() string {
		return b.text(`SELECT concat_ws(' ', (SELECT count(*) FROM ledger_tx), (SELECT count(*) FROM ledger_entry),
			(SELECT count(*) FROM billing_run), (SELECT string_agg(status, ' ' ORDER BY id) FROM billing_period))`)
	}
	before := written()
	for name, bad := range map[string]struct {
		who          context.Context
		period       ids.ID
		hash, reason string
		code         fault.Code
	}{
		"another plan":           {b.operator, b.past, "another", "late usage", fault.PlanStale},
		"no plan":                {b.operator, b.past, "", "late usage", fault.PlanStale},
		"no reason":              {b.operator, b.past, plan.Hash, "", fault.InvalidArgument},
		"a month that is open":   {b.operator, b.present, plan.Hash, "late usage", fault.FailedPrecondition},
		"a month that is none":   {b.operator, ids.New(ids.BillingPeriod), plan.Hash, "late usage", fault.NotFound},
		"an admin of the tenant": {b.admin, b.past, plan.Hash, "late usage", fault.Forbidden},
	} {
		_, err := b.service.Reopen(bad.who, bad.period, bad.hash, bad.reason)
		require.Equal(t, bad.code, fault.From(err).Code, "%s: %v", name, err)
		require.Equal(t, before, written(), name)
	}
	_, err = b.service.Reopen(b.operator, b.past, plan.Hash, "late usage")
	require.NoError(t, err)
}

func TestBadCreditAndAccountsAreRefusedByFieldAndWriteNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good := billing.GrantInput{TenantID: b.tenant.ID, Amount: money.Int(1), Currency: "EUR", Reason: "x",
		IdempotencyKey: "k"}
	for path, change := range map[string]func(*billing.GrantInput){
		"input.amount":   func(in *billing.GrantInput) { in.Amount = money.Must("0.001") },
		"input.currency": func(in *billing.GrantInput) { in.Currency = "eur" },
		"input.priority": func(in *billing.GrantInput) { in.Priority = -1 },
		"input.reason":   func(in *billing.GrantInput) { in.Reason = "" },
	} {
		in := good
		change(&in)
		_, err := b.service.GrantCredit(b.operator, in)
		require.Equal(t, fault.InvalidArgument, fault.From(err).Code, path)
		require.Equal(t, path, fault.From(err).Reasons[0].Path)
	}
	_, err := b.service.GrantCredit(b.admin, good)
	require.Equal(t, fault.Forbidden, fault.From(err).Code)
	other := good
	other.Currency = "USD"
	_, err = b.service.GrantCredit(b.operator, other)
	require.Equal(t, fault.FailedPrecondition, fault.From(err).Code)
	fresh := good
	fresh.TenantID = b.Tenant().ID
	_, err = b.service.GrantCredit(b.operator, fresh)
	require.Equal(t, fault.PeriodClosed, fault.From(err).Code)
	require.Zero(t, b.Count("credit_grant", "")+b.Count("ledger_tx", ""))

	account := billing.AccountInput{TenantID: b.tenant.ID, Currency: "JPY", GraceSeconds: 60, Reason: "moves"}
	_, err = b.service.SetAccount(b.operator, account)
	require.Equal(t, fault.PriceMissing, fault.From(err).Code)
	account.GraceSeconds = -1
	_, err = b.service.SetAccount(b.operator, account)
	require.Equal(t, "input.graceSeconds", fault.From(err).Reasons[0].Path)
	require.Equal(t, 1, b.Count("billing_account", "currency = 'EUR' AND grace_seconds = 3600"))
	b.price("capacity", "h100", hourly("2"))
	account.GraceSeconds, account.Currency = 7200, "EUR"
	set, err := b.service.SetAccount(b.operator, account)
	require.NoError(t, err)
	require.Equal(t, 7200, set.GraceSeconds)
	require.Equal(t, 2, b.Count("billing_period", "grace_seconds = 3600"), "periods keep theirs")
}

func TestARerateShowsWhatItChangesAndIsBookedAsACorrection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	b.use("alc_1", "mem_1", "", 0, 7200)
	b.step(b.past)
	require.Equal(t, "4", b.account("RECEIVABLE"))
	from, to := b.start.Add(time.Hour), b.start.Add(90*time.Minute)
	sku := "h100"
	in := price.VersionInput{Meter: "capacity", SKU: &sku, Currency: "EUR", ValidFrom: &from, ValidTo: &to,
		Measure: rating.Time, Per: money.Int(3600),
		Tiers: []rating.Tier{{Price: money.Int(1)}}, Reason: "was too dear"}
	_, err := b.service.PlanRerate(b.admin, in)
	require.Equal(t, fault.Forbidden, fault.From(err).Code)
	plan, err := b.service.PlanRerate(b.operator, in)
	require.NoError(t, err)
	require.Len(t, plan.Changes, 1)
	require.Equal(t, []string{"4", "3.5"}, []string{plan.Changes[0].Before.String(), plan.Changes[0].After.String()})
	in.PlanHash = "another"
	_, err = b.service.Rerate(b.operator, in)
	require.Equal(t, fault.PlanStale, fault.From(err).Code)
	require.Equal(t, 1, b.Count("price_version", ""))
	in.PlanHash = plan.Hash
	_, err = b.service.Rerate(b.operator, in)
	require.NoError(t, err)
	require.Equal(t, 3, b.Count("price_version", "superseded_xid IS NULL"), "the old one holds before and after")
	run := b.step(b.past)
	require.NotNil(t, run)
	b.balanced()
	statement, err := b.service.Statement(b.admin, billing.Filter{ProjectID: &b.project.ID, PeriodID: &b.present})
	require.NoError(t, err)
	require.Equal(t, "-0.5", statement.Total.String())
	for _, of := range []string{`seq = 1`, `seq = 2`} {
		var first billing.Run
		require.NoError(t, b.Admin.QueryRow(t.Context(), `SELECT id FROM billing_run WHERE `+of).Scan(&first.ID))
		verified, err := b.service.Verify(b.admin, first.ID)
		require.NoError(t, err)
		require.True(t, verified.Same, "%s: the book is read as it was then: %s", of, verified.Differs)
	}
	b.settle()
	b.looked()
	require.Empty(t, b.due(), "what is booked is not due")
}
