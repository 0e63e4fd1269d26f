package described_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/service/catalog/described"
)

// whole is what an adapter describes that keeps every promise of promised. It runs any app with less.
const whole = `{"build": "b1", "contractVersions": ["1.1"], "apps": [
	{"slug": "*", "components": [{"key": "worker", "min": 1, "max": 2}]},
	{"slug": "demo",
		"components": [{"key": "head", "min": 1, "max": 1}, {"key": "worker", "min": 0, "max": 8}],
		"actions": [
			{"name": "queue.read", "permissionKey": "apps.queue.read", "risk": "read"},
			{"name": "queue.submit", "permissionKey": "apps.queue.submit", "risk": "write"},
			{"name": "queue.cancel", "permissionKey": "apps.queue.cancel", "risk": "destructive"}]},
	{"slug": "other", "components": [{"key": "head", "min": 1, "max": 3}]}]}`

func parse(t *testing.T, document string) *described.Description {
	t.Helper()
	var out described.Description
	require.NoError(t, json.Unmarshal([]byte(document), &out))
	return &out
}

// promised uses all that whole offers of its app, up to the bounds.
func promised() *manifest.Manifest {
	return &manifest.Manifest{App: "demo",
		Components: []manifest.Component{{Key: "head", Min: 1, Max: 1}, {Key: "worker", Min: 0, Max: 8}},
		Actions: []manifest.Action{{Name: "queue.read", PermissionKey: "apps.queue.read", Risk: "read"},
			{Name: "queue.submit", PermissionKey: "apps.queue.submit", Risk: "write"},
			{Name: "queue.cancel", PermissionKey: "apps.queue.cancel", Risk: "destructive"}}}
}

func TestAManifestWithinTheDescriptionHasNoFindings(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*manifest.Manifest){
		"all of it":     func(*manifest.Manifest) {},
		"bounds within": func(m *manifest.Manifest) { m.Components[1].Min, m.Components[1].Max = 1, 7 },
		"parts of it":   func(m *manifest.Manifest) { m.Components, m.Actions = m.Components[1:], m.Actions[1:2] },
		"nothing of it": func(m *manifest.Manifest) { m.Components, m.Actions = nil, nil },
		// a caller that is more careful than the adapter needs does no harm
		"graver risks": func(m *manifest.Manifest) {
			m.Actions[0].Risk, m.Actions[1].Risk = "write", "destructive"
		},
	} {
		m := promised()
		change(m)
		require.Empty(t, parse(t, whole).Findings(m), name)
	}
}

func TestEachPromiseBeyondTheDescriptionIsFoundWithItsPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*manifest.Manifest)
		want   fault.Reason
	}{
		{"a component that it does not have", func(m *manifest.Manifest) { m.Components[1].Key = "database" },
			fault.Reason{Code: fault.UnknownComponent, Path: "components.1.key",
				Message: `the adapter has no component "database"`}},
		{"one member more", func(m *manifest.Manifest) { m.Components[1].Max = 9 },
			fault.Reason{Code: fault.CountOutOfBounds, Path: "components.1",
				Message: "the adapter accepts 0 to 8 members"}},
		{"one member fewer", func(m *manifest.Manifest) { m.Components[0].Min = 0 },
			fault.Reason{Code: fault.CountOutOfBounds, Path: "components.0",
				Message: "the adapter accepts 1 to 1 members"}},
		{"an action that it does not have", func(m *manifest.Manifest) { m.Actions[2].Name = "queue.drop" },
			fault.Reason{Code: fault.UnknownValue, Path: "actions.2.name",
				Message: `the adapter has no action "queue.drop"`}},
		{"another permission", func(m *manifest.Manifest) { m.Actions[1].PermissionKey = "apps.queue.read" },
			fault.Reason{Code: fault.BadValue, Path: "actions.1.permissionKey",
				Message: "the adapter requires apps.queue.submit"}},
		{"reading where something changes", func(m *manifest.Manifest) { m.Actions[1].Risk = "read" },
			fault.Reason{Code: fault.BadValue, Path: "actions.1.risk", Message: "the adapter declares the risk write"}},
		{"writing where work can be lost", func(m *manifest.Manifest) { m.Actions[2].Risk = "write" },
			fault.Reason{Code: fault.BadValue, Path: "actions.2.risk",
				Message: "the adapter declares the risk destructive"}},
		{"a risk that there is not", func(m *manifest.Manifest) { m.Actions[0].Risk = "none" },
			fault.Reason{Code: fault.BadValue, Path: "actions.0.risk", Message: "the adapter declares the risk read"}},
	} {
		m := promised()
		c.change(m)
		require.Equal(t, []fault.Reason{c.want}, parse(t, whole).Findings(m), c.name)
	}
}

