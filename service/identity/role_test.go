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

func TestARoleHoldsFromTheGrantToTheRevocation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	project := b.Project(tenant)
	admin := b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, project)))
	person := b.User(tenant)
	theirs := b.As(person)
	_, err := b.Service.Project(theirs, project.ID)
	platformtest.Refused(t, err, fault.NotFound)

	in := identity.GrantRoleInput{SubjectID: person.ID, Role: "project_viewer", ProjectID: &project.ID,
		Reason: "joins the team"}
	granted, err := b.GrantRole(admin, in)
	require.NoError(t, err)
	require.Equal(t, tenant.ID, *granted.TenantID, "a project implies its tenant")
	again, err := b.GrantRole(admin, in)
	require.NoError(t, err)
	require.Equal(t, granted.ID, again.ID, "the same role is not given twice")
	_, err = b.Service.Project(theirs, project.ID)
	require.NoError(t, err)

	revoked, err := b.RevokeRole(admin, granted.ID, "leaves the team")
	require.NoError(t, err)
	require.NotNil(t, revoked.RevokedAt)
	_, err = b.RevokeRole(admin, granted.ID, "leaves the team")
	require.NoError(t, err, "a repeat is harmless")
	_, err = b.Service.Project(theirs, project.ID)
	platformtest.Refused(t, err, fault.NotFound)
	b.audited("grantRole", "")
	b.audited("revokeRole", "")
}

func TestNobodyGivesOrTakesWhatTheyLack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, other := b.Tenant(), b.Tenant()
	project, theirs := b.Project(tenant), b.Project(other)
	boss := b.User(tenant)
	bossRole := b.Bind(boss, platformtest.Across(authz.TenantAdmin, tenant))
	operatorRole := b.Bind(b.User(nil), platformtest.OnPlatform(authz.PlatformOperator))
	person, stranger, staff := b.User(tenant), b.User(other), b.User(nil)
	admin, tenantAdmin, operator := b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, project))), b.As(boss),
		b.As(b.Operator())
	viewer := b.As(b.User(tenant, platformtest.In(authz.ProjectViewer, project)))
	// holds the grant key, but not a tenant admin's others
	wide := b.As(b.User(tenant, platformtest.Across(authz.ProjectAdmin, tenant)))
	past := time.Now().Add(-time.Hour)
	before := b.Count("role_binding", "")
	for name, c := range map[string]struct {
		as   func() (any, error)
		code fault.Code
		path string
	}{
		"a viewer gives nothing": {grant(b, viewer, person.ID, "project_viewer", nil, &project.ID),
			fault.Forbidden, ""},
		"a project's admin not in the tenant": {grant(b, admin, person.ID, "project_admin", &tenant.ID, nil),
			fault.Forbidden, ""},
		"a tenant's admin not on the platform": {grant(b, tenantAdmin, person.ID, "platform_operator", nil, nil),
			fault.Forbidden, ""},
		"not in another tenant's project": {grant(b, tenantAdmin, person.ID, "project_viewer", nil, &theirs.ID),
			fault.NotFound, ""},
		"not to another tenant's person": {grant(b, tenantAdmin, stranger.ID, "project_viewer", nil, &project.ID),
			fault.NotFound, ""},
		"operator: tenants stay apart": {grant(b, operator, stranger.ID, "project_viewer", nil, &project.ID),
			fault.FailedPrecondition, "input.subjectId"},
		"operator: platform is for staff": {grant(b, operator, person.ID, "app_publisher", nil, nil),
			fault.FailedPrecondition, "input.subjectId"},
		"operator: role has no such scope": {grant(b, operator, staff.ID, "tenant_admin", nil, &project.ID),
			fault.InvalidArgument, "input.role"},
		"operator: no such role": {grant(b, operator, staff.ID, "emperor", nil, nil), fault.InvalidArgument,
			"input.role"},
		"operator: project of another tenant": {grant(b, operator, person.ID, "project_viewer", &other.ID, &project.ID),
			fault.InvalidArgument, "input.tenantId"},
		"operator: nobody of that id": {grant(b, operator, ids.New(ids.User), "app_publisher", nil, nil),
			fault.NotFound, ""},
		"an end in the past": {func() (any, error) {
			return b.GrantRole(operator, identity.GrantRoleInput{SubjectID: staff.ID, Role: "app_publisher",
				ExpiresAt: &past})
		}, fault.InvalidArgument, "input.expiresAt"},
		"a project's admin takes no tenant role": {func() (any, error) { return b.RevokeRole(admin, bossRole.ID, "") },
			fault.NotFound, ""},
		"nobody takes a role greater than theirs": {func() (any, error) { return b.RevokeRole(wide, bossRole.ID, "") },
			fault.Forbidden, ""},
		"nobody gives a role greater than theirs": {grant(b, wide, person.ID, "tenant_admin", &tenant.ID, nil),
			fault.Forbidden, ""},
		"a tenant's admin sees no operator": {func() (any, error) {
			return b.RevokeRole(tenantAdmin, operatorRole.ID, "")
		}, fault.NotFound, ""},
	} {
		_, err := c.as()
		require.Error(t, err, name)
		t.Log(name)
		if c.path == "" {
			platformtest.Refused(t, err, c.code)
		} else {
			platformtest.Refused(t, err, c.code, c.path)
		}
	}
	require.Equal(t, before, b.Count("role_binding", "revoked_at IS NULL"))
	_, err := grant(b, operator, staff.ID, "app_publisher", nil, nil)()
	require.NoError(t, err)
}

