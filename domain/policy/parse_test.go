package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// wrong is everything that is wrong with a document, as code and path.
func wrong(t *testing.T, scope lifecycle.PolicyScope, text string) (found []string) {
	t.Helper()
	document, err := Parse(scope, []byte(text))
	if err == nil {
		require.NotNil(t, document)
		return nil
	}
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
	require.Nil(t, document)
	for _, reason := range fault.From(err).Reasons {
		found = append(found, string(reason.Code)+" "+reason.Path)
	}
	return found
}

// whole uses every member of a document.
const whole = `{"regions":{"allow":["a1","b1"],"deny":["c1"]},"skus":{"deny":[]},
	"artifactSources":{"allow":["r.example/a"]},
	"apps":{"allow":["hello"]},"versions":{"allow":["hello@>=1 <2"]},"operatingModes":{"allow":["TENANT_DEDICATED"]},
	"controlPlaneScopes":{"deny":["TENANT"]},"secretPurposes":{"allow":["push"]},"maxMembersPerInstance":0,"maxMembers":1,
	"maxGpus":1000000000,"maxInstances":2,"maxHourlyCost":{"amountMicros":1000000000000000000,"currency":"EUR"},
	"final":{"regions":["x1"],"skus":["old"]}}`

func TestADocumentThatIsCutAnywhereIsRefusedAsNotWhole(t *testing.T) {
	t.Parallel()
	require.Empty(t, wrong(t, lifecycle.PolicyPlatform, whole))
	for n := range len(whole) {
		require.Equal(t, []string{"BAD_VALUE "}, wrong(t, lifecycle.PolicyPlatform, whole[:n]), "%s", whole[:n])
	}
	for _, broken := range []string{`{1:2}`, `{"regions" 1}`, `{"regions":{1:2}}`, `{"maxGpus":]}`,
		`{"regions":{"allow":]}}`} {
		require.Equal(t, []string{"BAD_VALUE "}, wrong(t, lifecycle.PolicyPlatform, broken), broken)
	}
	for _, broken := range []string{`{"x":]}`, `{"x":[}`, `{"x":[1`} {
		require.Equal(t, []string{"UNKNOWN_FIELD x", "BAD_VALUE "}, wrong(t, lifecycle.PolicyPlatform, broken), broken)
	}
}

func TestEveryFaultOfADocumentIsNamedAndNothingElse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`{"region":{"x":[1,{"y":[2]}]},"maxGpus":-1}`: {"UNKNOWN_FIELD region", "BAD_VALUE maxGpus"},
		`{"regions":{"allow":["a1",{"z":[[]]},"b 1",7,""],"deny":{"x":[]},"else":[{}]},"maxGpus":-1}`: {
			"BAD_VALUE regions.allow.1", "BAD_VALUE regions.allow.2", "BAD_VALUE regions.allow.3",
			"BAD_VALUE regions.allow.4",
			"BAD_VALUE regions.deny", "UNKNOWN_FIELD regions.else", "BAD_VALUE maxGpus",
		},
		`{"skus":[["a"],{"b":1}],"maxGpus":{"x":[1]},"maxMembers":[1,[2]],"maxInstances":-1}`: {
			"BAD_VALUE skus", "BAD_VALUE maxGpus", "BAD_VALUE maxMembers", "BAD_VALUE maxInstances",
		},
		`{"maxHourlyCost":{"per":{"x":1},"amountMicros":[1],"currency":{"a":"EUR"}},"maxGpus":-1}`: {
			"UNKNOWN_FIELD maxHourlyCost.per", "BAD_VALUE maxHourlyCost.amountMicros",
			"BAD_VALUE maxHourlyCost.currency",
			"BAD_VALUE maxGpus",
		},
		`{"maxHourlyCost":[{}],"maxGpus":-1}`: {
			"BAD_VALUE maxHourlyCost", "REQUIRED maxHourlyCost.amountMicros", "BAD_VALUE maxHourlyCost.currency",
			"BAD_VALUE maxGpus",
		},
		`{"final":{"maxGpus":{"x":1},"regions":{"deny":[]}},"maxGpus":-1}`: {
			"UNKNOWN_FIELD final.maxGpus", "BAD_VALUE final.regions", "BAD_VALUE maxGpus",
		},
		`{"apps":{"allow":["a1"]},"apps":{"x":[{}]},"maxGpus":-1}`: {"DUPLICATE apps", "BAD_VALUE maxGpus"},
	} {
		require.Equal(t, want, wrong(t, lifecycle.PolicyPlatform, text), text)
	}
	require.Equal(t, []string{"UNKNOWN_FIELD final", "BAD_VALUE maxGpus"},
		wrong(t, lifecycle.PolicyTenant, `{"final":{"regions":["a1"]},"maxGpus":-1}`))
	for text, message := range map[string]string{
		`{"x":1}`:                     "a policy document has no such field",
		`{"final":{"x":1}}`:           "a policy document has no such field",
		`{"regions":{"allow":[7]}}`:   "must be a text of 1 to 200 bytes",
		`{"regions":{"allow":[""]}}`:  "must be a text of 1 to 200 bytes",
		`{"regions":{"allow":[" "]}}`: "must be letters, digits, dot, dash and underscore, at most 64",
	} {
		_, err := Parse(lifecycle.PolicyPlatform, []byte(text))
		require.Equal(t, message, fault.From(err).Reasons[0].Message, text)
	}
	_, err := Parse(lifecycle.PolicyTenant, []byte(`{"final":{}}`))
	require.ErrorContains(t, err, "only the platform's overlay has final rules")
	_, err = Parse(lifecycle.PolicyTenant, []byte(`{} {}`))
	require.ErrorContains(t, err, "more than one value")
}

