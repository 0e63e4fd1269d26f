package policy

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

func TestACeilingIsReachedAndNotPassed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ask    func(e *Effective, n int) error
		code   fault.Code
		counts bool
	}{
		"maxMembersPerInstance": {func(e *Effective, n int) error { return e.MembersOfInstance(n, "x") },
			fault.MembersCeiling, false},
		"maxMembers":   {func(e *Effective, n int) error { return e.Members(n, "x") }, fault.MembersCeiling, true},
		"maxGpus":      {func(e *Effective, n int) error { return e.GPUs(n, "x") }, fault.GPUsCeiling, true},
		"maxVolumeGiB": {func(e *Effective, n int) error { return e.VolumeGiB(n, "x") }, fault.VolumesCeiling, false},
		"maxInstances": {func(e *Effective, n int) error { return e.Instances(n, "x") },
			fault.InstancesCeiling, true},
	} {
		for value, text := range []string{`{"` + name + `":0}`, `{"` + name + `":1}`} {
			e := platform(t, text)
			require.NoError(t, c.ask(e, value), text)
			denied(t, c.ask(e, value+1), c.code, "x")
			require.Equal(t, c.counts, e.Counts(), text)
			require.False(t, e.Spends())
		}
		require.NoError(t, c.ask(platform(t, `{}`), 1e9), "there is none")
	}
	require.False(t, platform(t, `{}`).Counts())
	two := Merge(at(t, lifecycle.PolicyPlatform, `{"maxGpus":5}`),
		at(t, lifecycle.PolicyTenant, `{"maxGpus":0,"maxMembers":4}`),
		at(t, lifecycle.PolicyProject, `{"maxGpus":3,"maxMembers":9}`))
	denied(t, two.GPUs(1, "x"), fault.GPUsCeiling, "x")
	require.ErrorContains(t, two.GPUs(1, "x"), "the tenant's policy")
	require.NoError(t, two.Members(4, "x"))
	require.ErrorContains(t, two.Members(5, "x"), "allows 4 members in a project, and this would make 5 (maxMembers)")
}

func TestARefusalSaysWhichRuleRefuses(t *testing.T) {
	t.Parallel()
	e := Merge(at(t, lifecycle.PolicyPlatform,
		`{"apps":{"deny":["bad"]},"regions":{"allow":["a1"]},"final":{"skus":["old"]}}`),
		at(t, lifecycle.PolicyTenant, `{"skus":{"deny":["old"]}}`))
	denied(t, e.App("bad", "x"), fault.AppDenied, "x")
	require.ErrorContains(t, e.App("bad", "x"), `app "bad" is denied by the platform's policy`)
	require.NoError(t, e.App("good", "x"))
	require.ErrorContains(t, e.Region("b1", "x"), `region "b1" is not among those that the platform's policy`)
	denied(t, e.SKU("old", "x"), fault.PlatformFinal, "x")
	require.ErrorContains(t, e.SKU("old", "x"), `the platform forbids SKU "old" for everyone (final.skus)`)
	open := platform(t, `{}`)
	for _, ref := range []string{"registry.example.com@sha256:0", "", "https://r.example"} {
		require.ErrorContains(t, open.Source(ref, "x"), "policy cannot tell where the artifact comes from", ref)
	}
	require.ErrorContains(t, open.Location("a b", "x"), "policy cannot tell what the source covers")
	require.NoError(t, open.Location("r.example", "x"))
}

func TestAChoiceIsWhatEveryLevelLeaves(t *testing.T) {
	t.Parallel()
	require.Equal(t, Choice{Not: []string{}}, Merge().Regions(), "any")
	e := Merge(at(t, lifecycle.PolicyPlatform,
		`{"regions":{"allow":["a1","b1","c1"]},"skus":{"deny":["d"]},"final":{"skus":["f"]}}`),
		at(t, lifecycle.PolicyTenant, `{"regions":{"allow":["b1","c1","d1"],"deny":["x1"]}}`),
		at(t, lifecycle.PolicyProject, `{"skus":{"allow":[]}}`))
	got := e.Regions()
	slices.Sort(got.Only)
	require.Equal(t, Choice{Only: []string{"b1", "c1"}, Not: []string{"x1"}}, got)
	got = e.SKUs()
	slices.Sort(got.Not)
	require.Equal(t, Choice{Only: []string{}, Not: []string{"d", "f"}}, got,
		"nothing is left, which is not the same as any")
}

func TestTheHashIsOfTheOverlaysInTheirOrder(t *testing.T) {
	t.Parallel()
	top, low := at(t, lifecycle.PolicyPlatform, `{}`), at(t, lifecycle.PolicyTenant, `{}`)
	other := at(t, lifecycle.PolicyTenant, `{}`)
	unwritten := Level{Scope: lifecycle.PolicyTenant, Document: &Document{}}
	hashes := map[string]bool{}
	for _, e := range []*Effective{Merge(), Merge(top), Merge(top, low), Merge(top, other), Merge(low),
		Merge(top, unwritten)} {
		hashes[e.Hash()] = true
	}
	require.Len(t, hashes, 6)
	require.Equal(t, Merge(top, low).Hash(), Merge(top, low).Hash())
}

