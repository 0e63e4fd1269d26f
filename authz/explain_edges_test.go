package authz

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// messages are what an explanation says is missing.
func messages(v Verdict) (said []string) {
	for _, ground := range v.Missing {
		said = append(said, ground.Message)
	}
	return said
}

func TestWhatCouldBeHeldIsNamedByItsScopes(t *testing.T) {
	t.Parallel()
	person, staff := Subject{Kind: KindUser, ID: "usr_1", TenantID: tenant1}, Subject{Kind: KindUser, ID: "usr_2"}
	inProject, inTenant := " in project "+string(project1)+" would give it",
		" in tenant "+string(tenant1)+" would give it"
	require.Equal(t, []string{"project_admin" + inProject, "project_admin" + inTenant, "tenant_admin" + inTenant},
		messages(Explain(Case{Subject: person, Key: AppsInstanceCreate,
			Object: Object{TenantID: tenant1, ProjectID: project1}, Now: now})))
	require.Equal(t, []string{"tenant_admin" + inTenant},
		messages(Explain(Case{Subject: person, Key: ProjectCreate, Object: Object{TenantID: tenant1}, Now: now})))
	require.Equal(t, []string{"platform_operator at the platform would give it"},
		messages(Explain(Case{Subject: staff, Key: TenantCreate, Now: now})))
}

func TestAProjectsBindingShowsItsTenantAndNothingElseOfIt(t *testing.T) {
	t.Parallel()
	binding := Binding{Role: ProjectAdmin, TenantID: tenant1, ProjectID: project1}
	person := Subject{Kind: KindUser, ID: "usr_1", TenantID: tenant1}
	for _, c := range []struct {
		key    Key
		object Object
		want   bool
	}{
		{TenantRead, Object{TenantID: tenant1}, true}, {TenantRead, Object{TenantID: tenant2}, false},
		{TenantRead, Object{TenantID: tenant1, ProjectID: project2}, false},
		{ProjectRead, Object{TenantID: tenant1}, false},
		{ProjectRead, Object{TenantID: tenant1, ProjectID: project1}, true}, {TenantRead, Object{}, false},
	} {
		said := Explain(Case{Subject: person, Key: c.key, Object: c.object, Now: now,
			Holdings: []Holding{{ID: "rb_1", Binding: binding}}})
		require.Equal(t, c.want, said.Allowed(), "%s on %v", c.key, c.object)
		require.Equal(t, c.want, user(binding).AllowsOn(c.key, c.object), "the decision itself: %s on %v",
			c.key, c.object)
		require.Equal(t, c.want, len(said.Missing) == 0)
	}
}

func TestABindingThatMakesNoSenseGivesNothing(t *testing.T) {
	t.Parallel()
	here := Object{TenantID: tenant1, ProjectID: project1}
	for name, binding := range map[string]Binding{
		"a role at a scope that it has not": {Role: PlatformOperator, TenantID: tenant1},
		"of another project":                {Role: ProjectAdmin, TenantID: tenant1, ProjectID: project2},
		"of a role without the key":         {Role: ProjectViewer, TenantID: tenant1, ProjectID: project1},
	} {
		for _, h := range []Holding{{ID: "rb_1", Binding: binding}, {ID: "rb_1", Binding: binding, RevokedAt: now}} {
			said := Explain(Case{Subject: Subject{Kind: KindUser, ID: "usr_1", TenantID: tenant1},
				Key: AppsInstanceCreate, Object: here,
				Now: now, Holdings: []Holding{h}})
			require.False(t, said.Allowed(), name)
			require.Empty(t, said.Missing[0].ID, "%s: it never gave it", name)
		}
	}
}

func TestOneBindingThatHoldsIsEnoughAndNothingIsMissing(t *testing.T) {
	t.Parallel()
	binding := Binding{Role: ProjectAdmin, TenantID: tenant1, ProjectID: project1}
	said := Explain(Case{Subject: Subject{Kind: KindUser, ID: "usr_1", TenantID: tenant1}, Key: AppsInstanceCreate,
		Now:    now,
		Object: Object{TenantID: tenant1, ProjectID: project1}, Holdings: []Holding{
			{ID: "rb_1", Binding: binding}, {ID: "rb_2", Binding: binding, RevokedAt: now.Add(-time.Hour)},
		}})
	require.True(t, said.Allowed())
	require.Len(t, said.Because, 1)
	require.Equal(t, "project_admin in project "+string(project1)+" gives it", said.Because[0].Message)
	require.Empty(t, said.Missing)
}

