package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/money"
)

// at is a level with a document.
func at(t *testing.T, scope lifecycle.PolicyScope, text string) Level {
	t.Helper()
	document, err := Parse(scope, []byte(text))
	require.NoError(t, err)
	id := ids.New(ids.PolicyOverlay)
	return Level{Scope: scope, OverlayID: &id, Document: document}
}

func platform(t *testing.T, text string) *Effective {
	t.Helper()
	return Merge(at(t, lifecycle.PolicyPlatform, text))
}

func TestADocumentIsReadStrictly(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("a", 201) + `"`
	many := func(n int) string {
		words := make([]string, n)
		for i := range words {
			words[i] = fmt.Sprintf(`"r%d"`, i)
		}
		return "[" + strings.Join(words, ",") + "]"
	}
	for text, path := range map[string]string{
		``: "", `[]`: "", `null`: "", `{`: "", `{} {}`: "", `"x"`: "",
		`{"region":{}}`:                                                          "region",
		`{"regions":{"allows":[]}}`:                                              "regions.allows",
		`{"regions":[]}`:                                                         "regions",
		`{"regions":{"allow":null}}`:                                             "regions.allow",
		`{"regions":{"allow":["eu 1"]}}`:                                         "regions.allow.0",
		`{"regions":{"deny":["a1","a1"]}}`:                                       "regions.deny.1",
		`{"regions":{"deny":["a1",{"x":[1]}]}}`:                                  "regions.deny.1",
		`{"regions":{},"regions":{}}`:                                            "regions",
		`{"regions":{"allow":` + many(501) + `}}`:                                "regions.allow",
		`{"skus":{"allow":[` + long + `]}}`:                                      "skus.allow.0",
		`{"artifactSources":{"allow":["https://x"]}}`:                            "artifactSources.allow.0",
		`{"artifactSources":{"allow":["h/a/"]}}`:                                 "artifactSources.allow.0",
		`{"artifactSources":{"deny":["H.example","h.example."]}}`:                "artifactSources.deny.1",
		`{"apps":{"allow":["Hello"]}}`:                                           "apps.allow.0",
		`{"versions":{"allow":["hello"]}}`:                                       "versions.allow.0",
		`{"versions":{"allow":["hello@latest"]}}`:                                "versions.allow.0",
		`{"versions":{"allow":["hello@>=01"]}}`:                                  "versions.allow.0",
		`{"operatingModes":{"allow":["MINE"]}}`:                                  "operatingModes.allow.0",
		`{"controlPlaneScopes":{"deny":["x"]}}`:                                  "controlPlaneScopes.deny.0",
		`{"secretPurposes":{"allow":["A b"]}}`:                                   "secretPurposes.allow.0",
		`{"storageClasses":{"allow":["Fast_1"]}}`:                                "storageClasses.allow.0",
		`{"maxVolumeGiB":-1}`:                                                    "maxVolumeGiB",
		`{"maxGpus":-1}`:                                                         "maxGpus",
		`{"maxGpus":1.5}`:                                                        "maxGpus",
		`{"maxGpus":"4"}`:                                                        "maxGpus",
		`{"maxGpus":{"x":1}}`:                                                    "maxGpus",
		`{"maxMembers":1000000001}`:                                              "maxMembers",
		`{"maxHourlyCost":{"currency":"EUR"}}`:                                   "maxHourlyCost.amountMicros",
		`{"maxHourlyCost":{"amountMicros":1,"currency":"euro"}}`:                 "maxHourlyCost.currency",
		`{"maxHourlyCost":{"amountMicros":1,"currency":"EUR","per":"h"}}`:        "maxHourlyCost.per",
		`{"final":{"maxGpus":1}}`:                                                "final.maxGpus",
		`{"final":{"regions":{"deny":[]}}}`:                                      "final.regions",
		`{"regions":{"allow":["a1"]},"x":"` + strings.Repeat("y", 66_000) + `"}`: "",
	} {
		_, err := Parse(lifecycle.PolicyPlatform, []byte(text))
		require.True(t, fault.Is(err, fault.InvalidArgument), "%.80s: %v", text, err)
		require.Equal(t, path, fault.From(err).Reasons[0].Path, "%.80s", text)
	}
	_, err := Parse(lifecycle.PolicyTenant, []byte(`{"final":{"regions":["a1"]}}`))
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
	_, err = Parse(lifecycle.PolicyPlatform, []byte(`{"regions":{"allow":`+many(500)+`}}`))
	require.NoError(t, err)
}