func TestADocumentMayReachEachBound(t *testing.T) {
	t.Parallel()
	const most = 64 << 10
	named := func(bytes int) string { return `{"x":"` + strings.Repeat("y", bytes-8) + `"}` }
	spaces := func(text string, bytes int) string { return text + strings.Repeat(" ", bytes-len(text)) }
	words := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"r%d"`, i))
		}
		return `{"regions":{"allow":[` + strings.Join(list, ",") + `]}}`
	}
	constraint := func(bytes int) string { return ">=1" + strings.Repeat(" ", bytes-5) + "<2" }
	versions := func(bytes int) string { return `{"versions":{"allow":["hello@` + constraint(bytes-6) + `"]}}` }
	for text, want := range map[string][]string{
		named(most): {"UNKNOWN_FIELD x"}, named(most + 1): {"TOO_LONG "},
		spaces("{", most): {"BAD_VALUE "}, spaces("{", most+1): {"TOO_LONG "},
		spaces("{}", 4*most): nil, spaces("{}", 4*most+1): {"TOO_LONG "},
		spaces(named(most), 2*most): {"UNKNOWN_FIELD x"}, spaces(named(most+1), 2*most): {"TOO_LONG "},
		words(500): nil, words(501): {"TOO_LONG regions.allow"}, words(510): {"TOO_LONG regions.allow"},
		versions(200): nil, versions(201): {"BAD_VALUE versions.allow.0"},
		`{"maxMembersPerInstance":1000000000}`:                                    nil,
		`{"maxMembersPerInstance":1000000001}`:                                    {"BAD_VALUE maxMembersPerInstance"},
		`{"maxInstances":0}`:                                                      nil,
		`{"maxHourlyCost":{"amountMicros":1000000000000000000,"currency":"EUR"}}`: nil,
		`{"maxHourlyCost":{"amountMicros":1000000000000000001,"currency":"EUR"}}`: {"BAD_VALUE maxHourlyCost.amountMicros"},
		`{"` + strings.Repeat("n",
			200) + `":1}`: {"UNKNOWN_FIELD " + strings.Repeat("n", 200)},
		`{"` + strings.Repeat("n",
			201) + `":1}`: {"UNKNOWN_FIELD " + strings.Repeat("n", 200) + "…"},
	} {
		require.Equal(t, want, wrong(t, lifecycle.PolicyPlatform, text), "%.60s, %d bytes", text, len(text))
	}
	require.True(t, Constraint(constraint(200)))
	require.False(t, Constraint(constraint(201)))
	require.True(t, Constraint(strings.Repeat(">=1 ", 8)))
	require.Len(t, wrong(t, lifecycle.PolicyPlatform, `{"regions":{"allow":[`+strings.Repeat(`1,`, 60)+`1]}}`),
		fault.MaxReasons)
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{}`, `{"regions":{"allow":["a1"],"deny":[]},"maxGpus":4}`,
		`{"final":{"apps":["hello"]},"versions":{"deny":["hello@>=1 <2"]}}`,
		`{"artifactSources":{"allow":["[::1]:5000/a/b"]},"maxHourlyCost":{"amountMicros":1,"currency":"EUR"}}`,
		`{"a":{"b":[[[`} {
		f.Add(seed, "r.example/a@sha256:0", "1.2.3")
	}
	f.Fuzz(func(t *testing.T, text, ref, version string) {
		document, err := Parse(lifecycle.PolicyPlatform, []byte(text))
		if err != nil {
			require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
			require.NotEmpty(t, fault.From(err).Reasons)
			return
		}
		e := Merge(Level{Scope: lifecycle.PolicyPlatform, Document: document})
		for _, answer := range []error{e.Source(ref, "x"), e.Location(ref, "x"), e.Version("hello", version, "x"),
			e.Region(ref, "x")} {
			require.True(t, answer == nil || fault.Is(answer, fault.PolicyDenied), "%v", answer)
		}
		require.LessOrEqual(t, len(e.Rules()), 3_000)
		for _, reason := range Widens(e, document) { // nothing is wider than itself but for what it denies
			require.NotEmpty(t, reason.Path)
		}
	})
}