func TestRulesAreSaidForAPerson(t *testing.T) {
	t.Parallel()
	level := Level{Scope: lifecycle.PolicyPlatform, Document: at(t, lifecycle.PolicyPlatform,
		`{"regions":{"allow":["a1"],"deny":["x","y"]},
		"skus":{"allow":[]},"apps":{"allow":["one-app","two-app"],"deny":["z-app"]},"versions":{"allow":["hello@1"]},
		"maxGpus":8,"maxHourlyCost":{"amountMicros":1500000,"currency":"EUR"},
		"final":{"regions":["u"],"skus":["v","w"]}}`).Document}
	var said []string
	for _, rule := range Merge(level).Rules() {
		said = append(said, rule.Message)
	}
	require.Equal(t, []string{
		"the platform forbids one region for everyone, and no overlay can allow them",
		"the platform's policy allows only one region", "the platform's policy denies 2 regions",
		"the platform forbids 2 SKUs for everyone, and no overlay can allow them",
		"the platform's policy allows no SKU",
		"the platform's policy allows only 2 apps", "the platform's policy denies one app",
		"the platform's policy allows no other versions of the apps that it names",
		"any other operating mode must be allowed by the platform by name",
		"any other secret purpose must be allowed by the platform by name",
		"platform: at most 8 GPUs in a project", "platform: at most 1.500000 EUR an hour by the price book",
	}, said)
}

func TestTheEndsOfConstraintsAreExact(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct{ in, out []string }{
		">=1.2.3":                   {[]string{"1.2.3-rc.1", "1.2.3"}, []string{"1.2.2"}},
		"1.4.0":                     {[]string{"1.4.0"}, []string{"1.4.0-rc.1", "1.4.1"}},
		"<3 <2":                     {[]string{"1.9.9"}, []string{"2.0.0", "2.5.0"}},
		"<2 <3":                     {[]string{"1.9.9"}, []string{"2.0.0", "2.5.0"}},
		">=1 >=2":                   {[]string{"2.0.0"}, []string{"1.0.0"}},
		">=2 >=1":                   {[]string{"2.0.0"}, []string{"1.0.0"}},
		"<2 >=1":                    {[]string{"1.0.0"}, []string{"0.9.0", "2.0.0"}},
		">1.2.3-rc.1":               {[]string{"1.2.3-rc.2", "1.2.3", "9.0.0"}, []string{"1.2.3-rc.1", "1.2.2"}},
		"<1.2.3-rc.1":               {[]string{"1.2.3-rc.0", "1.0.0"}, []string{"1.2.3-rc.1", "1.2.3"}},
		"<=1.2.3-rc.1":              {[]string{"1.2.3-rc.1"}, []string{"1.2.3-rc.2"}},
		"<2.0.0-rc.1 <=2.0.0-rc.1":  {[]string{"2.0.0-rc.0"}, []string{"2.0.0-rc.1"}},
		"<=2.0.0-rc.1 <2.0.0-rc.1":  {[]string{"2.0.0-rc.0"}, []string{"2.0.0-rc.1"}},
		">2.0.0-rc.1 >=2.0.0-rc.1":  {[]string{"2.0.0-rc.2"}, []string{"2.0.0-rc.1"}},
		">=2.0.0-rc.1 >2.0.0-rc.1":  {[]string{"2.0.0-rc.2"}, []string{"2.0.0-rc.1"}},
		"<=2.0.0-rc.1 <=2.0.0-rc.2": {[]string{"2.0.0-rc.1"}, []string{"2.0.0-rc.2"}},
		"*":                         {[]string{"0.0.1"}, []string{"nonsense", "", "v1.0.0"}},
	} {
		for _, version := range c.in {
			require.True(t, Admits([]string{text}, version), "%s in %s", version, text)
		}
		for _, version := range c.out {
			require.False(t, Admits([]string{text}, version), "%s not in %s", version, text)
		}
	}
	require.False(t, Constraint("1.2.3-01"), "a number of a pre-release does not begin with 0")
	require.False(t, Constraint("1.2-rc.1"))
}

func TestAnOverlayWidensWhatIsHigherOrNotLetThrough(t *testing.T) {
	t.Parallel()
	above := platform(t,
		`{"maxGpus":0,"maxMembers":5,"regions":{"allow":["a1"]},"versions":{"allow":["hello@>=1 <2"],"deny":["other@1"]},
		"maxHourlyCost":{"amountMicros":5,"currency":"EUR"},"final":{"versions":["gone@<1"]}}`)
	for text, want := range map[string][]string{
		`{}`: nil, `{"maxGpus":0}`: nil, `{"maxGpus":1}`: {"maxGpus"},
		`{"maxMembers":5}`: nil, `{"maxMembers":6,"maxGpus":1}`: {"maxMembers", "maxGpus"},
		`{"maxInstances":1000}`: nil, `{"skus":{"allow":["any"]}}`: nil,
		`{"regions":{"allow":["a1","b1"]}}`: {"regions.allow.1"},
		`{"versions":{"allow":["hello@1.2","hello@>=1","hello@2","unruled@*"]}}`: {"versions.allow.1",
			"versions.allow.2"},
		`{"versions":{"allow":["other@1.2","other@*","other@2"]}}`: {"versions.allow.0"},
		`{"versions":{"allow":["gone@0.5","gone@*","gone@1"]}}`:    {"versions.allow.0"},
		`{"maxHourlyCost":{"amountMicros":5,"currency":"EUR"}}`:    nil,
	} {
		document, err := Parse(lifecycle.PolicyTenant, []byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, named(Widens(above, document)), text)
	}
	below := at(t, lifecycle.PolicyTenant, `{"maxGpus":0,"maxMembers":9,"versions":{"allow":["hello@>2 <1"]}}`).Document
	require.Empty(t, Widens(Merge(), below), "nothing is above it, and no version is in no rule")
	for code, text := range map[fault.Code]string{
		fault.PlatformFinal: `{"versions":{"allow":["gone@0.5"]}}`,
		fault.VersionDenied: `{"versions":{"allow":["hello@3"]}}`,
	} {
		require.Equal(t, code, Widens(above, at(t, lifecycle.PolicyTenant, text).Document)[0].Code)
	}
}