func grant(b *bench, as contextual, subject ids.ID, role string, tenant, project *ids.ID) func() (any, error) {
	return func() (any, error) {
		return b.GrantRole(as, identity.GrantRoleInput{SubjectID: subject, Role: role, TenantID: tenant,
			ProjectID: project})
	}
}

func TestTheLastOperatorStays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.User(nil)
	role := b.Bind(first, platformtest.OnPlatform(authz.PlatformOperator))
	_, err := b.RevokeRole(b.As(first), role.ID, "")
	platformtest.Refused(t, err, fault.FailedPrecondition, "bindingId")
	require.Equal(t, 1, b.Count("role_binding", "revoked_at IS NULL"))
	second := b.Operator()
	_, err = b.RevokeRole(b.As(second), role.ID, "")
	require.NoError(t, err)
	_, err = b.Viewer(b.As(first))
	require.NoError(t, err, "a login outlives its roles")
	_, err = b.CreateTenant(b.As(first), identity.CreateTenantInput{Slug: "acme", DisplayName: "Acme",
		IdempotencyKey: "k"})
	platformtest.Refused(t, err, fault.Forbidden)
}

func TestTwoOperatorsCannotRemoveEachOtherAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one, two := b.User(nil), b.User(nil)
	roleOfOne := b.Bind(one, platformtest.OnPlatform(authz.PlatformOperator))
	roleOfTwo := b.Bind(two, platformtest.OnPlatform(authz.PlatformOperator))
	asOne, asTwo := b.As(one), b.As(two)
	gate, err := b.Kit.Admin.Begin(t.Context()) // both are let go at once
	require.NoError(t, err)
	_, err = gate.Exec(t.Context(), `SELECT FROM role_binding FOR UPDATE`)
	require.NoError(t, err)
	results := make(chan error, 2)
	go func() { _, err := b.RevokeRole(asOne, roleOfTwo.ID, ""); results <- err }()
	go func() { _, err := b.RevokeRole(asTwo, roleOfOne.ID, ""); results <- err }()
	require.Eventually(t, func() bool {
		return b.Count("pg_stat_activity", "datname = current_database() AND wait_event_type = 'Lock'") == 2
	}, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, gate.Rollback(t.Context()))
	first, second := <-results, <-results
	require.True(t, (first == nil) != (second == nil), "one wins: %v, %v", first, second)
	require.Equal(t, 1, b.Count("role_binding", "revoked_at IS NULL"))
}
