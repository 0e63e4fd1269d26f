package identity_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/kit/page"
)

type contextual = context.Context

func TestAServiceAccountActsWithItsKeyUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	project := b.Project(tenant)
	admin := b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, project)))
	in := identity.CreateServiceAccountInput{ProjectID: project.ID, Name: "ci-bot", IdempotencyKey: "k",
		PermissionKeys: []string{"project.read", "apps.instance.create", "project.read"}}
	account, err := b.CreateServiceAccount(admin, in)
	require.NoError(t, err)
	require.Equal(t, []string{"apps.instance.create", "project.read"}, account.PermissionKeys)
	again, err := b.CreateServiceAccount(admin, in)
	require.NoError(t, err)
	require.Equal(t, account.ID, again.ID)

	key, secret, err := b.CreateServiceAccountKey(admin, account.ID, nil)
	require.NoError(t, err)
	require.Contains(t, secret, key.ID.Suffix(), "a leaked secret can be found")
	bot := b.With(secret)
	viewer, err := b.Viewer(bot)
	require.NoError(t, err)
	require.Equal(t, "SERVICE_ACCOUNT", viewer.Actor.Kind)
	require.Equal(t, tenant.ID, viewer.Tenant.ID)
	held, err := b.Permissions(bot, project.ID)
	require.NoError(t, err)
	require.Equal(t, []string{"apps.instance.create", "project.read"}, held)
	_, err = b.Permissions(bot, b.Project(tenant).ID)
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.CreateServiceAccount(bot, identity.CreateServiceAccountInput{ProjectID: project.ID, Name: "child",
		IdempotencyKey: "k", PermissionKeys: []string{"project.read"}})
	platformtest.Refused(t, err, fault.Forbidden)

	revoked, err := b.RevokeServiceAccountKey(admin, key.ID, "rotated")
	require.NoError(t, err)
	require.NotNil(t, revoked.RevokedAt)
	_, err = b.RevokeServiceAccountKey(admin, key.ID, "rotated")
	require.NoError(t, err)
	_, err = b.Viewer(bot)
	platformtest.Refused(t, err, fault.Unauthenticated)
	for _, action := range []string{"createServiceAccount", "createServiceAccountKey", "revokeServiceAccountKey"} {
		b.audited(action, "")
	}
	for _, entry := range b.Audit() {
		require.NotContains(t, string(entry.After)+string(entry.Before), secret[:20], "no secret reaches the audit")
	}
}

func TestServiceAccountsHoldNothingTheirMakerLacks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, other := b.Tenant(), b.Tenant()
	project := b.Project(tenant)
	admin := b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, project)))
	make := func(as contextual, project ids.ID, keys ...string) error {
		_, err := b.CreateServiceAccount(as, identity.CreateServiceAccountInput{ProjectID: project, Name: "bot",
			IdempotencyKey: "k", PermissionKeys: keys})
		return err
	}
	platformtest.Refused(t, make(admin, project.ID, "project.read", "tenant.create"), fault.InvalidArgument,
		"input.permissionKeys.1")
	platformtest.Refused(t, make(admin, project.ID), fault.InvalidArgument, "input.permissionKeys")
	platformtest.Refused(t, make(b.As(b.User(tenant, platformtest.In(authz.ProjectMember, project))), project.ID,
		"project.read"), fault.Forbidden)
	platformtest.Refused(t, make(b.As(b.User(other, platformtest.Across(authz.TenantAdmin, other))), project.ID,
		"project.read"), fault.NotFound)
	require.Zero(t, b.Count("service_account", ""))

	account, secret := b.ServiceAccount(project, authz.ProjectRead)
	stranger := b.As(b.User(other, platformtest.Across(authz.TenantAdmin, other)))
	_, _, err := b.CreateServiceAccountKey(stranger, account.ID, nil)
	platformtest.Refused(t, err, fault.NotFound)
	past := time.Now().Add(-time.Minute)
	_, _, err = b.CreateServiceAccountKey(admin, account.ID, &past)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.expiresAt")
	require.Equal(t, 1, b.Count("service_account_key", ""))
	var key ids.ID
	require.NoError(t, b.Kit.Admin.QueryRow(t.Context(), `SELECT id FROM service_account_key`).Scan(&key))
	_, err = b.RevokeServiceAccountKey(stranger, key, "")
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.Viewer(b.With(secret))
	require.NoError(t, err, "the key still works")
	b.SQL(`INSERT INTO service_account_key (id, tenant_id, project_id, service_account_id, secret_hash, created_at)
		SELECT 'key_' || n, tenant_id, project_id, id, ''::bytea, now() FROM service_account, generate_series(1, 99) n`)
	_, _, err = b.CreateServiceAccountKey(admin, account.ID, nil)
	platformtest.Refused(t, err, fault.LimitExceeded, "input.serviceAccountId")
}

func TestListsShowWhatTheCallerMayRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, other := b.Tenant(), b.Tenant()
	first, second, theirs := b.Project(tenant), b.Project(tenant), b.Project(other)
	account, _ := b.ServiceAccount(first, authz.ProjectRead)
	b.ServiceAccount(second, authz.ProjectRead)
	admin := b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))
	one := b.User(tenant, platformtest.In(authz.ProjectAdmin, first))
	publisher := b.User(nil, platformtest.OnPlatform(authz.AppPublisher))
	guest := b.User(nil, platformtest.OnPlatform(authz.AppPublisher), platformtest.In(authz.ProjectViewer, theirs))

	projects := func(as contextual, size int) (out []ids.ID) {
		args := page.Args{First: size}
		for {
			p, err := b.Projects(as, args)
			require.NoError(t, err)
			for _, row := range p.Rows {
				out = append(out, row.ID)
			}
			if !p.HasNext {
				return out
			}
			args.After = p.Cursors[len(p.Cursors)-1]
		}
	}
	require.Equal(t, []ids.ID{first.ID, second.ID}, projects(b.As(admin), 1))
	require.Equal(t, []ids.ID{first.ID}, projects(b.As(one), 10))
	require.Equal(t, []ids.ID{first.ID, second.ID, theirs.ID}, projects(b.As(b.Operator()), 2))
	require.Empty(t, projects(b.As(publisher), 10), "a publisher sees no project, though its login role could")
	require.Equal(t, []ids.ID{theirs.ID}, projects(b.As(guest), 10))

	people, err := b.Users(b.As(admin), tenant.ID, false, page.Args{First: 1})
	require.NoError(t, err)
	require.True(t, people.HasNext)
	require.Equal(t, admin.ID, people.Rows[0].ID)
	_, err = b.Users(b.As(one), tenant.ID, false, page.Args{First: 1})
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.Users(b.As(publisher), tenant.ID, false, page.Args{First: 1})
	platformtest.Refused(t, err, fault.Forbidden) // platform staff may know that a tenant exists
	_, err = b.Users(b.As(admin), other.ID, false, page.Args{First: 1})
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.Users(b.As(admin), tenant.ID, false, page.Args{First: 1, After: "nonsense"})
	platformtest.Refused(t, err, fault.CursorInvalid, "after")

	accounts, err := b.ServiceAccounts(b.As(one), first.ID, page.Args{First: 10})
	require.NoError(t, err)
	require.Equal(t, account.ID, accounts.Rows[0].ID)
	_, err = b.ServiceAccounts(b.As(one), second.ID, page.Args{First: 10})
	platformtest.Refused(t, err, fault.NotFound)
	keys, err := b.KeysOf(b.As(one), []ids.ID{account.ID})
	require.NoError(t, err)
	require.Len(t, keys[account.ID], 1)
	keys, err = b.KeysOf(b.As(publisher), []ids.ID{account.ID})
	require.NoError(t, err)
	require.Empty(t, keys)
}

func TestSingleObjectsAreReadByTheirKeyOrByTheirOwner(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, other := b.Tenant(), b.Tenant()
	project := b.Project(tenant)
	person := b.User(tenant)
	role := b.Bind(person, platformtest.In(authz.ProjectViewer, project))
	account, secret := b.ServiceAccount(project, authz.ProjectRead)
	self, bot := b.As(person), b.With(secret)
	stranger := b.As(b.User(other, platformtest.Across(authz.TenantAdmin, other)))
	reads := map[string]struct {
		read func(as contextual) error
		own  contextual
	}{
		"tenant":  {func(as contextual) error { _, err := b.Service.Tenant(as, tenant.ID); return err }, self},
		"person":  {func(as contextual) error { _, err := b.Service.User(as, person.ID); return err }, self},
		"binding": {func(as contextual) error { _, err := b.RoleBinding(as, role.ID); return err }, self},
		"account": {func(as contextual) error { _, err := b.Service.ServiceAccount(as, account.ID); return err }, bot},
	}
	admin := b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	for name, c := range reads {
		require.NoError(t, c.read(c.own), name)
		require.NoError(t, c.read(admin), name)
		require.NoError(t, c.read(b.As(b.Operator())), name)
		platformtest.Refused(t, c.read(stranger), fault.NotFound)
	}
	require.Error(t, reads["person"].read(bot))
	require.Error(t, reads["account"].read(self))
}
