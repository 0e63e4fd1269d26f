package identity_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/kit/page"
)

// added adds an address to a tenant, as an actor.
func (b *bench) added(actor *db.User, tenant *db.Tenant, email string) *db.User {
	b.t.Helper()
	row, err := b.CreateUser(b.As(actor), identity.CreateUserInput{TenantID: &tenant.ID, Email: email,
		DisplayName: "Ada", IdempotencyKey: email})
	require.NoError(b.t, err)
	return row
}

// waiting are the people of a tenant who have not accepted.
func (b *bench) waiting(admin *db.User, tenant *db.Tenant) []ids.ID {
	b.t.Helper()
	found, err := b.Users(b.As(admin), tenant.ID, true, page.Args{First: 10})
	require.NoError(b.t, err)
	var out []ids.ID
	for _, row := range found.Rows {
		out = append(out, row.ID)
	}
	return out
}

func TestAnInvitationIsMintedListedAndRevoked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	admin := b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))
	viewer := b.User(tenant, platformtest.In(authz.ProjectAdmin, b.Project(tenant)))
	ada := b.added(admin, tenant, "ada@a.test")
	require.Equal(t, []ids.ID{ada.ID}, b.waiting(admin, tenant),
		"neither those that are known nor those that staff vouched for")

	_, err := b.Invite(b.As(viewer), ada.ID)
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.RevokeInvitation(b.As(viewer), ada.ID, "")
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.RevokeInvitation(b.As(admin), ada.ID, "")
	platformtest.Refused(t, err, fault.FailedPrecondition, "userId")
	require.Zero(t, b.Count("invitation", ""))

	first, err := b.Invite(b.As(admin), ada.ID)
	require.NoError(t, err)
	made, err := b.Invite(b.As(admin), ada.ID)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(made.Code, "gpu_inv_"))
	require.Equal(t, platformtest.Issuer+"/auth/oidc/accept?invitation="+made.Code, made.URL)
	require.WithinDuration(t, time.Now().Add(7*24*time.Hour), made.ExpiresAt, time.Minute)
	require.Equal(t, 1, b.Count("invitation", ""), "the one before has ended")
	_, err = b.InvitationOf(t.Context(), first.Code)
	platformtest.Refused(t, err, fault.Unauthenticated)
	name, err := b.InvitationOf(t.Context(), made.Code)
	require.NoError(t, err)
	require.Equal(t, tenant.DisplayName, name)
	_, err = b.RevokeInvitation(b.As(admin), ada.ID, strings.Repeat("x", 2000))
	platformtest.Refused(t, err, fault.InvalidArgument, "reason")
	require.Equal(t, 1, b.Count("invitation", ""))

	row, err := b.RevokeInvitation(b.As(admin), ada.ID, "left")
	require.NoError(t, err)
	require.Nil(t, row.InvitationEndsAt)
	require.Zero(t, b.Count("invitation", ""))
	require.Equal(t, []ids.ID{ada.ID}, b.waiting(admin, tenant))
	b.audited("revokeInvitation", "")
	for _, entry := range b.Audit() {
		require.NotContains(t, string(entry.After)+string(entry.Before), made.Code)
	}
}

// A person of another tenant, one of no tenant and an unknown id answer alike; who needs no invitation gets none.
func TestWhoNeedsNoInvitationGetsNone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, other := b.Tenant(), b.Tenant()
	admin := b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))
	theirs := b.added(b.User(other, platformtest.Across(authz.TenantAdmin, other)), other, "ada@a.test")
	for _, id := range []ids.ID{theirs.ID, ids.New(ids.User), b.Operator().ID} {
		_, err := b.Invite(b.As(admin), id)
		platformtest.Refused(t, err, fault.NotFound)
		_, err = b.RevokeInvitation(b.As(admin), id, "")
		platformtest.Refused(t, err, fault.NotFound)
	}
	vouched := b.added(b.Operator(), tenant, "eve@a.test")
	require.Nil(t, vouched.InvitedAt)
	disabled := b.added(admin, tenant, "off@a.test")
	b.SQL(`UPDATE person SET disabled_at = now() WHERE id = $1`, disabled.ID)
	for _, row := range []*db.User{vouched, disabled} {
		_, err := b.Invite(b.As(admin), row.ID)
		platformtest.Refused(t, err, fault.FailedPrecondition, "userId")
	}
	require.Zero(t, b.Count("invitation", ""))
	require.Zero(t, b.Count("person", "invitation_ends_at IS NOT NULL"))
}

func TestDomainsAreATenantsByThePlatformsWordAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, other := b.Tenant(), b.Tenant()
	operator, admin := b.As(b.Operator()), b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))
	in := func(of *db.Tenant, domains ...string) identity.DomainsInput {
		return identity.DomainsInput{TenantID: of.ID, Domains: domains, Reason: "proved"}
	}
	_, err := b.SetDomains(b.As(admin), in(tenant, "a.test"))
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.SetDomains(b.As(admin), in(other, "a.test"))
	platformtest.Refused(t, err, fault.NotFound)
	for _, wrong := range []string{"", "a", "a.test/x", "*.test", "ada@a.test", "a..test", "-a.test",
		strings.Repeat("a.", 150) + "test"} {
		_, err = b.SetDomains(operator, in(tenant, wrong))
		platformtest.Refused(t, err, fault.InvalidArgument, "input.domains.0")
	}
	_, err = b.SetDomains(operator, in(tenant, "a.test", "A.test "))
	platformtest.Refused(t, err, fault.InvalidArgument, "input.domains.1")
	_, err = b.SetDomains(operator, in(tenant, make([]string, 51)...))
	platformtest.Refused(t, err, fault.InvalidArgument, "input.domains")
	require.Zero(t, b.Count("tenant", "domains IS NOT NULL"))

	row, err := b.SetDomains(operator, in(tenant, "A.test", "b.test"))
	require.NoError(t, err)
	require.Equal(t, []string{"a.test", "b.test"}, row.Domains)
	b.audited("setTenantDomains", "")
	_, err = b.SetDomains(operator, in(other, "c.test", "b.test"))
	platformtest.Refused(t, err, fault.Conflict, "input.domains.1")
	require.Contains(t, err.Error(), tenant.Slug)
	require.Zero(t, b.Count("tenant", "id = $1 AND domains IS NOT NULL", other.ID))

	require.Nil(t, b.added(admin, tenant, "ada@B.test").InvitedAt, "the domain vouches")
	require.NotNil(t, b.added(admin, tenant, "ada@sub.b.test").InvitedAt, "for itself alone")
	_, err = b.SetDomains(operator, in(tenant))
	require.NoError(t, err)
	_, err = b.SetDomains(operator, in(other, "b.test"))
	require.NoError(t, err, "it is free again")
	require.NotNil(t, b.added(admin, tenant, "bob@b.test").InvitedAt)
}
