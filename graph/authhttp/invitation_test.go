package authhttp_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/identity"
)

// admin is the context of a tenant's own admin.
func (o *opened) admin(tenant *db.Tenant) context.Context {
	return o.kit.As(o.kit.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
}

// adds adds an address to a tenant, as its own admin.
func (o *opened) adds(tenant *db.Tenant, email string) (*db.User, error) {
	return o.identity.CreateUser(o.admin(tenant), identity.CreateUserInput{TenantID: &tenant.ID, Email: email,
		DisplayName: "Somebody", IdempotencyKey: email})
}

// invited adds an address to a tenant and invites it; the code is the answer.
func (o *opened) invited(tenant *db.Tenant, email string) (*db.User, string) {
	o.t.Helper()
	person, err := o.adds(tenant, email)
	require.NoError(o.t, err)
	made, err := o.identity.Invite(o.admin(tenant), person.ID)
	require.NoError(o.t, err)
	return person, made.Code
}

// is wants that a browser is logged in as somebody.
func (o *opened) is(b *browser, person *db.User) {
	o.t.Helper()
	viewer, err := o.identity.Viewer(o.kit.With(b.session()))
	require.NoError(o.t, err)
	require.Equal(o.t, string(person.ID), viewer.Actor.ID)
}

// endsIn wants that a login ended on the login page with the code.
func (o *opened) endsIn(ended *http.Response, code fault.Code, what string) {
	o.t.Helper()
	require.Equal(o.t, "/login", ended.Request.URL.Path, what)
	require.Equal(o.t, string(code), ended.Request.URL.Query().Get("error"), what)
}

// A tenant's admin adds the address of another company's officer: the answer reveals nothing, every other tenant can
// still add it, and the officer's login goes where the officer belongs.
func TestAnAddressThatAStrangerTookIsNobodysUntilItIsAccepted(t *testing.T) {
	t.Parallel()
	o := withProvider(t)
	stranger, own := o.kit.Tenant(), o.kit.Tenant()
	const cfo = "cfo@b.test"
	squatted, err := o.adds(stranger, cfo)
	require.NoError(t, err)
	require.NotNil(t, squatted.InvitedAt)
	o.people.add("cfo", cfo, true)
	o.endsIn(o.browser().login("cfo", ""), fault.LoginRefused, "nobody has vouched for the stranger's")
	require.Zero(t, o.kit.Count("external_identity", ""))

	_, err = o.identity.SetDomains(o.kit.As(o.kit.Operator()),
		identity.DomainsInput{TenantID: own.ID, Domains: []string{"b.test"}})
	require.NoError(t, err)
	theirs, err := o.adds(own, cfo)
	require.NoError(t, err, "the address is taken elsewhere, which is nobody's to know")
	require.Nil(t, theirs.InvitedAt)
	_, err = o.adds(own, cfo)
	require.True(t, fault.Is(err, fault.Conflict), "of its own people a tenant knows")
	first := o.browser()
	first.login("cfo", "")
	o.is(first, theirs)
}

// An invitation is accepted on its own page, by a new login of the address that was invited, once.
func TestAnInvitationIsAcceptedByWhomItIsFor(t *testing.T) {
	t.Parallel()
	o := withProvider(t)
	tenant := o.kit.Tenant()
	person, code := o.invited(tenant, "ada@a.test")
	o.people.add("ada", "ada@a.test", true)
	o.people.add("eve", "eve@a.test", true)
	o.people.add("claims", "ada@a.test", false)

	shown, text := o.browser().get(o.URL + "/auth/oidc/accept?" + url.Values{"invitation": {code}}.Encode())
	require.Equal(t, http.StatusOK, shown.StatusCode)
	require.Contains(t, text, tenant.DisplayName)
	require.Contains(t, shown.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
	require.Zero(t, o.kit.Count("login_attempt", ""), "a link that is opened begins nothing")
	for _, origin := range []string{"https://evil.test", "null"} {
		require.Equal(t, http.StatusForbidden, o.browser().accept("ada", code, origin).StatusCode, origin)
	}
	require.Zero(t, o.kit.Count("login_attempt", ""), "nor another site's form")
	o.endsIn(o.browser().accept("eve", code, o.URL), fault.LoginRefused, "another address")
	o.endsIn(o.browser().accept("claims", code, o.URL), fault.LoginRefused, "an address that is not verified")
	require.Zero(t, o.kit.Count("person", "accepted_at IS NOT NULL"))
	require.Zero(t, o.kit.Count("external_identity", ""))

	browser := o.browser()
	browser.accept("ada", code, o.URL)
	o.is(browser, person)
	o.endsIn(o.browser().accept("ada", code, o.URL), fault.Unauthenticated, "once")
	_, err := o.identity.Invite(o.admin(tenant), person.ID)
	require.True(t, fault.Is(err, fault.FailedPrecondition), "a person who has accepted is not invited again")
	again := o.browser()
	again.login("ada", "")
	o.is(again, person)
}

// A login that is known here cannot accept: it would be taken from whom it belongs to. What was refused stays open for
// another.
func TestAKnownLoginAcceptsNoInvitation(t *testing.T) {
	t.Parallel()
	o := withProvider(t)
	home, away := o.kit.Tenant(), o.kit.Tenant()
	person, code := o.invited(home, "ada@a.test")
	o.people.add("ada", "ada@a.test", true)
	o.people.add("second", "ada@a.test", true)
	o.browser().accept("ada", code, o.URL)
	other, second := o.invited(away, "ada@a.test")

	o.endsIn(o.browser().accept("ada", second, o.URL), fault.LoginRefused, "a login of another tenant's person")
	require.Zero(t, o.kit.Count("person", "id = $1 AND accepted_at IS NOT NULL", other.ID))
	known := o.browser()
	known.login("ada", "")
	o.is(known, person)
	fresh := o.browser()
	fresh.accept("second", second, o.URL)
	o.is(fresh, other)
}

// A code ends when it is revoked, when another is minted, with its week, and with its person: also for a login that has
// begun by it.
func TestACodeThatHasEndedAcceptsNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*opened, *db.Tenant, *db.User){
		"revoked": func(o *opened, tenant *db.Tenant, person *db.User) {
			_, err := o.identity.RevokeInvitation(o.admin(tenant), person.ID, "left")
			require.NoError(t, err)
		},
		"minted again": func(o *opened, tenant *db.Tenant, person *db.User) {
			_, err := o.identity.Invite(o.admin(tenant), person.ID)
			require.NoError(t, err)
		},
		"after a week": func(o *opened, _ *db.Tenant, _ *db.User) {
			o.kit.SQL(`UPDATE invitation
			SET expires_at = now()`)
		},
		"disabled": func(o *opened, _ *db.Tenant, person *db.User) {
			o.kit.SQL(`UPDATE person SET disabled_at = now() WHERE id = $1`, person.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := withProvider(t)
			tenant := o.kit.Tenant()
			person, code := o.invited(tenant, "ada@a.test")
			o.people.add("ada", "ada@a.test", true)
			begun := o.browser()
			form, text := begun.sends(code, o.URL)
			end(o, tenant, person)
			o.endsIn(begun.proceed("ada", form, text), fault.LoginRefused, "begun before")
			o.endsIn(o.browser().accept("ada", code, o.URL), fault.Unauthenticated, "begun after")
			require.Zero(t, o.kit.Count("person", "accepted_at IS NOT NULL"))
			require.Zero(t, o.kit.Count("external_identity", ""))
		})
	}
}
