package authz

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// limited is a service account of project1 that may read instances and allocations and launch, within limits.
func limited(limits Limits) *Actor {
	return NewActor(Subject{Kind: KindServiceAccount, ID: "sa_1", TenantID: tenant1, ProjectID: project1,
		Limits: limits},
		nil,
		[]string{"apps.instance.read", "apps.instance.create", "allocation.read", "project.read"}, now)
}

func TestAnAccountThatIsLimitedToObjectsReachesNothingElse(t *testing.T) {
	t.Parallel()
	mine, other, allocation := ids.New(ids.Instance), ids.New(ids.Instance), ids.New(ids.Allocation)
	account := limited(Limits{Objects: []ids.ID{mine, allocation}})
	in := func(object Object) Object { object.TenantID, object.ProjectID = tenant1, project1; return object }
	require.NoError(t, RequireOn(account, AppsInstanceRead, in(Object{InstanceID: mine})))
	require.NoError(t, RequireOn(account, AllocationRead, in(Object{AllocationID: allocation})))
	require.NoError(t, RequireOn(account, AllocationRead,
		in(Object{AllocationID: ids.New(ids.Allocation), InstanceID: mine})),
		"what serves a listed instance is its part")
	for what, object := range map[string]Object{
		"another instance": {InstanceID: other}, "another allocation": {AllocationID: ids.New(ids.Allocation)},
		"a node's task elsewhere": {InstanceID: other, NodeID: nod1},
	} {
		require.True(t, fault.Is(RequireOn(account, AppsInstanceRead, in(object)), fault.NotFound), what)
	}
	err := RequireOn(account, AppsInstanceCreate, in(Object{}))
	require.True(t, fault.Is(err, fault.Forbidden), "a launch is of the project: %v", err)
	refused, _ := fault.As(err)
	require.Equal(t, fault.AccountLimit, refused.Reasons[0].Code)
	require.True(t, fault.Is(RequireOn(account, AppsInstanceCreate, Object{TenantID: tenant1, ProjectID: project2}),
		fault.NotFound))
	require.NoError(t, RequireOn(limited(Limits{}), AppsInstanceCreate, in(Object{})), "no list, no bound")
}

func TestAnAccountsHighestRiskBindsActions(t *testing.T) {
	t.Parallel()
	for most, allowed := range map[lifecycle.ActionRisk]int{"": 3, lifecycle.RiskRead: 1, lifecycle.RiskWrite: 2,
		lifecycle.RiskDestructive: 3} {
		account := limited(Limits{MaxRisk: most})
		for i, risk := range risks {
			err := account.RequireRisk(risk)
			require.Equal(t, i < allowed, err == nil, "%s below %q", risk, most)
			if err != nil {
				refused, _ := fault.As(err)
				require.Equal(t, fault.AccountLimit, refused.Reasons[0].Code)
			}
		}
	}
	require.Error(t, limited(Limits{MaxRisk: lifecycle.RiskDestructive}).RequireRisk("NOVEL"),
		"what is not known is not harmless")
}

func TestChangesOfLimitsWidenOrNarrow(t *testing.T) {
	t.Parallel()
	const a, b = ids.ID("ins_a"), ids.ID("ins_b")
	for name, c := range map[string]struct {
		was, is         Limits
		wider, narrower []string
	}{
		"nothing": {Limits{}, Limits{}, nil, nil},
		"the same": {Limits{Objects: []ids.ID{a, b}, MaxRisk: "WRITE", OperationsPerHour: 2},
			Limits{Objects: []ids.ID{b, a}, MaxRisk: "WRITE", OperationsPerHour: 2}, nil, nil},
		"all are lifted": {Limits{Objects: []ids.ID{a}, MaxRisk: "DESTRUCTIVE", OperationsPerHour: 2}, Limits{},
			[]string{"objectIds", "maxRisk", "operationsPerHour"}, nil},
		"all are set": {Limits{}, Limits{Objects: []ids.ID{a}, MaxRisk: "DESTRUCTIVE", OperationsPerHour: 2}, nil,
			[]string{"objectIds", "maxRisk", "operationsPerHour"}},
		"one more object":  {Limits{Objects: []ids.ID{a}}, Limits{Objects: []ids.ID{a, b}}, []string{"objectIds"}, nil},
		"one object fewer": {Limits{Objects: []ids.ID{a, b}}, Limits{Objects: []ids.ID{a}}, nil, []string{"objectIds"}},
		"another object": {Limits{Objects: []ids.ID{a}}, Limits{Objects: []ids.ID{b}}, []string{"objectIds"},
			[]string{"objectIds"}},
		"risk and rate apart": {Limits{MaxRisk: "READ", OperationsPerHour: 3},
			Limits{MaxRisk: "WRITE", OperationsPerHour: 2}, []string{"maxRisk"}, []string{"operationsPerHour"}},
	} {
		wider, narrower := c.was.Compare(c.is)
		require.Equal(t, c.wider, wider, name)
		require.Equal(t, c.narrower, narrower, name)
	}
}

func TestATokenForOneInstanceIsWithinTheAccountsLimits(t *testing.T) {
	t.Parallel()
	allocation := ids.New(ids.Allocation)
	for name, c := range map[string]struct{ objects, want []ids.ID }{
		"of an account without a list":   {nil, []ids.ID{ins1}},
		"of the one that is listed":      {[]ids.ID{ins1}, []ids.ID{ins1}},
		"with the allocations, not more": {[]ids.ID{ins2, allocation, ins1}, []ids.ID{ins1, allocation}},
		"of another than is listed":      {[]ids.ID{ins2}, nil},
		"of another than are listed":     {[]ids.ID{ins2, allocation}, nil},
	} {
		account := Limits{Objects: c.objects, MaxRisk: lifecycle.RiskWrite, OperationsPerHour: 3}
		got, ok := account.Within(ins1)
		require.Equal(t, c.want != nil, ok, name)
		if !ok {
			require.Empty(t, got, name)
			continue
		}
		account.Objects = c.want
		require.Equal(t, account, got, "%s: risk and rate stay", name)
	}
}
