package webhook_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/money"
	"github.com/gpuaas/app-platform/domain/spending"
	"github.com/gpuaas/app-platform/rig/platformtest"
	sdk "github.com/gpuaas/app-platform/sdk/webhook"
	"github.com/gpuaas/app-platform/service/budget"
	verbs "github.com/gpuaas/app-platform/service/webhook"
	keepers "github.com/gpuaas/app-platform/workers/budget"
)

// TestABudgetsEventsReachAReceiver follows a budget that is set, half spent and spent, by its keeper, to signed
// deliveries, each once.
func TestABudgetsEventsReachAReceiver(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(nil)
	to := l.receiver()
	made, err := l.verbs.Create(l.admin, verbs.CreateInput{ProjectID: l.project.ID, URL: to.URL,
		EventTypes: []string{"apps.budget.*"}, IdempotencyKey: string(ids.New(ids.Webhook))})
	require.NoError(t, err)
	l.billed()
	owner := l.As(l.User(l.Ent.Tenant.GetX(t.Context(), l.project.TenantID),
		platformtest.Across(authz.TenantAdmin, l.Ent.Tenant.GetX(t.Context(), l.project.TenantID))))
	set, err := (&budget.Service{DB: l.DB}).Set(owner, budget.SetInput{Scope: spending.Project, TargetID: l.project.ID,
		Amount: money.Must("10"), Currency: "EUR", Span: spending.Month, HorizonSeconds: 300, Thresholds: []int{50},
		AtLimit: spending.Tell, Reason: "a test"})
	require.NoError(t, err)
	keeper := &keepers.Keeper{DB: l.DB, Log: slog.New(slog.DiscardHandler)}
	for i, amount := range []string{"6.25", "4"} {
		l.booked(string(rune('1'+i)), amount)
		require.NoError(t, keeper.Once(t.Context()))
		require.NoError(t, keeper.Once(t.Context()), "a second look tells nothing again")
	}
	l.settled(lifecycle.DeliveryDelivered, 2)
	types := map[string]sdk.Event{}
	for _, one := range to.requests() {
		require.NoError(t, sdk.Verify(*made.Secret, one.header, one.body, time.Now()))
		types[one.event.Type] = one.event
	}
	require.Len(t, types, 2)
	half, full := types[string(lifecycle.EventBudgetThreshold)].Data, types[string(lifecycle.EventBudgetExceeded)].Data
	require.Equal(t, "50 percent of the project's budget is spent", half.Message)
	require.JSONEq(t, `{"budget":"`+string(set.ID)+`","scope":"PROJECT","target":"`+string(
		l.project.ID)+`","percent":50,
		"atLimit":"TELL","span":"MONTH","amount":"10","spent":"6.25","currency":"EUR"}`, string(half.Payload))
	require.Equal(t, "the project's budget is spent: nothing is stopped", full.Message)
	require.Equal(t, string(l.instance.ID), full.AppInstanceID, "on its timeline")
}

// billed has the tenant billed in EUR, this month.
func (l *lab) billed() {
	l.SQL(`INSERT INTO billing_account (tenant_id, currency, grace_seconds, updated_at) VALUES ($1, 'EUR', 0, now())`,
		l.project.TenantID)
	l.SQL(`INSERT INTO billing_period (id, tenant_id, currency, grace_seconds, starts_at, ends_at, status)
		SELECT 'bpr_1', $1, 'EUR', 0, m AT TIME ZONE 'UTC', (m + interval '1 month') AT TIME ZONE 'UTC', 'OPEN'
		FROM date_trunc('month', now() AT TIME ZONE 'UTC') m`, l.project.TenantID)
	l.ListPrice("h100", "EUR", "6")
}

// booked writes an amount into the ledger, as the billing role does.
func (l *lab) booked(id, amount string) {
	l.SQL(`WITH x AS (INSERT INTO ledger_tx (id, tenant_id, project_id, kind, period_id, of_period_id, meter, amount,
			currency, effective_at)
			VALUES ('ltx_' || $1, $2, $3, 'USAGE', 'bpr_1', 'bpr_1', 'node_seconds', $4::text::numeric, 'EUR', now())
			RETURNING id, tenant_id, project_id, amount, currency)
		INSERT INTO ledger_entry (tx_id, n, tenant_id, project_id, account, amount, currency, instance_id)
			SELECT x.id, s.n, x.tenant_id, x.project_id, s.account, x.amount * s.sign, x.currency, $5
			FROM x, (VALUES (0, 'ACCRUED', 1), (1, 'REVENUE', -1)) s (n, account, sign)`,
		id, l.project.TenantID, l.project.ID, amount, l.instance.ID)
}
