package identity_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/identity"
	"github.com/gpuaas/app-platform/service/kit/page"
)

func TestTenantsAndProjectsAreRenamedByThoseWhoRunThem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, foreign := b.Tenant(), b.Tenant()
	project := b.Project(tenant)
	boss := b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant)))
	admin := b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, project)))
	viewer := b.As(b.User(tenant, platformtest.In(authz.ProjectViewer, project)))
	stranger := b.As(b.User(foreign, platformtest.Across(authz.TenantAdmin, foreign)))

	in := identity.RenameInput{ID: tenant.ID, DisplayName: "Acme Ltd", Reason: "new name"}
	_, err := b.UpdateTenant(stranger, in)
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.UpdateTenant(admin, in)
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.UpdateTenant(boss, identity.RenameInput{ID: tenant.ID})
	platformtest.Refused(t, err, fault.InvalidArgument, "input.displayName")
	require.Zero(t, b.Count("tenant", "display_name = 'Acme Ltd'"))
	renamed, err := b.UpdateTenant(boss, in)
	require.NoError(t, err)
	require.Equal(t, "Acme Ltd", renamed.DisplayName)
	require.Equal(t, 1, b.Count("tenant", "display_name = 'Acme Ltd'"))

	in.ID = project.ID
	_, err = b.UpdateProject(stranger, in)
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.UpdateProject(viewer, in)
	platformtest.Refused(t, err, fault.Forbidden)
	for _, who := range []contextual{admin, b.As(b.Operator())} {
		changed, err := b.UpdateProject(who, in)
		require.NoError(t, err)
		require.Equal(t, "Acme Ltd", changed.DisplayName)
	}
	require.Equal(t, 1, b.Count("project", "display_name = 'Acme Ltd'"))
	b.audited("updateTenant", "")
}

func TestAProjectIsDeletedOnlyWhenNothingLivesInIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	project := b.Project(tenant)
	admin := b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, project)))
	node, _ := b.Kit.Node(2)
	_, stored := b.Launchable(project, "apps")
	allocation := b.Allocation(project, node)
	instance := b.Instance(project, stored, lifecycle.InstanceRunning)
	operation := b.Kit.Operation(instance, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	for _, step := range []struct {
		alive ids.ID
		end   string
	}{
		{instance.ID, `UPDATE instance SET status = 'STOPPING';
			UPDATE instance SET status = 'STOPPED', released_at = now()`},
		{allocation.ID, `UPDATE allocation SET status = 'RELEASING'; UPDATE allocation
			SET status = 'RELEASED', released_at = now()`},
		{operation.ID, `UPDATE operation SET state = 'SUCCEEDED', ended_at = now()`},
	} {
		_, err := b.DeleteProject(admin, project.ID, "over")
		platformtest.Refused(t, err, fault.FailedPrecondition, "projectId")
		require.ErrorContains(t, err, string(step.alive))
		require.Zero(t, b.Count("project", "deleted_at IS NOT NULL"))
		_, err = b.Kit.Admin.Exec(t.Context(), step.end)
		require.NoError(t, err)
	}
	_, err := b.DeleteProject(admin, project.ID, "")
	platformtest.Refused(t, err, fault.InvalidArgument, "reason")
	_, err = b.DeleteProject(admin, project.ID, "over")
	require.NoError(t, err)
}