func TestTenBindingsThatEndedLeaveRoomForWhatCouldBe(t *testing.T) {
	t.Parallel()
	c := Case{Subject: Subject{Kind: KindUser, ID: "usr_1", TenantID: tenant1}, Key: AppsInstanceRead, Now: now,
		Object: Object{TenantID: tenant1, ProjectID: project1}}
	for i := range 15 {
		c.Holdings = append(c.Holdings, Holding{ID: ids.ID(fmt.Sprintf("rb_%02d", i)), RevokedAt: now,
			Binding: Binding{Role: ProjectAdmin, TenantID: tenant1, ProjectID: project1}})
	}
	said := Explain(c)
	for i := range 10 {
		require.Equal(t, ids.ID(fmt.Sprintf("rb_%02d", 14-i)), said.Missing[i].ID)
	}
	require.Empty(t, said.Missing[10].ID, "what nobody has given yet")
	require.LessOrEqual(t, len(said.Missing), 20)
}

func TestAMachineAnywhereIsNotHeldToItsObjects(t *testing.T) {
	t.Parallel()
	account := Subject{Kind: KindServiceAccount, ID: "sa_1", TenantID: tenant1, ProjectID: project1,
		Limits: Limits{Objects: []ids.ID{ins2}}}
	read := []string{AppsCatalogRead.String()}
	require.True(t, Explain(Case{Subject: account, Key: AppsCatalogRead, Allow: read, Anywhere: true,
		Now: now}).Allowed())
	here := Object{TenantID: tenant1, ProjectID: project1, InstanceID: ins1}
	require.False(t, Explain(Case{Subject: account, Key: AppsCatalogRead, Allow: read, Object: here,
		Now: now}).Allowed())
	account.Limits = Limits{}
	require.True(t, Explain(Case{Subject: account, Key: AppsCatalogRead, Allow: read, Object: here,
		Now: now}).Allowed())
	node := Subject{Kind: KindNode, ID: nod1, NodeID: nod1}
	require.True(t, Explain(Case{Subject: node, Key: TaskExecute, Anywhere: true, Now: now}).Allowed())
	require.True(t, Explain(Case{Subject: node, Key: TaskExecute, Object: Object{NodeID: nod1}, Now: now}).Allowed())
	system := Explain(Case{Subject: Subject{Kind: KindSystem, ID: "system"}, Now: now})
	require.Equal(t, []string{"it is not a permission"}, messages(system))
	require.True(t, Explain(Case{Subject: Subject{Kind: KindSystem, ID: "system"}, Key: TenantCreate,
		Now: now}).Allowed())
}

func TestTheReasonForAnAccountsRightStatesItsOtherLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits Limits
		risk   lifecycle.ActionRisk
		want   string
	}{
		"none":                 {Limits{}, "", ""},
		"none, for an action":  {Limits{}, "DESTRUCTIVE", ""},
		"a risk, another verb": {Limits{MaxRisk: "READ"}, "", "; of app actions, those of risk up to READ"},
		"a risk that is met":   {Limits{MaxRisk: "READ"}, "READ", "; of app actions, those of risk up to READ"},
		"the lowest rate":      {Limits{OperationsPerHour: 1}, "", "; at most 1 operations an hour"},
		"both": {Limits{MaxRisk: "WRITE", OperationsPerHour: 7}, "READ",
			"; of app actions, those of risk up to WRITE; at most 7 operations an hour"},
	} {
		said := Explain(Case{Subject: Subject{Kind: KindServiceAccount, ID: "sa_1", TenantID: tenant1,
			ProjectID: project1, Limits: c.limits}, Key: AppsInstanceRead, Allow: []string{"apps.instance.read"},
			Risk: c.risk, Object: Object{TenantID: tenant1, ProjectID: project1}, Now: now})
		require.True(t, said.Allowed(), name)
		require.Equal(t, "apps.instance.read is on the service account's allow-list"+c.want, said.Because[0].Message,
			name)
	}
}
