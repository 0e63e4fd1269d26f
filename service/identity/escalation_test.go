package identity_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/identity"
)

// TestNobodyRaisesThemselves is every way to give oneself, or a machine of one's own, more rights than one has.
func TestNobodyRaisesThemselves(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	project, sibling := b.Project(tenant), b.Project(tenant)
	tomorrow, later := time.Now().Add(24*time.Hour), time.Now().Add(48*time.Hour)
	passing := platformtest.In(authz.ProjectAdmin, project)
	passing.ExpiresAt = &tomorrow
	briefly := platformtest.OnPlatform(authz.PlatformOperator)
	briefly.ExpiresAt = &tomorrow
	me, guest, member, deputy := b.User(tenant, platformtest.In(authz.ProjectAdmin, project)), b.User(tenant, passing),
		b.User(tenant, platformtest.In(authz.ProjectMember, project)), b.User(nil, briefly)
	wide := b.User(tenant, platformtest.Across(authz.ProjectAdmin, tenant))
	account, key := b.ServiceAccount(project, authz.ServiceAccountCreate, authz.ServiceAccountUpdate,
		authz.ServiceAccountKeyCreate, authz.ProjectRead)
	as := map[ids.ID]contextual{me.ID: b.As(me), guest.ID: b.As(guest), member.ID: b.As(member),
		deputy.ID: b.As(deputy), wide.ID: b.As(wide)}
	robot := b.With(key)
	give := func(to ids.ID, role string, in *ids.ID, at *ids.ID, until *time.Time) func() error {
		return func() error {
			_, err := b.GrantRole(as[to], identity.GrantRoleInput{SubjectID: to, Role: role, TenantID: in,
				ProjectID: at, ExpiresAt: until})
			return err
		}
	}
	child := func(as contextual, keys ...string) func() error {
		return func() error {
			_, err := b.CreateServiceAccount(as, identity.CreateServiceAccountInput{ProjectID: project.ID,
				Name: "child", IdempotencyKey: "k", PermissionKeys: keys})
			return err
		}
	}
	change := func(as contextual, change identity.UpdateServiceAccountInput) func() error {
		change.ServiceAccountID = account.ID
		return func() error { _, err := b.UpdateServiceAccount(as, change); return err }
	}
	for name, c := range map[string]struct {
		try     func() error
		code    fault.Code
		path    string
		audited string // the action of the refusal that is recorded
	}{
		"a role whose keys one lacks": {give(wide.ID, "tenant_admin", &tenant.ID, nil, nil),
			fault.Forbidden, "", "grantRole"},
		"one's own role, in the whole tenant": {give(me.ID, "project_admin", &tenant.ID, nil, nil), fault.Forbidden,
			"", "grantRole"},
		"one's own role, in a sibling project": {give(me.ID, "project_admin", nil, &sibling.ID, nil), fault.NotFound,
			"", "grantRole"},
		"the platform": {give(wide.ID, "platform_operator", nil, nil, nil), fault.Forbidden, "", "grantRole"},
		"a role without the key to give any": {give(member.ID, "project_admin", nil, &project.ID, nil),
			fault.Forbidden, "", "grantRole"},
		"one's own role, for ever": {give(guest.ID, "project_admin", nil, &project.ID, nil),
			fault.Forbidden, "", "grantRole"},
		"one's own role, for longer": {give(guest.ID, "project_admin", nil, &project.ID, &later),
			fault.Forbidden, "", "grantRole"},
		"a lesser role, for longer": {give(guest.ID, "project_viewer", nil, &project.ID, &later),
			fault.Forbidden, "", "grantRole"},
		"the root of authority, for ever": {give(deputy.ID, "platform_operator", nil, nil, nil),
			fault.Forbidden, "", "grantRole"},
		"a role outside its scope": {give(wide.ID, "tenant_admin", nil, &project.ID, nil),
			fault.InvalidArgument, "input.role", "grantRole"},
		"a role that is none": {give(me.ID, "emperor", nil, &project.ID, nil),
			fault.InvalidArgument, "input.role", "grantRole"},
		"a machine's ceiling as a role": {give(me.ID, "operation", nil, &project.ID, nil),
			fault.InvalidArgument, "input.role", "grantRole"},
		"a machine with a key that is none": {child(as[me.ID], "no.such.key"), fault.InvalidArgument,
			"input.permissionKeys.0", "createServiceAccount"},
		"a machine above the ceiling": {child(as[me.ID], "project.read", "identity.binding.grant"),
			fault.InvalidArgument, "input.permissionKeys.1", "createServiceAccount"},
		"a machine with more keys than one has": {child(robot, "project.read", "apps.instance.create"),
			fault.Forbidden, "", "createServiceAccount"},
		"a machine that gives itself a key": {change(robot,
			identity.UpdateServiceAccountInput{PermissionKeys: []string{"project.read", "apps.instance.create"}}),
			fault.Forbidden, "", "updateServiceAccount"},
		"a machine, by whom it is no business of": {change(as[member.ID],
			identity.UpdateServiceAccountInput{PermissionKeys: []string{"project.read"}}), fault.Forbidden,
			"", "updateServiceAccount"},
	} {
		bindings, accounts := b.Count("role_binding", ""), b.Count("service_account", "")
		refusals, _ := refusalsOf(b, c.audited, c.code)
		err := c.try()
		got, ok := fault.As(err)
		require.True(t, ok, "%s: %v", name, err)
		require.Equal(t, c.code, got.Code, "%s: %v", name, err)
		if c.path != "" {
			require.Contains(t, err.Error(), "(at "+c.path+")", name)
		}
		require.Equal(t, bindings, b.Count("role_binding", ""), name)
		require.Equal(t, accounts, b.Count("service_account", ""), name)
		require.Zero(t, b.Count("service_account", `permission_keys @> '["apps.instance.create"]'`), name)
		now, latest := refusalsOf(b, c.audited, c.code)
		require.Equal(t, c.audited, latest, name)
		require.Equal(t, c.audited != "", now > refusals, name)
	}
	require.NoError(t, give(guest.ID, "project_viewer", nil, &project.ID, &tomorrow)(),
		"for as long as one has it oneself")
}

// refusalsOf counts the entries of the audit, and returns the action if one of them is its refusal with the code.
func refusalsOf(b *bench, action string, code fault.Code) (entries int, refused string) {
	for _, entry := range b.Audit() {
		entries += entry.Repeats
		if entry.Action == action && entry.Code == string(code) && !entry.Allowed {
			refused = entry.Action
		}
	}
	return entries, refused
}