func TestSpacesBetweenTheWordsDoNotCount(t *testing.T) {
	t.Parallel()
	words := make([]string, 0, 500)
	for i := range 500 {
		words = append(words, strings.Repeat("a", 58)+fmt.Sprintf("%04d", i))
	}
	full := map[string]any{"regions": map[string]any{"allow": words}, "skus": map[string]any{"deny": words[:490]}}
	text, err := json.MarshalIndent(full, "", "  ")
	require.NoError(t, err)
	require.Greater(t, len(text), MaxDocument)
	_, err = Parse(lifecycle.PolicyTenant, text)
	require.NoError(t, err)
}

func TestWithoutOverlaysTheDefaultsHold(t *testing.T) {
	t.Parallel()
	e := Merge()
	require.NoError(t, Join(e.Region("x1", ""), e.SKU("x1", ""), e.App("hello", ""), e.Version("hello", "1.0.0", ""),
		e.Source("r.example/a@sha256:0", ""),
		e.Purpose("artifact_pull"), e.Mode(lifecycle.ModeTenantDedicated, lifecycle.ControlPlaneTenant, ""),
		e.Members(1e6, ""), e.GPUs(1e6, "")))
	require.False(t, e.Counts())
	denied(t, e.Mode(lifecycle.ModePlatformManaged, lifecycle.ControlPlaneProject, "input.operatingMode"),
		fault.ModeDenied, "input.operatingMode")
	denied(t, e.Purpose("push"), fault.PurposeDenied, "input.purpose")
	rules := e.Rules()
	require.Len(t, rules, 2, "the two things that the platform must allow by name")
	for _, rule := range rules {
		require.Equal(t, []any{Allow, lifecycle.PolicyPlatform, (*ids.ID)(nil), false},
			[]any{rule.Effect, rule.Origin, rule.OverlayID, rule.Final})
	}
	tenant := at(t, lifecycle.PolicyTenant,
		`{"secretPurposes":{"allow":["push"]},"operatingModes":{"allow":["PLATFORM_MANAGED"]}}`)
	require.Len(t, Widens(e, tenant.Document), 2, "a tenant cannot allow them")
	denied(t, Merge(tenant).Purpose("push"), fault.PurposeDenied, "input.purpose")
	named := platform(t,
		`{"secretPurposes":{"allow":["artifact_pull","push"]},"operatingModes":{"allow":["TENANT_DEDICATED","PLATFORM_MANAGED"]}}`)
	require.NoError(t, Join(named.Purpose("push"), named.Mode(lifecycle.ModePlatformManaged,
		lifecycle.ControlPlaneProject, "")))
}

// denied asserts a refusal of policy with one reason.
func denied(t *testing.T, err error, code fault.Code, path string) {
	t.Helper()
	require.True(t, fault.Is(err, fault.PolicyDenied), "%v", err)
	require.Len(t, fault.From(err).Reasons, 1)
	require.Equal(t, []any{code, path}, []any{fault.From(err).Reasons[0].Code, fault.From(err).Reasons[0].Path})
}

func TestSourcesEndAtTheBoundariesOfPaths(t *testing.T) {
	t.Parallel()
	e := platform(t,
		`{"artifactSources":{"allow":["registry.example.com/team","local.example:5000","docker.io/library"],"deny":["registry.example.com/team/old"]}}`)
	for ref, ok := range map[string]bool{
		"registry.example.com/team@sha256:0":             true,
		"registry.example.com/team/app@sha256:0":         true,
		"registry.example.com/team/app:v1@sha256:0":      true,
		"REGISTRY.example.com/team/app@sha256:0":         true,
		"registry.example.com./team/app@sha256:0":        true,
		"registry.example.com:443/team/app@sha256:0":     true,
		"registry.example.com/teams/app@sha256:0":        false,
		"registry.example.com/other@sha256:0":            false,
		"registry.example.com.evil/team/app@sha256:0":    false,
		"evil/registry.example.com/team/app@sha256:0":    false,
		"registry.example.com/team/old@sha256:0":         false,
		"registry.example.com/team/old/x@sha256:0":       false,
		"registry.example.com/team/older@sha256:0":       true,
		"registry.example.com/team/../other/a@sha256:0":  false,
		"registry.example.com/team%2f..%2fother@sha256:": false,
		"local.example:5000/a@sha256:0":                  true,
		"local.example:5001/a@sha256:0":                  false,
		"local.example/a@sha256:0":                       false,
		"index.docker.io/library/a@sha256:0":             true,
		"docker.io/other/a@sha256:0":                     false,
		"registry.example.com@sha256:0":                  false,
		"":                                               false,
	} {
		err := e.Source(ref, "input.ref")
		require.Equal(t, ok, err == nil, "%s: %v", ref, err)
		if err != nil {
			denied(t, err, fault.SourceDenied, "input.ref")
		}
	}
	wide := at(t, lifecycle.PolicyTenant,
		`{"artifactSources":{"allow":["registry.example.com","registry.example.com/team/a","registry.example.com/team/old/x","local.example:5000/b"]}}`)
	require.Equal(t, []string{"artifactSources.allow.0", "artifactSources.allow.2"}, named(Widens(e, wide.Document)))
}

