package authz

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

// The scopes the tests speak of: two tenants, the first with two projects.
const (
	tenant1  ids.ID = "ten_00000000000000000000000001"
	tenant2  ids.ID = "ten_00000000000000000000000002"
	project1 ids.ID = "prj_00000000000000000000000001"
	project2 ids.ID = "prj_00000000000000000000000002"
	project3 ids.ID = "prj_00000000000000000000000003" // of tenant2
	ins1     ids.ID = "ins_00000000000000000000000001"
	ins2     ids.ID = "ins_00000000000000000000000002"
	nod1     ids.ID = "nod_00000000000000000000000001"
	nod2     ids.ID = "nod_00000000000000000000000002"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func user(bindings ...Binding) *Actor {
	return NewActor(Subject{Kind: KindUser, ID: "usr_1"}, bindings, nil, now)
}

func TestBindingsReachExactlyTheirScope(t *testing.T) {
	t.Parallel()
	operator := user(Binding{Role: PlatformOperator})
	admin := user(Binding{Role: TenantAdmin, TenantID: tenant1})
	viewer := user(Binding{Role: ProjectViewer, TenantID: tenant1, ProjectID: project1})
	for name, c := range map[string]struct {
		actor           *Actor
		key             Key
		tenant, project ids.ID
		want            bool
	}{
		"operator reads any project":                 {operator, AppsInstanceRead, tenant2, project3, true},
		"operator launches nothing in a tenant":      {operator, AppsInstanceCreate, tenant2, project3, false},
		"operator registers adapters":                {operator, AdapterRegister, "", "", true},
		"tenant admin launches in every project":     {admin, AppsInstanceCreate, tenant1, project2, true},
		"tenant admin creates projects":              {admin, ProjectCreate, tenant1, "", true},
		"tenant admin has nothing in another tenant": {admin, AppsInstanceRead, tenant2, project3, false},
		"tenant admin has nothing on the platform":   {admin, TenantCreate, "", "", false},
		"viewer reads its project":                   {viewer, SchedulerQueueRead, tenant1, project1, true},
		"viewer changes nothing":                     {viewer, SchedulerQueueSubmit, tenant1, project1, false},
		"viewer sees its tenant":                     {viewer, TenantRead, tenant1, "", true},
		"viewer reads no sibling project":            {viewer, ProjectRead, tenant1, project2, false},
		"nobody holds the zero key":                  {System("test"), 0, "", "", false},
		"no actor holds anything":                    {nil, TenantRead, tenant1, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, c.actor.Allows(c.key, c.tenant, c.project))
		})
	}
}

func TestBindingsThatEndedOrMakeNoSenseAreDropped(t *testing.T) {
	t.Parallel()
	later := now.Add(time.Hour)
	actor := user(
		Binding{Role: ProjectAdmin, TenantID: tenant1, ProjectID: project1, ExpiresAt: now},
		Binding{Role: ProjectViewer, TenantID: tenant1, ProjectID: project1, ExpiresAt: later},
		Binding{Role: PlatformOperator, TenantID: tenant1, ProjectID: project1},
		Binding{Role: TenantAdmin},
		Binding{Role: "emperor"},
		Binding{Role: ceilingServiceAccount, TenantID: tenant1, ProjectID: project1},
	)
	require.Equal(t, RoleMask(ProjectViewer), actor.Holds("", project1))
	require.Empty(t, actor.Holds("", "").Keys())
	require.Equal(t, later, actor.RefreshAt())
}

func TestAllowListNarrowsAPerson(t *testing.T) {
	t.Parallel()
	actor := NewActor(Subject{Kind: KindUser}, []Binding{{Role: ProjectAdmin, TenantID: tenant1, ProjectID: project1}},
		[]string{"apps.instance.read", "tenant.create", "no.such.key"}, now)
	require.Equal(t, []string{"apps.instance.read"}, actor.Holds(tenant1, project1).Names())
}

func TestServiceAccountNeverLeavesItsProject(t *testing.T) {
	t.Parallel()
	robot := NewActor(Subject{Kind: KindServiceAccount, ID: "sa_1", TenantID: tenant1, ProjectID: project1},
		[]Binding{{Role: PlatformOperator}, {Role: TenantAdmin, TenantID: tenant2}},
		[]string{"apps.instance.create", "apps.instance.read", "tenant.create", "identity.binding.grant"}, now)
	require.True(t, robot.Allows(AppsInstanceCreate, tenant1, project1))
	require.False(t, robot.Allows(AppsInstanceCreate, tenant1, project2))
	require.False(t, robot.Allows(TenantCreate, "", ""), "above its ceiling")
	require.False(t, robot.Allows(BindingGrant, tenant1, project1), "above its ceiling")
	require.False(t, robot.Allows(ProjectCreate, tenant2, ""), "bindings of machines are ignored")
	require.True(t, fault.Is(Require(robot, AppsInstanceRead, tenant1, project2), fault.NotFound))
	require.True(t, fault.Is(Require(robot, AppsInstanceDelete, tenant1, project1), fault.Forbidden))
}