// A publisher corrects everything at once, and does not learn of the next finding at the next attempt.
func TestEveryFindingIsReturnedInTheOrderOfTheManifest(t *testing.T) {
	t.Parallel()
	m := promised()
	m.Components[0].Max, m.Components[1].Key = 2, "database"
	m.Actions[0].Name, m.Actions[2].Risk = "queue.drop", "read"
	said := parse(t, whole)
	said.ContractVersions = nil
	var paths []string
	for _, reason := range said.Findings(m) {
		paths = append(paths, reason.Path)
	}
	require.Equal(t, []string{"adapter", "components.0", "components.1.key", "actions.0.name", "actions.2.risk"}, paths)
}

func TestVersionOneOfTheContractIsRequiredInAnyMinorVersion(t *testing.T) {
	t.Parallel()
	missing := []fault.Reason{{Code: fault.UnknownValue, Path: "adapter",
		Message: "the adapter does not support version 1 of the contract"}}
	for _, c := range []struct {
		versions []string
		want     []fault.Reason
	}{
		{[]string{"1"}, nil},
		{[]string{"1.0"}, nil},
		{[]string{"2.0", "1.12"}, nil},
		{[]string{"2.0"}, missing},
		{[]string{"10.1", "11", "0.1"}, missing}, // they only begin or end with the digit
		{[]string{""}, missing},
		{nil, missing},
	} {
		said := parse(t, whole)
		said.ContractVersions = c.versions
		require.Equal(t, c.want, said.Findings(promised()), "%q", c.versions)
	}
}

func TestAnAppIsCheckedAgainstItsOwnEntryOrElseThatOfAnyApp(t *testing.T) {
	t.Parallel()
	const (
		own   = `{"slug": "demo", "components": [{"key": "worker", "min": 0, "max": 8}]}`
		every = `{"slug": "*", "components": [{"key": "worker", "min": 0, "max": 2}]}`
		other = `{"slug": "other", "components": [{"key": "worker", "min": 0, "max": 1}]}`
	)
	for _, c := range []struct{ name, apps, want string }{
		{"its own", own, ""},
		{"its own before any", own + "," + every, ""},
		{"its own after any", every + "," + own, ""},
		{"any, not another's", other + "," + every, "the adapter accepts 0 to 2 members"},
		{"any before another's", every + "," + other, "the adapter accepts 0 to 2 members"},
		{"another's alone", other, "the adapter does not run this app"},
		{"none", "", "the adapter does not run this app"},
	} {
		said := parse(t, `{"contractVersions": ["1.0"], "apps": [`+c.apps+`]}`)
		found := said.Findings(&manifest.Manifest{App: "demo",
			Components: []manifest.Component{{Key: "worker", Min: 0, Max: 8}}})
		if c.want == "" {
			require.Empty(t, found, c.name)
			continue
		}
		require.Len(t, found, 1, c.name)
		require.Equal(t, c.want, found[0].Message, c.name)
	}
}

// An app that the adapter does not run has no components or actions to compare, and one finding states it.
func TestAnAppThatTheAdapterDoesNotRunIsOneFinding(t *testing.T) {
	t.Parallel()
	require.Equal(t, []fault.Reason{{Code: fault.UnknownValue, Path: "app",
		Message: "the adapter does not run this app"}}, parse(t, `{"contractVersions": ["1.0"]}`).Findings(promised()))
}

// An adapter that names an app was written for it, and runs with the platform's trust; one of any app does not.
func TestAnAdapterNamesTheAppsThatItDescribesByTheirSlugs(t *testing.T) {
	t.Parallel()
	said := parse(t, whole)
	require.True(t, said.Names("demo"))
	require.True(t, said.Names("other"))
	require.False(t, said.Names("another"))
	require.False(t, parse(t, `{"apps": [{"slug": "*"}]}`).Names("demo"))
	require.False(t, parse(t, `{}`).Names("demo"))
}