func TestADeletedProjectIsGoneAndSoIsWhatSpokeForIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, foreign := b.Tenant(), b.Tenant()
	project, neighbour := b.Project(tenant), b.Project(tenant)
	bossUser := b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant))
	boss, operator := b.As(bossUser), b.As(b.Operator())
	member := b.User(tenant, platformtest.In(authz.ProjectMember, project),
		platformtest.In(authz.ProjectViewer, neighbour))
	account, key := b.ServiceAccount(project, authz.ProjectRead)
	_, other := b.ServiceAccount(neighbour, authz.ProjectRead)
	_, err := b.DeleteProject(b.As(b.User(foreign, platformtest.Across(authz.TenantAdmin, foreign))),
		project.ID, "mine")
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.DeleteProject(b.As(member), project.ID, "mine")
	platformtest.Refused(t, err, fault.Forbidden)
	_, err = b.Viewer(b.With(key))
	require.NoError(t, err)

	b.Bind(bossUser, platformtest.In(authz.ProjectAdmin, project))
	deleted, err := b.DeleteProject(boss, project.ID, "the team is gone")
	require.NoError(t, err)
	require.Equal(t, project.Slug, deleted.Slug)
	_, err = b.Viewer(b.With(key))
	platformtest.Refused(t, err, fault.Unauthenticated)
	_, err = b.Viewer(b.With(other))
	require.NoError(t, err, "its neighbour is untouched")
	for name, as := range map[string]contextual{"its admin": boss, "an operator": operator, "a member": b.As(member)} {
		_, err = b.Service.Project(as, project.ID)
		platformtest.Refused(t, err, fault.NotFound)
		listed, err := b.Projects(as, page.Args{First: 10})
		require.NoError(t, err)
		require.Len(t, listed.Rows, 1, name)
	}
	_, err = b.CreateServiceAccount(boss, identity.CreateServiceAccountInput{ProjectID: project.ID, Name: "late",
		PermissionKeys: []string{"project.read"}, IdempotencyKey: "k"})
	platformtest.Refused(t, err, fault.NotFound)
	_, _, err = b.CreateServiceAccountKey(boss, account.ID, nil)
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.DeleteProject(boss, project.ID, "again")
	platformtest.Refused(t, err, fault.NotFound)
	require.Zero(t, b.Count("role_binding", "project_id = $1 AND revoked_at IS NULL", project.ID))
	require.Zero(t, b.Count("service_account", "project_id = $1 AND deleted_at IS NULL", project.ID))
	again, err := b.CreateProject(boss, identity.CreateProjectInput{TenantID: tenant.ID, Slug: project.Slug,
		DisplayName: "Anew", IdempotencyKey: "k"})
	require.NoError(t, err, "its short name is free")
	require.NotEqual(t, project.ID, again.ID)
	b.audited("deleteProject", "")
}

// An account that is created at the same moment is deleted with the project or refused: a deleted project never has a
// live account.
func TestNothingIsBegunInAProjectThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	boss := b.As(b.User(tenant, platformtest.Across(authz.TenantAdmin, tenant),
		platformtest.Across(authz.ProjectAdmin, tenant)))
	for range 10 {
		project := b.Project(tenant)
		var begun sync.WaitGroup
		errs := make([]error, 2)
		begun.Go(func() { _, errs[0] = b.DeleteProject(boss, project.ID, "race") })
		begun.Go(func() {
			_, errs[1] = b.CreateServiceAccount(boss, identity.CreateServiceAccountInput{
				ProjectID: project.ID, Name: "late", PermissionKeys: []string{"project.read"},
				IdempotencyKey: string(project.ID)})
		})
		begun.Wait()
		require.NoError(t, errs[0])
		if errs[1] != nil {
			platformtest.Refused(t, errs[1], fault.NotFound)
		}
		require.Zero(t, b.Count("service_account", "project_id = $1 AND deleted_at IS NULL", project.ID))
	}
}

