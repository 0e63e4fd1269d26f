package billing_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/billing"
)

func TestALookListsWhatWasWrittenSinceTheOneBefore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`INSERT INTO usage_source (source, basis, tenant_id, project_id)
		VALUES ('alc_1', 'CAPACITY', $1, $2)`, b.tenant.ID, b.project.ID)
	b.price("capacity", "h100", hourly("2"))
	b.use("alc_1", "mem_1", "", 0, 3600)
	other := b.Tenant()
	b.Project(other)
	b.settle()
	require.Equal(t, 1, b.looked(), "the month without usage has no run")
	require.Equal(t, []ids.ID{b.past}, b.due(), "it waits for its capacity, which costs no rating")
	require.Zero(t, b.looked())
	require.Equal(t, 1, b.Count("billing_run", ""))

	b.use("alc_1", "mem_1", "", 86_400*33, 60) // in the month after
	b.settle()
	require.ElementsMatch(t, []ids.ID{b.past, b.present}, b.due())
	require.Equal(t, 1, b.looked())
	b.SQL(`UPDATE usage_source SET recorded_to = '2100-01-01'`)
	b.settle()
	require.Zero(t, b.looked())
	require.Equal(t, "CLOSED", b.text(`SELECT status FROM billing_period WHERE id = $1`, b.past))
	require.Empty(t, b.due(), "nothing came in since")
	b.price("tokens", "", `{"measure":"QUANTITY","per":"1","tiers":[{"price":"1"}],"minimum":"0","roundUpTo":"0"}`)
	b.settle()
	require.ElementsMatch(t, []ids.ID{b.past, b.present}, b.due(), "a price is new, which may be of what was used")
}

// A record may reach a little into the future. What of it is not yet over when it is booked is booked later, though
// nothing is written any more.
func TestWhatReachesBeyondALookIsBookedByTheNext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("3600"))
	b.SQL(`INSERT INTO usage_record (source, meter, usage_id, basis, tenant_id, project_id, allocation_id, sku, session,
		unit, quantity, from_at, to_at, digest)
		VALUES ('alc_1', 'gpu_seconds', 'u', 'CAPACITY', $1, $2, 'alc_1', 'h100', 'alc_1', 'second', 2, now() - interval
		'1 hour', now() + interval '2 seconds', '')`,
		b.tenant.ID, b.project.ID)
	b.settle()
	require.Equal(t, 1, b.looked())
	require.Eventually(t, func() bool {
		b.looked()
		return b.account("ACCRUED") == "3602"
	}, time.Minute, 100*time.Millisecond)
}

func TestRatingHoldsBackNoFeed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	b.use("alc_1", "mem_1", "", 0, 3600)
	b.step(b.past)
	require.NoError(t, b.DB.As(t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
		look, err := billing.Begin(ctx, t)
		require.NoError(b.t, err)
		require.NotEmpty(b.t, look.Due)
		for _, due := range look.Due {
			_, err := billing.Step(ctx, t, due)
			require.NoError(b.t, err)
		}
		var number *string
		require.NoError(b.t, t.QueryRow(ctx, `SELECT pg_current_xact_id_if_assigned()::text`).Scan(&number))
		require.Nil(b.t, number, "what is rated and is not new writes nothing, and locks nothing for update")
		return nil
	}))
}

func TestAPeriodInAnotherHandIsBusy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	b.use("alc_1", "mem_1", "", 0, 3600)
	b.settle()
	require.NoError(t, b.DB.As(t.Context(), authz.System("one"), func(ctx context.Context, t *tx.Tx) error {
		_, err := step(ctx, t, b.past)
		require.NoError(b.t, err)
		return b.DB.As(b.t.Context(), authz.System("two"), func(ctx context.Context, t *tx.Tx) error {
			_, err := step(ctx, t, b.past)
			require.ErrorIs(b.t, err, billing.ErrBusy)
			return nil
		})
	}))
	require.Equal(t, 1, b.Count("billing_run", ""))
}

