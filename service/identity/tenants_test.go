package identity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/identity"
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

func TestThePlatformHasOneTenantOfItsOwnWithoutPeople(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	operator := b.As(b.Operator())
	in := identity.CreateTenantInput{Slug: "platform", DisplayName: "Platform", Platform: true, IdempotencyKey: "a"}
	own, err := b.CreateTenant(operator, in)
	require.NoError(t, err)
	require.True(t, own.Platform)
	in.Slug, in.IdempotencyKey = "second", "b"
	_, err = b.CreateTenant(operator, in)
	platformtest.Refused(t, err, fault.Conflict, "input.platform")
	_, err = b.CreateUser(operator, identity.CreateUserInput{TenantID: &own.ID, Email: "ada@example.test",
		DisplayName: "Ada", IdempotencyKey: "c"})
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.tenantId")
	_, err = b.SetDomains(operator, identity.DomainsInput{TenantID: own.ID, Domains: []string{"example.test"}})
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.domains")
	require.Zero(t, b.Count("person", "tenant_id = $1", own.ID))

	stranger := b.User(b.Tenant())
	grant := identity.GrantRoleInput{SubjectID: stranger.ID, Role: string(authz.TenantAdmin), TenantID: &own.ID}
	_, err = b.GrantRole(operator, grant)
	platformtest.Refused(t, err, fault.FailedPrecondition)
	grant.SubjectID = b.Kit.User(nil).ID
	_, err = b.GrantRole(operator, grant)
	require.NoError(t, err, "its people are the staff")
}
