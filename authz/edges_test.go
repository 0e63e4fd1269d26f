package authz

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

// lacking are the permissions that a refusal names.
func lacking(t *testing.T, err error) (names []string) {
	t.Helper()
	require.True(t, fault.Is(err, fault.Forbidden), "%v", err)
	refused, _ := fault.As(err)
	for _, reason := range refused.Reasons {
		require.Equal(t, fault.PermissionMissing, reason.Code)
		names = append(names, reason.Message)
	}
	return names
}

// admin is a tenant's administrator until a moment; zero for ever.
func admin(ends time.Time) (*Actor, []Binding) {
	bindings := []Binding{{Role: TenantAdmin, TenantID: tenant1, ExpiresAt: ends}}
	return user(bindings...), bindings
}

func TestARoleIsGivenForNoLongerThanItsGiverHoldsIt(t *testing.T) {
	t.Parallel()
	never := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	ends := now.Add(time.Hour)
	for name, c := range map[string]struct {
		held, until time.Time
		ok          bool
	}{
		"for ever by who has it for ever": {time.Time{}, time.Time{}, true},
		"for a while by the same":         {time.Time{}, ends, true},
		"for ever by who has it a while":  {ends, time.Time{}, false},
		"as long":                         {ends, ends, true},
		"shorter":                         {ends, ends.Add(-time.Second), true},
		"a microsecond longer":            {ends, ends.Add(time.Microsecond), false},
		"longer":                          {ends, ends.Add(time.Hour), false},
		"until the last moment":           {never, time.Time{}, false},
		"beyond it":                       {never.Add(1), time.Time{}, true},
		"until beyond it":                 {never, never.Add(time.Hour), false},
	} {
		actor, bindings := admin(c.held)
		err := RequireGrantUntil(actor, bindings, ProjectViewer, tenant1, project1, c.until)
		if c.ok {
			require.NoError(t, err, name)
			continue
		}
		require.Equal(t, []string{BindingGrant.String()}, lacking(t, err), name)
		require.ErrorContains(t, err, "only for as long as you hold", name)
	}
	stranger, bindings := admin(time.Time{})
	err := RequireGrantUntil(stranger, bindings, ProjectViewer, tenant2, project3, time.Time{})
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
}

func TestACredentialThatIsNarrowedGivesNoMoreThanItHolds(t *testing.T) {
	t.Parallel()
	narrow := NewActor(Subject{Kind: KindUser, ID: "usr_1"}, []Binding{{Role: TenantAdmin, TenantID: tenant1}},
		[]string{BindingGrant.String(), TenantRead.String(), "no.such.key"}, now)
	names := lacking(t, RequireGrant(narrow, ProjectViewer, tenant1, project1))
	require.Contains(t, names, AppsInstanceRead.String())
	require.NotContains(t, names, TenantRead.String())
}

func TestAMachineWithoutAProjectHoldsNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{KindServiceAccount, KindOperation} {
		adrift := NewActor(Subject{Kind: kind, ID: "x", TenantID: tenant1, InstanceID: ins1}, nil,
			[]string{AppsInstanceRead.String(), TaskRun.String()}, now)
		require.Empty(t, adrift.Reach())
		for _, key := range Keys() {
			require.False(t, adrift.Allows(key, tenant1, project1) || adrift.Allows(key, tenant1,
				"") || adrift.AllowsAnywhere(key), "%s", key)
		}
	}
}

func TestAnActorIsReadAgainWhenItsFirstRightEnds(t *testing.T) {
	t.Parallel()
	first, second := now.Add(time.Hour), now.Add(2*time.Hour)
	binding := func(ends time.Time) Binding { return Binding{Role: TenantAdmin, TenantID: tenant1, ExpiresAt: ends} }
	for name, c := range map[string]struct {
		credential time.Time
		bindings   []Binding
		want       time.Time
	}{
		"never":          {time.Time{}, []Binding{binding(time.Time{})}, time.Time{}},
		"the credential": {first, []Binding{binding(time.Time{}), binding(second)}, first},
		"a binding": {second, []Binding{binding(time.Time{}), binding(first),
			binding(time.Time{})}, first},
		"the first of two bindings": {time.Time{}, []Binding{binding(second), binding(first), binding(second)}, first},
		"not one that has ended":    {second, []Binding{binding(now)}, second},
	} {
		actor := NewActor(Subject{Kind: KindUser, ID: "usr_1", ExpiresAt: c.credential}, c.bindings, nil, now)
		require.Equal(t, c.want, actor.RefreshAt(), name)
	}
}