func named(reasons []fault.Reason) (paths []string) {
	for _, reason := range reasons {
		paths = append(paths, reason.Path)
	}
	return paths
}

func TestConstraintsHoldVersions(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct{ in, out string }{
		"*":                  {"0.0.1 1.2.3 9.0.0-rc.1", ""},
		">=1.2 <2":           {"1.2.0 1.9.9 1.2.0-rc.1", "1.1.9 2.0.0 2.0.0-rc.1 3.0.0"},
		"1.2":                {"1.2.0 1.2.9", "1.1.0 1.3.0 1.3.0-rc.1"},
		"1":                  {"1.0.0 1.99.0", "2.0.0 0.9.0"},
		"=1.2.3":             {"1.2.3", "1.2.3-rc.1 1.2.4"},
		"1.4.0":              {"1.4.0", "1.4.1"},
		">1.2":               {"1.3.0", "1.2.9"},
		">1.2.3":             {"1.2.4", "1.2.3 1.2.3-rc.1"},
		"<=1.2":              {"1.2.9 0.1.0", "1.3.0"},
		">=1.0.0-rc.2 <=1.1": {"1.0.0-rc.2 1.0.0 1.1.7", "1.0.0-rc.1 1.2.0"},
		">2 <1":              {"", "1.0.0 2.0.0 3.0.0"},
	} {
		e := platform(t, `{"versions":{"allow":["hello@`+text+`"]}}`)
		for _, version := range strings.Fields(c.in) {
			require.NoError(t, e.Version("hello", version, ""), "%s %s", text, version)
			require.True(t, Admits([]string{"9.9.9", text}, version))
		}
		for _, version := range strings.Fields(c.out) {
			denied(t, e.Version("hello", version, "input.version"), fault.VersionDenied, "input.version")
			require.False(t, Admits([]string{"9.9.9", text}, version))
		}
		require.NoError(t, e.Version("other", "0.0.1", ""), "an allow list of versions rules the apps that it names")
	}
	for _, text := range []string{"", "latest", "v1", "1.2.3.4", ">=", "=>1", "1.2-rc", "1..2", "~1",
		strings.Repeat(">=1 ", 9)} {
		require.False(t, Constraint(text), text)
	}
}

// TestCoveringIsHoldingEveryVersion holds the one answer about two constraints against every version of a small
// universe.
func TestCoveringIsHoldingEveryVersion(t *testing.T) {
	t.Parallel()
	var every []string
	for major := range 4 {
		for minor := range 3 {
			for _, pre := range []string{"", "-rc.1"} {
				every = append(every, fmt.Sprintf("%d.%d.0%s", major, minor, pre))
			}
		}
	}
	texts := []string{"*", "1", "2", ">=1 <3", ">=1.1", "<2", "<=1.1", ">1 <2", "1.1", "=1.1.0", "=1.1.0-rc.1",
		">=1.1.0-rc.1 <2", ">2 <1", ">=3", "<1"}
	for _, wanted := range texts {
		one, _ := parseSpan(wanted)
		for _, a := range texts {
			for _, b := range texts {
				first, _ := parseSpan(a)
				second, _ := parseSpan(b)
				holds := true
				for _, version := range every {
					holds = holds && (!one.has(version) || first.has(version) || second.has(version))
				}
				if one.covered([]span{first, second}) { // versions that are not in the universe may lie between
					require.True(t, holds, "%s in %s or %s", wanted, a, b)
				}
			}
			first, _ := parseSpan(a)
			require.True(t, one.covered([]span{one, first}), "%s in itself", wanted)
		}
	}
	covered := func(wanted string, by ...string) bool {
		one, _ := parseSpan(wanted)
		var others []span
		for _, text := range by {
			other, _ := parseSpan(text)
			others = append(others, other)
		}
		return one.covered(others)
	}
	require.True(t, covered(">=1 <3", "2", "1"), "one after the other")
	require.True(t, covered("*", "<2", ">=2"))
	require.False(t, covered("*", "<2", ">2"))
	require.False(t, covered(">=1 <3", "1"))
	require.False(t, covered("*"))
}

