package identity_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/identity"
)

func TestALoginLinkLogsInOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	person := b.User(tenant)
	link, err := b.CreateLoginLink(b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))), person.ID)
	require.NoError(t, err)
	require.Equal(t, platformtest.Issuer+"/login#code="+link.Code, link.URL)
	session, err := b.RedeemLogin(t.Context(), link.Code)
	require.NoError(t, err)
	require.Equal(t, person.ID, session.UserID)
	viewer, err := b.Viewer(b.With(session.Token))
	require.NoError(t, err)
	require.Equal(t, string(person.ID), viewer.Actor.ID)
	_, err = b.RedeemLogin(t.Context(), link.Code)
	platformtest.Refused(t, err, fault.Unauthenticated)
	require.Equal(t, 1, b.Count("session", "user_id = $1", person.ID))
	b.audited("createLoginLink", "")
	b.audited("login", "")

	require.NoError(t, b.EndSession(t.Context(), session.Token))
	require.NoError(t, b.EndSession(t.Context(), session.Token))
	_, err = b.Viewer(b.With(session.Token))
	platformtest.Refused(t, err, fault.Unauthenticated)
}

func TestLoginLinksAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, other := b.Tenant(), b.Tenant()
	person, stranger := b.User(tenant), b.User(other)
	admin := b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	_, err := b.CreateLoginLink(admin, stranger.ID)
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.CreateLoginLink(admin, b.Operator().ID)
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.CreateLoginLink(b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, b.Project(tenant)))), person.ID)
	platformtest.Refused(t, err, fault.Forbidden)
	b.Service.DevLogins = false
	_, err = b.CreateLoginLink(admin, person.ID)
	platformtest.Refused(t, err, fault.FailedPrecondition)
	require.Zero(t, b.Count("login_code", ""))
}

// The first operator logs in without --dev, and no login link becomes such a code.
func TestABootstrapsCodeIsRedeemedWithoutDevelopmentLogins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	link, err := b.CreateLoginLink(b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))),
		b.User(tenant).ID)
	require.NoError(t, err)
	b.Service.DevLogins = false
	first, err := identity.Bootstrap(t.Context(), b.DSN, "root@example.test", "Root")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(first.Code, "gpu_bst_"), "scanners and people tell it from a link's")
	_, err = b.RedeemLogin(t.Context(), link.Code)
	platformtest.Refused(t, err, fault.LoginRefused)
	for _, forged := range []string{strings.Replace(link.Code, "gpu_lnk_", "gpu_bst_", 1),
		strings.Replace(first.Code, "gpu_bst_", "gpu_lnk_", 1)} {
		_, err = b.RedeemLogin(t.Context(), forged)
		require.Error(t, err)
	}
	require.Zero(t, b.Count("session", "method IN ('link', 'bootstrap')"))
	session, err := b.RedeemLogin(t.Context(), first.Code)
	require.NoError(t, err)
	require.Equal(t, first.UserID, session.UserID)
	require.Equal(t, 1, b.Count("session", "method = 'bootstrap'"))
	_, err = b.RedeemLogin(t.Context(), first.Code)
	platformtest.Refused(t, err, fault.Unauthenticated)
}

func TestACodeThatIsOverOrForgedDoesNotLogIn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	link, err := b.CreateLoginLink(b.As(b.Operator()), b.User(b.Tenant()).ID)
	require.NoError(t, err)
	swapped := []byte(link.Code)
	swapped[len(swapped)-10] ^= 1
	for _, forged := range []string{"", "gpu_lnk_x", string(swapped), b.Session(b.Operator()),
		strings.Repeat("x", 10_000)} {
		_, err := b.RedeemLogin(t.Context(), forged)
		platformtest.Refused(t, err, fault.Unauthenticated)
	}
	b.SQL(`UPDATE login_code SET expires_at = $1`, time.Now().Add(-time.Second))
	_, err = b.RedeemLogin(t.Context(), link.Code)
	platformtest.Refused(t, err, fault.Unauthenticated)
}

func TestTheFirstOperatorIsMadeOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, err := identity.Bootstrap(t.Context(), b.DSN, "Root@Example.test", "Root")
	require.NoError(t, err)
	require.True(t, first.Created)
	again, err := identity.Bootstrap(t.Context(), b.DSN, "root@example.test", "Root")
	require.NoError(t, err)
	require.False(t, again.Created)
	require.Equal(t, first.UserID, again.UserID)
	require.NotEqual(t, first.Code, again.Code)
	for _, code := range []string{first.Code, again.Code} {
		session, err := b.RedeemLogin(t.Context(), code)
		require.NoError(t, err)
		_, err = b.CreateTenant(b.With(session.Token),
			identity.CreateTenantInput{Slug: "acme", DisplayName: "Acme", IdempotencyKey: "same"})
		require.NoError(t, err)
	}
	_, err = identity.Bootstrap(t.Context(), b.DSN, "other@example.test", "Other")
	platformtest.Refused(t, err, fault.FailedPrecondition, "email")
	_, err = identity.Bootstrap(t.Context(), b.DSN, "nobody", "")
	platformtest.Refused(t, err, fault.InvalidArgument, "email", "name")
	require.Equal(t, 1, b.Count("role_binding", ""))
	require.Equal(t, 1, b.Count("person", ""))
}

// That a tenant has taken the address of the operator neither makes its person one nor keeps the operator out.
func TestATenantsPersonIsNotMadeTheFirstOperator(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	person := b.User(b.Tenant())
	made, err := identity.Bootstrap(t.Context(), b.DSN, person.Email, "Root")
	require.NoError(t, err)
	require.NotEqual(t, person.ID, made.UserID)
	require.Zero(t, b.Count("role_binding", "user_id = $1", person.ID))
	require.Equal(t, 1, b.Count("person", "id = $1 AND tenant_id IS NULL", made.UserID))
}