func TestAnUnknownNameAddsNoKey(t *testing.T) {
	t.Parallel()
	require.True(t, named([]string{"no.such.key"}).Empty())
	for _, key := range Keys() {
		require.Equal(t, MaskOf(key), named([]string{key.String(), "no.such.key"}), "%s", key)
	}
	full := Mask{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	require.False(t, full.Has(0), "the zero key is never held")
	require.True(t, full.Has(1))
	beyond := Key(len(catalogue)) //#nosec G115 -- fewer than 256
	require.Equal(t, []string{"none", ""}, []string{beyond.String(), beyond.Description()})
	require.Equal(t, []string{"none", ""}, []string{Key(0).String(), Key(0).Family()})
	require.Equal(t, []string{"scheduler", "apps", ""},
		[]string{SchedulerQueueRead.Family(), AppsInstanceRead.Family(), TenantRead.Family()})
	require.Len(t, Keys(), len(catalogue)-1)
}

func TestEqualSetsOfKeysAreKeptOnce(t *testing.T) {
	t.Parallel()
	g := newGrants(2)
	g.add(tenant1, MaskOf(TenantRead))
	g.add(tenant2, MaskOf(TenantRead))
	require.Len(t, g.sets, 1)
	g.add(tenant2, MaskOf(ProjectRead))
	require.Equal(t, MaskOf(TenantRead), g.of(tenant1))
	require.Equal(t, MaskOf(TenantRead, ProjectRead), g.of(tenant2))
}

func TestEveryLetterOfACorrelationIDIsTaken(t *testing.T) {
	t.Parallel()
	const taken = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	for c := range 256 {
		id := string([]byte{byte(c)})
		require.Equal(t, strings.Contains(taken, id), ValidCorrelationID(id), "%q", id)
	}
	require.True(t, ValidCorrelationID(taken[:64]))
	require.False(t, ValidCorrelationID(taken))
}

func TestARefusalNamesEveryKeyThatWouldDo(t *testing.T) {
	t.Parallel()
	viewer := user(Binding{Role: ProjectViewer, TenantID: tenant1, ProjectID: project1})
	here := Object{TenantID: tenant1, ProjectID: project1}
	keys := []Key{AppsInstanceCreate, SchedulerInstanceCreate}
	err := RequireAny(viewer, here, keys...)
	require.Equal(t, []string{"apps.instance.create", "scheduler.instance.create"}, lacking(t, err))
	require.ErrorContains(t, err, "the permission apps.instance.create or scheduler.instance.create is needed")
	require.Equal(t, []string{"apps.instance.create"}, lacking(t,
		Require(viewer, AppsInstanceCreate, tenant1, project1)))
	require.ErrorContains(t, Require(viewer, AppsInstanceCreate, tenant1, project1),
		"the permission apps.instance.create is needed")
	require.True(t, fault.Is(RequireAny(viewer, Object{TenantID: tenant2, ProjectID: project3}, keys...),
		fault.NotFound))
	require.NoError(t, RequireAny(viewer, here, AppsInstanceCreate, AppsInstanceRead))
	require.True(t, (*Actor)(nil).Holds(tenant1, project1).Empty())
}

func TestOnlyAnAccountWithLimitsIsToldOfThem(t *testing.T) {
	t.Parallel()
	here := Object{TenantID: tenant1, ProjectID: project1}
	require.Equal(t, []string{"apps.instance.delete"}, lacking(t,
		RequireOn(limited(Limits{}), AppsInstanceDelete, here)))
	err := RequireOn(limited(Limits{Objects: []ids.ID{ins1}}), AppsInstanceCreate, here)
	refused, _ := fault.As(err)
	require.Equal(t, []fault.Reason{{Code: fault.AccountLimit, Message: "limits.objectIds"}}, refused.Reasons)
}

func TestAPolicyIsReadWithoutItsComments(t *testing.T) {
	t.Parallel()
	require.Equal(t, "p, a, b\ng, c, d", withoutComments("# one\n\n  p, a, b  \n\t# two\n \ng, c, d\n"))
}