func TestTenantsAreListedWhileSomethingIsToBeDone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tenants := func() (out []ids.ID) {
		require.NoError(t, b.DB.As(t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) (err error) {
			out, err = billing.Tenants(ctx, t, "")
			return err
		}))
		return out
	}
	require.Empty(t, tenants(), "an account, and a month that lasts")
	fresh := b.Tenant()
	require.Empty(t, tenants(), "without a project nothing is billed")
	b.Project(fresh)
	require.Equal(t, []ids.ID{fresh.ID}, tenants())
	require.NoError(t, b.DB.As(t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
		return billing.Advance(ctx, t, fresh.ID, billing.Standard{Currency: "EUR"})
	}))
	require.Empty(t, tenants())
	_, err := b.service.GrantCredit(b.operator, billing.GrantInput{TenantID: b.tenant.ID, Amount: money.Int(5),
		Currency: "EUR", Reason: "x", IdempotencyKey: "k"})
	require.NoError(t, err)
	require.Empty(t, tenants())
	b.tamper(`UPDATE credit_grant SET expires_at = '2026-10-15'`)
	require.Empty(t, tenants(), "what was valid as the past month ended pays of it, when it closes")
	b.step(b.past)
	b.tamper(`UPDATE billing_period SET status = 'CLOSED', closed_at = now() WHERE id = $1`, b.past)
	require.Equal(t, []ids.ID{b.tenant.ID}, tenants())
	b.expire()
	require.Empty(t, tenants())
	require.Equal(t, "-5", b.account("BREAKAGE"))
}

// Credit that paid of a period is there again when it is reopened, though it has expired since: it pays again, and what
// is left expires again.
func TestExpiredCreditPaysAgainOfAReopenedPeriod(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	b.use("alc_1", "mem_1", "", 0, 3600)
	_, err := b.service.GrantCredit(b.operator, billing.GrantInput{TenantID: b.tenant.ID, Amount: money.Int(5),
		Currency: "EUR", Reason: "x", IdempotencyKey: "k"})
	require.NoError(t, err)
	b.tamper(`UPDATE credit_grant SET expires_at = '2026-10-15'`)
	b.step(b.past)
	require.Equal(t, "0", b.account("RECEIVABLE"))
	b.expire()
	require.Equal(t, "-3", b.account("BREAKAGE"))
	plan, err := b.service.PlanReopen(b.operator, b.past)
	require.NoError(t, err)
	_, err = b.service.Reopen(b.operator, b.past, plan.Hash, "late")
	require.NoError(t, err)
	b.expire()
	require.Equal(t, "-3", b.account("BREAKAGE"), "what the period may still use does not expire")
	b.use("alc_1", "mem_1", "", 7200, -1800+3600)
	b.step(b.past)
	require.Equal(t, "CLOSED", b.text(`SELECT status FROM billing_period WHERE id = $1`, b.past))
	b.expire()
	b.balanced()
	require.Equal(t, "1", b.account("RECEIVABLE"), "two of three are paid")
	require.Equal(t, "-3", b.account("BREAKAGE"))
	plan, err = b.service.PlanReopen(b.operator, b.past)
	require.NoError(t, err)
	_, err = b.service.Reopen(b.operator, b.past, plan.Hash, "again")
	require.NoError(t, err)
	b.tamper(`UPDATE usage_record SET sku = 'free'`)
	b.price("capacity", "free", hourly("0"))
	b.step(b.past)
	b.expire()
	b.balanced()
	require.Equal(t, "-5", b.account("BREAKAGE"), "and expires again")
}

// expire books what has expired.
func (b *books) expire() {
	b.t.Helper()
	require.NoError(b.t, b.DB.As(b.t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
		_, err := billing.Expire(ctx, t, b.tenant.ID)
		return err
	}))
}