func TestAServiceAccountIsChangedWithinWhatItsChangerHolds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	project := b.Project(tenant)
	admin := b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, project)))
	account, secret := b.ServiceAccount(project, authz.ProjectRead)
	most, hourly := lifecycle.RiskWrite, 5
	instance := ids.New(ids.Instance)
	changed, err := b.UpdateServiceAccount(admin, identity.UpdateServiceAccountInput{ServiceAccountID: account.ID,
		Reason:         "narrowed",
		PermissionKeys: []string{"project.read", "apps.instance.read"},
		Limits: &identity.AccountLimits{ObjectIds: []ids.ID{instance}, MaxRisk: &most,
			OperationsPerHour: &hourly}})
	require.NoError(t, err)
	require.Equal(t, []string{"apps.instance.read", "project.read"}, changed.PermissionKeys)
	limits, err := identity.LimitsOf(changed)
	require.NoError(t, err)
	require.Equal(t, &identity.AccountLimits{ObjectIds: []ids.ID{instance}, MaxRisk: &most, OperationsPerHour: &hourly},
		limits)
	actor, err := b.Kit.DB.Read(b.With(secret))
	require.NoError(t, err)
	require.Equal(t, authz.Limits{Objects: []ids.ID{instance}, MaxRisk: most, OperationsPerHour: 5}, actor.Limits,
		"with the next thing it does")
	read, err := b.Service.ServiceAccount(admin, account.ID)
	require.NoError(t, err)
	require.JSONEq(t, string(changed.Limits), string(read.Limits))
	none, err := b.UpdateServiceAccount(admin, identity.UpdateServiceAccountInput{ServiceAccountID: account.ID,
		LiftLimits: []lifecycle.AccountLimit{lifecycle.LimitObjectIDs, lifecycle.LimitMaxRisk,
			lifecycle.LimitOperationsPerHour}})
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("service_account", "limits IS NULL"))
	require.Equal(t, changed.PermissionKeys, none.PermissionKeys, "what is left out stays")

	zero, twice := 0, []ids.ID{instance, instance}
	for path, in := range map[string]identity.UpdateServiceAccountInput{
		"input":                          {},
		"input.permissionKeys":           {PermissionKeys: []string{}},
		"input.permissionKeys.1":         {PermissionKeys: []string{"project.read", "tenant.create"}},
		"input.permissionKeys.0":         {PermissionKeys: []string{"no.such.key"}},
		"input.limits.objectIds":         {Limits: &identity.AccountLimits{ObjectIds: []ids.ID{}}},
		"input.limits.objectIds.0":       {Limits: &identity.AccountLimits{ObjectIds: []ids.ID{project.ID}}},
		"input.limits.objectIds.1":       {Limits: &identity.AccountLimits{ObjectIds: twice}},
		"input.limits.operationsPerHour": {Limits: &identity.AccountLimits{OperationsPerHour: &zero}},
	} {
		in.ServiceAccountID = account.ID
		_, err := b.UpdateServiceAccount(admin, in)
		platformtest.Refused(t, err, fault.InvalidArgument, path)
	}
	viewer := b.As(b.User(tenant, platformtest.In(authz.ProjectViewer, project)))
	_, err = b.UpdateServiceAccount(viewer, identity.UpdateServiceAccountInput{ServiceAccountID: account.ID,
		PermissionKeys: []string{"project.read"}})
	platformtest.Refused(t, err, fault.Forbidden)
	require.Equal(t, 2, b.Count("audit_entry", "action = 'updateServiceAccount' AND allowed"))
}

func TestADeletedServiceAccountIsGoneAndItsNameIsFree(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	project := b.Project(tenant)
	admin := b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, project)))
	account, secret := b.ServiceAccount(project, authz.ProjectRead)
	deleted, err := b.DeleteServiceAccount(admin, account.ID, "retired")
	require.NoError(t, err)
	require.NotNil(t, deleted.DeletedAt)
	_, err = b.Viewer(b.With(secret))
	platformtest.Refused(t, err, fault.Unauthenticated)
	listed, err := b.ServiceAccounts(admin, project.ID, page.Args{First: 10})
	require.NoError(t, err)
	require.Empty(t, listed.Rows)
	_, err = b.DeleteServiceAccount(admin, account.ID, "again")
	platformtest.Refused(t, err, fault.NotFound)
	_, _, err = b.CreateServiceAccountKey(admin, account.ID, nil)
	platformtest.Refused(t, err, fault.NotFound)
	_, err = b.CreateServiceAccount(admin, identity.CreateServiceAccountInput{ProjectID: project.ID, Name: account.Name,
		PermissionKeys: []string{"project.read"}, IdempotencyKey: "k"})
	require.NoError(t, err)
	b.audited("deleteServiceAccount", "")
}

