package identity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/identity"
)

func TestAnOperatorMakesATenantOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	operator := b.As(b.Operator())
	in := identity.CreateTenantInput{Slug: "acme", DisplayName: "Acme", IdempotencyKey: "k1"}
	made, err := b.CreateTenant(operator, in)
	require.NoError(t, err)
	require.Equal(t, "acme", made.Slug)
	again, err := b.CreateTenant(operator, in)
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)
	require.True(t, made.CreatedAt.Equal(again.CreatedAt), "a stored row equals what was answered")
	b.audited("createTenant", "")

	in.DisplayName = "Other"
	_, err = b.CreateTenant(operator, in)
	platformtest.Refused(t, err, fault.IdempotencyKeyReused, "input.idempotencyKey")
	in.IdempotencyKey = "k2"
	_, err = b.CreateTenant(operator, in)
	platformtest.Refused(t, err, fault.Conflict, "input.slug")
	require.Equal(t, 1, b.Count("tenant", ""))
	require.Equal(t, 1, b.Count("idempotency", ""), "a refused call leaves no key behind")
}

func TestOnlyThePlatformMakesTenants(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	_, err := b.CreateTenant(b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))),
		identity.CreateTenantInput{Slug: "acme", DisplayName: "Acme", IdempotencyKey: "k"})
	platformtest.Refused(t, err, fault.Forbidden)
	require.ErrorContains(t, err, "tenant.create")
	require.Equal(t, 1, b.Count("tenant", ""))
	b.audited("createTenant", "FORBIDDEN")
	_, err = b.CreateTenant(t.Context(), identity.CreateTenantInput{Slug: "acme", DisplayName: "Acme",
		IdempotencyKey: "k"})
	platformtest.Refused(t, err, fault.Unauthenticated)
}

func TestATenantsAdminMakesProjectsInItsOwnTenantAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, other := b.Tenant(), b.Tenant()
	admin := b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	in := identity.CreateProjectInput{TenantID: tenant.ID, Slug: "research", DisplayName: "Research",
		IdempotencyKey: "k"}
	made, err := b.CreateProject(admin, in)
	require.NoError(t, err)
	again, err := b.CreateProject(admin, in)
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)
	read, err := b.Service.Project(admin, made.ID)
	require.NoError(t, err)
	require.Equal(t, "research", read.Slug)

	in.TenantID, in.IdempotencyKey = other.ID, "k2"
	_, err = b.CreateProject(admin, in)
	platformtest.Refused(t, err, fault.NotFound)
	b.audited("createProject", "NOT_FOUND")
	in.TenantID, in.IdempotencyKey = tenant.ID, "k3"
	_, err = b.CreateProject(admin, in)
	platformtest.Refused(t, err, fault.Conflict, "input.slug")
	in.Slug, in.DisplayName = "Re search", ""
	_, err = b.CreateProject(admin, in)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.slug", "input.displayName")
	_, err = b.CreateProject(b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, made))),
		identity.CreateProjectInput{
			TenantID: tenant.ID, Slug: "mine", DisplayName: "Mine", IdempotencyKey: "k"})
	platformtest.Refused(t, err, fault.Forbidden)
	require.Equal(t, 1, b.Count("project", ""))

	_, err = b.Service.Project(b.As(b.User(other, platformtest.Across(authz.TenantAdmin, other))), made.ID)
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.Service.Project(admin, ids.New(ids.Project))
	platformtest.Refused(t, err, fault.NotFound)
}

func TestPeopleAreAddedToTenantsAndStaffByThePlatformAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, other := b.Tenant(), b.Tenant()
	admin, operator := b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))), b.As(b.Operator())
	in := identity.CreateUserInput{TenantID: &tenant.ID, Email: "Ann@Example.test", DisplayName: "Ann",
		IdempotencyKey: "k"}
	made, err := b.CreateUser(admin, in)
	require.NoError(t, err)
	require.Equal(t, "ann@example.test", made.Email)
	again, err := b.CreateUser(admin, in)
	require.NoError(t, err)
	require.Equal(t, made.ID, again.ID)

	before := b.Count("person", "")
	in.IdempotencyKey, in.TenantID = "k2", nil
	_, err = b.CreateUser(admin, in)
	platformtest.Refused(t, err, fault.Forbidden)
	in.TenantID = &other.ID
	_, err = b.CreateUser(admin, in)
	platformtest.Refused(t, err, fault.NotFound)
	in.TenantID, in.IdempotencyKey = &tenant.ID, "k3"
	_, err = b.CreateUser(admin, in)
	platformtest.Refused(t, err, fault.Conflict, "input.email")
	in.TenantID = nil
	in.Email = "not an address"
	_, err = b.CreateUser(operator, in)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.email")
	require.Equal(t, before, b.Count("person", ""))
	in.Email = "staff@example.test"
	staff, err := b.CreateUser(operator, in)
	require.NoError(t, err)
	require.Nil(t, staff.TenantID)
}
