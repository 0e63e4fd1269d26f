package identity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/kit/page"
)

func TestTenantsAreListedForThePlatformsStaffAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := []ids.ID{b.Tenant().ID, b.Tenant().ID, b.Tenant().ID}
	var seen []ids.ID
	args := page.Args{First: 2}
	for {
		found, err := b.Tenants(b.As(b.Operator()), args)
		require.NoError(t, err)
		for _, row := range found.Rows {
			seen = append(seen, row.ID)
		}
		if !found.HasNext {
			break
		}
		args.After = found.Cursors[len(found.Cursors)-1]
	}
	require.Subset(t, seen, made)
	tenant := b.Tenant()
	_, err := b.Tenants(b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))), page.Args{First: 2})
	platformtest.Refused(t, err, fault.Forbidden)
}