func TestAKeyIsRotatedWithOverlap(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant := b.Tenant()
	project := b.Project(tenant)
	admin := b.As(b.User(tenant, platformtest.In(authz.ProjectAdmin, project)))
	account, _ := b.ServiceAccount(project, authz.ProjectRead)
	month := time.Now().Add(30 * 24 * time.Hour)
	old, first, err := b.CreateServiceAccountKey(admin, account.ID, &month)
	require.NoError(t, err)
	for path, in := range map[string]identity.RotateKeyInput{"input.overlapSeconds": {OverlapSeconds: 604_801},
		"input.expiresAt": {ExpiresAt: &time.Time{}}} {
		in.KeyID = old.ID
		_, _, err := b.RotateServiceAccountKey(admin, in)
		platformtest.Refused(t, err, fault.InvalidArgument, path)
	}
	fresh, second, err := b.RotateServiceAccountKey(admin,
		identity.RotateKeyInput{KeyID: old.ID, OverlapSeconds: 3600, Reason: "due"})
	require.NoError(t, err)
	require.WithinDuration(t, month, *fresh.ExpiresAt, time.Minute, "as long as the old one had")
	for _, secret := range []string{first, second} {
		_, err = b.Viewer(b.With(secret))
		require.NoError(t, err, "both work")
	}
	read, err := b.Service.ServiceAccountKey(admin, old.ID)
	require.NoError(t, err)
	require.Equal(t, fresh.ID, *read.ReplacedBy)
	require.WithinDuration(t, time.Now().Add(time.Hour), *read.ExpiresAt, time.Minute)
	_, _, err = b.RotateServiceAccountKey(admin, identity.RotateKeyInput{KeyID: old.ID})
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.keyId")
	b.SQL(`UPDATE service_account_key SET expires_at = now() - interval '1 second' WHERE id = $1`, old.ID)
	_, err = b.Viewer(b.With(first))
	platformtest.Refused(t, err, fault.TokenExpired)
	_, err = b.Viewer(b.With(second))
	require.NoError(t, err)

	_, third, err := b.RotateServiceAccountKey(admin, identity.RotateKeyInput{KeyID: fresh.ID})
	require.NoError(t, err)
	_, err = b.Viewer(b.With(second))
	platformtest.Refused(t, err, fault.Unauthenticated) // no overlap
	_, err = b.Viewer(b.With(third))
	require.NoError(t, err)
	_, _, err = b.RotateServiceAccountKey(b.As(b.User(tenant, platformtest.In(authz.ProjectMember, project))),
		identity.RotateKeyInput{KeyID: fresh.ID})
	platformtest.Refused(t, err, fault.Forbidden)
	for _, entry := range b.Audit() {
		require.NotContains(t, string(entry.After)+string(entry.Before), third[:20], "no secret reaches the audit")
	}
}

func TestRoleBindingsAreListedWhereTheCallerMayReadThem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tenant, foreign := b.Tenant(), b.Tenant()
	project, neighbour := b.Project(tenant), b.Project(tenant)
	boss := b.User(tenant)
	above := b.Bind(boss, platformtest.Across(authz.TenantAdmin, tenant))
	admin := b.User(tenant)
	inside := b.Bind(admin, platformtest.In(authz.ProjectAdmin, project))
	b.Bind(admin, platformtest.In(authz.ProjectViewer, neighbour))
	gone := b.Bind(admin, platformtest.In(authz.ProjectMember, project))
	b.SQL(`UPDATE role_binding SET revoked_at = now() WHERE id = $1`, gone.ID)
	list := func(as contextual, filter identity.BindingsFilter, size int) (out []ids.ID) {
		args := page.Args{First: size}
		for {
			p, err := b.RoleBindings(as, filter, args)
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
	ofProject := identity.BindingsFilter{ProjectID: &project.ID}
	require.Equal(t, []ids.ID{inside.ID, above.ID}, list(b.As(boss), ofProject, 1),
		"a tenant's roles hold in its projects")
	require.Equal(t, []ids.ID{inside.ID}, list(b.As(admin), ofProject, 10),
		"the tenant's are not for a project's admin")
	require.Equal(t, []ids.ID{gone.ID, inside.ID, above.ID},
		list(b.As(boss), identity.BindingsFilter{ProjectID: &project.ID, Ended: true}, 2))
	require.Equal(t, []ids.ID{above.ID}, list(b.As(boss), identity.BindingsFilter{TenantID: &tenant.ID}, 10))
	require.Len(t, list(b.As(b.Operator()), identity.BindingsFilter{}, 10), 1, "the operator's own")
	for code, filter := range map[fault.Code]identity.BindingsFilter{
		fault.Forbidden: {}, fault.NotFound: {TenantID: &foreign.ID},
		fault.InvalidArgument: {TenantID: &tenant.ID, ProjectID: &b.Project(foreign).ID},
	} {
		as := b.As(boss)
		if code == fault.InvalidArgument {
			as = b.As(b.Operator())
		}
		_, err := b.RoleBindings(as, filter, page.Args{First: 10})
		platformtest.Refused(t, err, code)
	}
	_, err := b.RoleBindings(b.As(boss), ofProject, page.Args{First: 10, After: "nonsense"})
	platformtest.Refused(t, err, fault.CursorInvalid, "after")
}
