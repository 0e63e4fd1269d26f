package billing_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/billing"
)

// What system apps use is the platform's to bear: no account, no period, no debit.
func TestNobodyBillsThePlatformsOwnTenant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.price("capacity", "h100", hourly("2"))
	own := b.Tenant()
	b.SQL(`UPDATE tenant SET platform = true WHERE id = $1`, own.ID)
	b.Project(own)
	var due []ids.ID
	require.NoError(t, b.DB.As(t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) (err error) {
		due, err = billing.Tenants(ctx, t, "")
		return err
	}))
	require.Empty(t, due)
	_, err := b.service.SetAccount(b.operator, billing.AccountInput{TenantID: own.ID, Currency: "EUR", Reason: "x"})
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.tenantId")
	require.Zero(t, b.Count("billing_account", "tenant_id = $1", own.ID))
}