func TestServiceAccountWithoutKeysHoldsNothing(t *testing.T) {
	t.Parallel()
	for _, allow := range [][]string{nil, {}, {"no.such.key"}} {
		robot := NewActor(Subject{Kind: KindServiceAccount, TenantID: tenant1, ProjectID: project1}, nil, allow, now)
		require.Equal(t, Reach{}, robot.Reach())
	}
}

func TestOperationTokenReachesOnlyItsInstance(t *testing.T) {
	t.Parallel()
	token := NewActor(Subject{Kind: KindOperation, TenantID: tenant1, ProjectID: project1, InstanceID: ins1}, nil,
		[]string{"task.run", "apps.instance.read", "apps.instance.delete"}, now)
	own := Object{TenantID: tenant1, ProjectID: project1, InstanceID: ins1}
	require.NoError(t, RequireOn(token, TaskRun, own))
	require.True(t, fault.Is(RequireOn(token, AppsInstanceDelete, own), fault.Forbidden), "above its ceiling")
	other := own
	other.InstanceID = ins2
	require.True(t, fault.Is(RequireOn(token, TaskRun, other), fault.NotFound))
	require.True(t, fault.Is(Require(token, TaskRun, tenant1, project1), fault.NotFound),
		"an object without an instance is out of reach")
	loose := NewActor(Subject{Kind: KindOperation, TenantID: tenant1, ProjectID: project1}, nil,
		[]string{"task.run"}, now)
	require.Error(t, Require(loose, TaskRun, tenant1, project1), "a token without an instance reaches nothing")
}

func TestNodeReachesOnlyItself(t *testing.T) {
	t.Parallel()
	node := NewActor(Subject{Kind: KindNode, NodeID: nod1}, nil, nil, now)
	require.NoError(t, RequireOn(node, TaskExecute, Object{TenantID: tenant1, ProjectID: project1, NodeID: nod1}))
	require.True(t, fault.Is(RequireOn(node, TaskExecute, Object{TenantID: tenant1, ProjectID: project1, NodeID: nod2}),
		fault.NotFound))
	require.Error(t, Require(node, NodeReport, "", ""))
	enrolment := NewActor(Subject{Kind: KindEnrolment}, nil, nil, now)
	require.NoError(t, Require(enrolment, NodeJoin, "", ""))
	require.Error(t, Require(enrolment, NodeReport, "", ""))
}

func TestRefusalTellsOnlyWhatTheActorMayKnow(t *testing.T) {
	t.Parallel()
	viewer := user(Binding{Role: ProjectViewer, TenantID: tenant1, ProjectID: project1})
	for name, c := range map[string]struct {
		err  error
		want fault.Code
	}{
		"no actor":                         {Require(nil, TenantRead, tenant1, ""), fault.Unauthenticated},
		"no actor anywhere":                {RequireAnywhere(nil, AppsCatalogRead), fault.Unauthenticated},
		"own project":                      {Require(viewer, AppsInstanceCreate, tenant1, project1), fault.Forbidden},
		"own tenant":                       {Require(viewer, ProjectCreate, tenant1, ""), fault.Forbidden},
		"sibling project":                  {Require(viewer, AppsInstanceRead, tenant1, project2), fault.NotFound},
		"another tenant":                   {Require(viewer, TenantRead, tenant2, ""), fault.NotFound},
		"another tenant's project":         {Require(viewer, ProjectRead, tenant2, project3), fault.NotFound},
		"own project under another tenant": {Require(viewer, AppsInstanceCreate, tenant2, project1), fault.Forbidden},
		"platform":                         {Require(viewer, TenantCreate, "", ""), fault.Forbidden},
		"a node of the platform":           {RequireOn(viewer, NodeRead, Object{NodeID: nod1}), fault.NotFound},
		"nowhere":                          {RequireAnywhere(viewer, ManifestPublish), fault.Forbidden},
		"any of several, in a project unseen": {RequireAny(viewer, Object{TenantID: tenant1, ProjectID: project2},
			FamilyKeys("instance.read")...), fault.NotFound},
		"any of several, in one's own project": {RequireAny(viewer, Object{TenantID: tenant1, ProjectID: project1},
			FamilyKeys("instance.create")...), fault.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.True(t, fault.Is(c.err, c.want), "got %v", c.err)
		})
	}
	require.ErrorContains(t, Require(viewer, AppsInstanceCreate, tenant1, project1), "apps.instance.create")
	require.NoError(t, RequireAnywhere(viewer, ManifestPublish, AppsCatalogRead))
	require.NoError(t, RequireAny(viewer, Object{TenantID: tenant1, ProjectID: project1},
		FamilyKeys("instance.read")...))
}