func TestSpendingIsHeldBelowEveryCeiling(t *testing.T) {
	t.Parallel()
	cost := func(scope lifecycle.PolicyScope, micros int, currency string) Level {
		return at(t, scope, fmt.Sprintf(`{"maxHourlyCost":{"amountMicros":%d,"currency":"%s"}}`, micros, currency))
	}
	spent := func(micros int64) Spending {
		return Spending{Hourly: map[string]money.Decimal{"EUR": money.Shift(micros, 6)}}
	}
	e := Merge(cost(lifecycle.PolicyPlatform, 10, "EUR"), cost(lifecycle.PolicyProject, 5, "EUR"))
	require.True(t, e.Spends() && e.Counts())
	require.NoError(t, e.HourlyCost(spent(5), ""))
	require.NoError(t, e.HourlyCost(Spending{}, ""))
	denied(t, e.HourlyCost(spent(6), "input.count"), fault.SpendingCeiling, "input.count")
	require.Len(t, fault.From(e.HourlyCost(spent(11), "")).Reasons, 2)
	denied(t, Merge(cost(lifecycle.PolicyPlatform, 10, "USD")).HourlyCost(spent(1), "x"), fault.SpendingCeiling, "x")
	denied(t, Merge(cost(lifecycle.PolicyPlatform, 10, "EUR")).HourlyCost(Spending{Unpriced: []string{"h100"}}, "x"),
		fault.SpendingCeiling, "x")
	above := Merge(cost(lifecycle.PolicyPlatform, 10, "EUR"))
	require.Equal(t, []string{"maxHourlyCost.amountMicros"},
		named(Widens(above, cost(lifecycle.PolicyTenant, 11, "EUR").Document)))
	require.Equal(t, []string{"maxHourlyCost.currency"},
		named(Widens(above, cost(lifecycle.PolicyTenant, 1, "USD").Document)))
	require.Empty(t, Widens(above, cost(lifecycle.PolicyTenant, 10, "EUR").Document))
}

func TestRulesTellTheirOrigin(t *testing.T) {
	t.Parallel()
	top := at(t, lifecycle.PolicyPlatform,
		`{"regions":{"allow":["b1","a1"]},"final":{"skus":["old"]},"maxGpus":8,"secretPurposes":{"allow":[]}}`)
	low := at(t, lifecycle.PolicyProject,
		`{"regions":{"deny":["a1"]},"maxHourlyCost":{"amountMicros":7,"currency":"EUR"}}`)
	var shown []string
	for _, rule := range Merge(top, low).Rules() {
		limit := "-"
		if rule.Limit != nil {
			limit = fmt.Sprint(*rule.Limit)
		}
		from := "nobody"
		switch rule.OverlayID {
		case top.OverlayID:
			from = "top"
		case low.OverlayID:
			from = "low"
		}
		require.NotEmpty(t, rule.Message)
		shown = append(shown, fmt.Sprint(rule.Dimension, " ", rule.Effect, " ", rule.Values, " ", limit,
			" ", rule.Origin, " ", from, " ", rule.Final))
	}
	require.Equal(t, []string{
		"regions ALLOW [a1 b1] - PLATFORM top false", "regions DENY [a1] - PROJECT low false",
		"skus DENY [old] - PLATFORM top true",
		"operatingModes ALLOW [TENANT_DEDICATED] - PLATFORM nobody false",
		"secretPurposes ALLOW [] - PLATFORM top false",
		"maxGpus CEILING [] 8 PLATFORM top false", "maxHourlyCost CEILING [] 7 PROJECT low false",
	}, shown)
}

func TestJoinGathersEveryReasonAndPassesOthersOn(t *testing.T) {
	t.Parallel()
	e := platform(t, `{"regions":{"deny":["a1"]},"skus":{"deny":["h"]}}`)
	require.NoError(t, Join(nil, e.Region("b1", "")))
	err := Join(e.Region("a1", "input.region"), nil, e.SKU("h", "input.sku"))
	require.Equal(t, []string{"input.region", "input.sku"}, named(fault.From(err).Reasons))
	require.True(t, fault.Is(Join(e.Region("a1", ""), fault.NoSuch()), fault.NotFound))
}
