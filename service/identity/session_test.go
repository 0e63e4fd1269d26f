package identity_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/identity"
)

// login logs a person in by a link.
func (b *bench) login(person *db.User) *identity.Session {
	b.t.Helper()
	link, err := b.CreateLoginLink(b.As(b.Operator()), person.ID)
	require.NoError(b.t, err)
	session, err := b.RedeemLogin(b.t.Context(), link.Code)
	require.NoError(b.t, err)
	return session
}

func TestPeopleSeeAndEndTheirOwnSessions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	person, other := b.User(tenant), b.User(tenant)
	here, there, theirs := b.login(person), b.login(person), b.login(other)
	sessions, err := b.Sessions(b.With(here.Token))
	require.NoError(t, err)
	require.Len(t, sessions, 2)
	require.Equal(t, []bool{false, true}, []bool{sessions[0].Current, sessions[1].Current}, "newest first")
	require.Equal(t, "link", sessions[0].Method)
	foreign, err := b.Sessions(b.With(theirs.Token))
	require.NoError(t, err)
	_, err = b.RevokeSession(b.With(here.Token), foreign[0].ID)
	platformtest.Refused(t, err, fault.NotFound)
	admin := b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	_, err = b.RevokeSession(admin, foreign[0].ID)
	platformtest.Refused(t, err, fault.NotFound) // an admin ends all of a person's sessions, not one

	ended, err := b.RevokeSession(b.With(here.Token), sessions[0].ID)
	require.NoError(t, err)
	require.Equal(t, sessions[0].ID, ended.ID)
	_, err = b.RevokeSession(b.With(here.Token), sessions[0].ID)
	require.NoError(t, err, "a repeat is harmless")
	_, err = b.Viewer(b.With(there.Token))
	platformtest.Refused(t, err, fault.Unauthenticated)
	_, err = b.Viewer(b.With(theirs.Token))
	require.NoError(t, err)
	b.audited("endSession", "")
	_, secret := b.ServiceAccount(b.Project(tenant), authz.ProjectRead)
	none, err := b.Sessions(b.With(secret))
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestLogoutEverywhereEndsEverySession(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, foreign := b.Tenant(), b.Tenant()
	person := b.User(tenant)
	one, two := b.login(person), b.login(person)
	stranger := b.As(b.User(foreign, platformtest.Across(authz.TenantAdmin, foreign)))
	colleague := b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, b.Project(tenant))))
	_, err := b.LogoutEverywhere(stranger, &person.ID, "")
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.LogoutEverywhere(colleague, &person.ID, "")
	platformtest.Refused(t, err, fault.Forbidden)
	_, secret := b.ServiceAccount(b.Project(tenant), authz.ProjectRead)
	_, err = b.LogoutEverywhere(b.With(secret), nil, "")
	platformtest.Refused(t, err, fault.InvalidArgument, "userId")
	require.Equal(t, 2, b.Count("session", "user_id = $1 AND revoked_at IS NULL", person.ID))

	ended, err := b.LogoutEverywhere(b.With(one.Token), nil, "lost a laptop")
	require.NoError(t, err)
	require.Equal(t, 2, ended)
	for _, session := range []*identity.Session{one, two} {
		_, err = b.Viewer(b.With(session.Token))
		platformtest.Refused(t, err, fault.Unauthenticated)
	}
	b.login(person)
	ended, err = b.LogoutEverywhere(b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))), &person.ID,
		"left")
	require.NoError(t, err)
	require.Equal(t, 1, ended)
	b.audited("logoutEverywhere", string(fault.Forbidden))
}

func TestADisabledPersonIsOutAtOnceAndStaysOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, foreign := b.Tenant(), b.Tenant()
	person, boss := b.User(tenant), b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))
	session := b.login(person)
	link, err := b.CreateLoginLink(b.As(b.Operator()), person.ID)
	require.NoError(t, err)
	yes, no, name := true, false, "Ann Other"
	in := identity.UpdateUserInput{UserID: person.ID, Disabled: &yes, Reason: "left"}
	_, err = b.UpdateUser(b.As(b.User(foreign, platformtest.Across(authz.TenantAdmin, foreign))), in)
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.UpdateUser(b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, b.Project(tenant)))), in)
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.UpdateUser(b.As(boss), identity.UpdateUserInput{UserID: boss.ID, Disabled: &yes})
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.disabled")
	_, err = b.UpdateUser(b.As(boss), identity.UpdateUserInput{UserID: person.ID})
	platformtest.Refused(t, err, fault.InvalidArgument, "input")
	empty := ""
	_, err = b.UpdateUser(b.As(boss), identity.UpdateUserInput{UserID: person.ID, DisplayName: &empty})
	platformtest.Refused(t, err, fault.InvalidArgument, "input.displayName")
	require.Zero(t, b.Count("person", "disabled_at IS NOT NULL"))
	_, err = b.Viewer(b.With(session.Token))
	require.NoError(t, err)

	changed, err := b.UpdateUser(b.As(boss), in)
	require.NoError(t, err)
	require.NotNil(t, changed.DisabledAt)
	_, err = b.Viewer(b.With(session.Token))
	platformtest.Refused(t, err, fault.Unauthenticated)
	_, err = b.RedeemLogin(t.Context(), link.Code)
	platformtest.Refused(t, err, fault.Unauthenticated)
	b.audited("login", string(fault.Unauthenticated))
	require.Zero(t, b.Count("session", "user_id = $1 AND revoked_at IS NULL", person.ID))

	changed, err = b.UpdateUser(b.As(boss), identity.UpdateUserInput{UserID: person.ID, Disabled: &no,
		DisplayName: &name})
	require.NoError(t, err)
	require.Nil(t, changed.DisabledAt)
	require.Equal(t, name, changed.DisplayName)
	_, err = b.Viewer(b.With(session.Token))
	platformtest.Refused(t, err, fault.Unauthenticated) // what ended stays ended
	b.login(person)
}