func TestReachListsWhereAKeyIsHeld(t *testing.T) {
	t.Parallel()
	actor := user(
		Binding{Role: ProjectViewer, TenantID: tenant1, ProjectID: project2},
		Binding{Role: ProjectAdmin, TenantID: tenant1, ProjectID: project1},
		Binding{Role: ProjectAdmin, TenantID: tenant2},
	)
	require.Equal(t, Reach{Tenants: []ids.ID{tenant2}, Projects: []ids.ID{project1, project2}},
		actor.Reach(AppsInstanceRead))
	require.Equal(t, Reach{Tenants: []ids.ID{tenant2}, Projects: []ids.ID{project1}}, actor.Reach(AppsInstanceCreate))
	require.Equal(t, Reach{Tenants: []ids.ID{tenant1, tenant2}, Projects: []ids.ID{project1, project2}}, actor.Reach())
	require.Equal(t, Reach{}, actor.Reach(TenantCreate))
	require.Equal(t, Reach{Platform: true}, user(Binding{Role: PlatformOperator}).Reach(AppsInstanceRead))
	require.Equal(t, Reach{}, (*Actor)(nil).Reach())
}

func TestNobodyGivesWhatTheyLack(t *testing.T) {
	t.Parallel()
	projectAdmin := user(Binding{Role: ProjectAdmin, TenantID: tenant1, ProjectID: project1})
	tenantAdmin := user(Binding{Role: TenantAdmin, TenantID: tenant1})
	operator := user(Binding{Role: PlatformOperator})
	require.NoError(t, RequireGrant(projectAdmin, ProjectMember, tenant1, project1))
	require.NoError(t, RequireGrant(tenantAdmin, TenantAdmin, tenant1, ""))
	require.NoError(t, RequireGrant(operator, TenantAdmin, tenant2, ""), "platform scope is the root of authority")
	require.True(t, fault.Is(RequireGrant(projectAdmin, TenantAdmin, tenant1, ""), fault.Forbidden))
	require.True(t, fault.Is(RequireGrant(projectAdmin, ProjectViewer, tenant1, project2), fault.NotFound))
	require.True(t, fault.Is(RequireGrant(tenantAdmin, PlatformOperator, "", ""), fault.Forbidden))
	require.True(t, fault.Is(RequireGrant(operator, PlatformOperator, tenant1, ""), fault.InvalidArgument))
	require.True(t, fault.Is(RequireGrant(operator, ceilingOperation, "", ""), fault.InvalidArgument))

	require.NoError(t, RequireDelegate(projectAdmin, []string{"apps.instance.create"}, tenant1, project1))
	require.NoError(t, RequireDelegate(operator, []string{"apps.instance.create"}, tenant1, project1))
	viewer := user(Binding{Role: ProjectViewer, TenantID: tenant1, ProjectID: project1})
	err := RequireDelegate(viewer, []string{"apps.instance.read", "apps.instance.create"}, tenant1, project1)
	require.ErrorContains(t, err, "apps.instance.create")
	require.True(t, fault.Is(err, fault.Forbidden))
	err = RequireDelegate(operator, []string{"apps.instance.read", "tenant.create"}, tenant1, project1)
	require.True(t, fault.Is(err, fault.InvalidArgument))
	require.ErrorContains(t, err, "permissionKeys.1")
	require.ErrorContains(t, RequireDelegate(operator, []string{"no.such"}, tenant1, project1), "permissionKeys.0")
}

func TestContextCarriesTheRequest(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	require.Equal(t, RequestInfo{}, Request(ctx))
	info := RequestInfo{CorrelationID: "c-1", Origin: "192.0.2.1"}
	ctx = WithRequest(ctx, info)
	require.Equal(t, info, Request(ctx))
}

func TestCorrelationIDsFromOutsideAreChecked(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "A-z_0.9", strings.Repeat("x", 64)} {
		require.True(t, ValidCorrelationID(good), good)
	}
	for _, bad := range []string{"", "a b", "a\nb", "é", "a/b", strings.Repeat("x", 65)} {
		require.False(t, ValidCorrelationID(bad), bad)
	}
}
