package authz

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
)

// What rests on a person's rights, as a service account does, can do no more than the person could give now.
func TestAMakerVouchesForWhatTheMakerCouldGive(t *testing.T) {
	t.Parallel()
	names := []string{"apps.instance.read", "apps.instance.create", "no.such.key", "project.read"}
	viewer := Binding{Role: ProjectViewer, TenantID: tenant1, ProjectID: project1}
	for name, c := range map[string]struct {
		maker   *Actor
		project ids.ID
		want    []string
	}{
		"who may give any role":      {user(Binding{Role: PlatformOperator}), project1, names},
		"who holds some of them":     {user(viewer), project1, []string{"apps.instance.read", "project.read"}},
		"who holds them elsewhere":   {user(viewer), project2, []string{}},
		"who holds nothing any more": {user(), project1, []string{}},
		"who holds all that are keys": {user(Binding{Role: TenantAdmin, TenantID: tenant1}), project1,
			[]string{"apps.instance.read", "apps.instance.create", "project.read"}},
	} {
		require.Equal(t, c.want, Vouched(c.maker, names, tenant1, c.project), name)
	}
	require.Equal(t, "no.such.key", names[2], "the list itself stays")
}

func TestARightLastsUntilTheBindingEndsWithoutWhichItIsNotHeld(t *testing.T) {
	t.Parallel()
	first, second := now.Add(time.Hour), now.Add(2*time.Hour)
	binding := func(role Role, ends time.Time) Binding {
		return Binding{Role: role, TenantID: tenant1, ProjectID: project1, ExpiresAt: ends}
	}
	can := func(keys ...Key) func(*Actor) bool {
		return func(a *Actor) bool {
			for _, key := range keys {
				if !a.Allows(key, tenant1, project1) {
					return false
				}
			}
			return true
		}
	}
	for name, c := range map[string]struct {
		bindings []Binding
		can      func(*Actor) bool
		want     time.Time
	}{
		"for ever":           {[]Binding{binding(ProjectViewer, time.Time{})}, can(AppsInstanceRead), time.Time{}},
		"until the one ends": {[]Binding{binding(ProjectViewer, first)}, can(AppsInstanceRead), first},
		"until the last of two ends": {[]Binding{binding(ProjectViewer, second), binding(ProjectAdmin, first)},
			can(AppsInstanceRead), second},
		"until the first of two ends": {[]Binding{binding(ProjectViewer, second), binding(ProjectAdmin, first)},
			can(AppsInstanceRead, AppsInstanceCreate), first},
		"for ever by another": {[]Binding{binding(ProjectViewer, first), binding(ProjectAdmin, time.Time{})},
			can(AppsInstanceRead), time.Time{}},
		"not counting what ended": {[]Binding{binding(ProjectAdmin, now), binding(ProjectAdmin, now.Add(-time.Hour)),
			binding(ProjectViewer, second)}, can(AppsInstanceRead), second},
	} {
		require.Equal(t, c.want, Lasts(Subject{Kind: KindUser, ID: "usr_1"}, c.bindings, now, c.can), name)
	}
}