func TestTheOldestSessionEndsBeyondTheBound(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	person := b.User(b.Tenant())
	first := b.login(person)
	b.SQL(`UPDATE session SET created_at = now() - interval '1 hour'`)
	for i := range 48 {
		b.SQL(`INSERT INTO session (id, user_id, secret_hash, expires_at, created_at)
			VALUES ($1, $2, '', now() + interval '1 hour', now())`,
			fmt.Sprintf("ses_filler%d", i), person.ID)
	}
	b.login(person)
	_, err := b.Viewer(b.With(first.Token))
	require.NoError(t, err, "fifty may be live")
	b.login(person)
	_, err = b.Viewer(b.With(first.Token))
	platformtest.Refused(t, err, fault.Unauthenticated)
	require.Equal(t, 50, b.Count("session", "revoked_at IS NULL AND user_id = $1", person.ID))
}

func TestASessionGetsANewSecretAndKeepsItsEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	person := b.User(b.Tenant())
	old := b.login(person)
	young, err := b.RefreshSession(t.Context(), old.Token)
	require.NoError(t, err)
	require.Empty(t, young.Token, "it is young enough")
	require.Equal(t, 1, b.Count("session", "user_id = $1", person.ID))

	b.Service.RotateAfter = time.Nanosecond
	fresh, err := b.RefreshSession(t.Context(), old.Token)
	require.NoError(t, err)
	require.NotEmpty(t, fresh.Token)
	require.True(t, old.ExpiresAt.Equal(fresh.ExpiresAt), "turning over does not prolong it")
	for _, token := range []string{old.Token, fresh.Token} {
		_, err = b.Viewer(b.With(token))
		require.NoError(t, err, "requests under way still use the old secret")
	}
	again, err := b.RefreshSession(t.Context(), old.Token)
	require.NoError(t, err)
	require.Empty(t, again.Token, "another page of the browser was faster")
	require.Equal(t, 1, b.Count("session", "replaced_by IS NOT NULL AND expires_at <= now() + interval '1 minute'"))
	listed, err := b.Sessions(b.With(fresh.Token))
	require.NoError(t, err)
	require.Len(t, listed, 1, "one login, whatever its secret")
	b.SQL(`UPDATE session SET expires_at = now() WHERE replaced_by IS NOT NULL`)
	_, err = b.Viewer(b.With(old.Token))
	platformtest.Refused(t, err, fault.Unauthenticated)

	third, err := b.RefreshSession(t.Context(), fresh.Token)
	require.NoError(t, err)
	require.NoError(t, b.EndSession(t.Context(), fresh.Token))
	_, err = b.Viewer(b.With(third.Token))
	platformtest.Refused(t, err, fault.Unauthenticated) // a logout under the old secret ends the new one too
	_, err = b.RefreshSession(t.Context(), fresh.Token)
	platformtest.Refused(t, err, fault.Unauthenticated)
	_, err = b.RefreshSession(t.Context(), "gpu_ses_x")
	platformtest.Refused(t, err, fault.Unauthenticated)
}

func TestRolesAndKeysAreShownWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	person := b.As(b.User(b.Tenant()))
	roles, err := b.Roles(person)
	require.NoError(t, err)
	require.Len(t, roles, len(authz.AllRoles()))
	for _, role := range roles {
		require.NotEmpty(t, role.PermissionKeys, role.Name)
		require.NotEmpty(t, role.Description, role.Name)
	}
	keys, err := b.Service.PermissionKeys(person)
	require.NoError(t, err)
	require.Len(t, keys, len(authz.Keys()))
	families := map[string]bool{}
	for _, key := range keys {
		families[key.Family] = true
		require.NotEmpty(t, key.Description, key.Name)
	}
	require.Equal(t, map[string]bool{"": true, "apps": true, "scheduler": true}, families)
	_, err = b.Roles(t.Context())
	platformtest.Refused(t, err, fault.Unauthenticated)
}
