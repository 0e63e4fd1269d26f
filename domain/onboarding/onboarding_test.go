package onboarding

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/manifest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// at is a time some minutes after the beginning of everything.
func at(minutes int) *time.Time {
	moment := time.Date(2026, 11, 25, 10, minutes, 0, 0, time.UTC)
	return &moment
}

// ready is a version that has passed all seven.
func ready() *Facts {
	of := Owner{Tenant: "ten_1", Project: "prj_1", Family: "apps", Instance: "ins_1", Kind: OfInstance}
	event := func(n int, kind lifecycle.EventType) *Event {
		return &Event{ID: ids.ID(fmt.Sprintf("evt_%d", n)), Type: string(kind), At: at(n)}
	}
	return &Facts{
		App: "demo", Version: "1.1.0", Adapter: "demo", Build: "b1", Contracts: []string{"1.1"},
		Lifecycle: &manifest.Lifecycle{Upgrade: manifest.Behaviour{Mode: "rolling"},
			Rollback: manifest.Behaviour{Mode: "in_place"}, Delete: manifest.Behaviour{Mode: "graceful"}},
		Runbooks: []manifest.Runbook{{Title: "Stuck", URL: "https://runbooks.example/stuck",
			Triage: []manifest.TriageStep{{By: manifest.ByCorrelation, Do: "triage"}, {By: "event", Do: "compare"}}}},
		Instances: []*Instance{{ID: "ins_1", Entitled: true, Ran: true, Gone: true, At: at(1), Of: of, Events: []*Event{
			event(1, lifecycle.EventInstanceRequested), event(2, lifecycle.EventInstanceRunning),
			event(8, lifecycle.EventInstanceDeleting), event(9, lifecycle.EventInstanceDeleted)}}},
		Calls:    Calls{Count: 12, At: at(8)},
		Acts:     []*Act{{ID: "aud_1", What: "publishManifest", Account: "sa_1", Name: "ci", Live: true, At: at(0)}},
		Accounts: []*Account{{ID: "sa_2", Name: "operator", What: "operates ins_1", Live: true, At: at(1), Of: of}},
		Reports: []*Report{
			{ID: "evd_2", Kind: "TENANCY", Passed: true, Runner: "bench", At: at(0)},
			{ID: "evd_1", Kind: "CONFORMANCE", Passed: true, Runner: "bench", At: at(0),
				Clauses: []string{"rollback.completes"}},
		},
		Artifacts: []*Artifact{{ID: "art_1", Name: "controller", Source: "team", Signed: "VERIFIED", Needed: true,
			At: at(0)}},
		Walks: []*Walk{
			{ID: "op_3", Kind: "INSTANCE_DECOMMISSION", Succeeded: true, At: at(9), Of: of},
			{ID: "op_2", Kind: "INSTANCE_UPGRADE", Succeeded: true, From: "1.0.0", To: "1.1.0", At: at(5), Of: of},
		},
	}
}

// spoiled are what turns a condition over, and what it turns to.
var spoiled = []struct {
	name  string
	of    Condition
	to    Verdict
	spoil func(*Facts)
}{
	{"a row without a call", ContractsOnly, Failed, func(f *Facts) {
		f.Calls.Hidden = []*Row{{ID: "tsk_1", What: "node task", At: at(3)}}
	}},
	{"a call beyond the token", ContractsOnly, Failed, func(f *Facts) {
		f.Calls.Refused = []*Row{{ID: "aud_7", What: "runNodeTask", At: at(3)}}
	}},
	{"not entitled", ContractsOnly, Failed, func(f *Facts) { f.Instances[0].Entitled = false }},
	{"another contract", ContractsOnly, Failed, func(f *Facts) { f.Contracts = []string{"2.0", "10.1"} }},
	{"another contract alone", ContractsOnly, Failed, func(f *Facts) { f.Contracts = []string{"2.0"} }},
	{"never described", ContractsOnly, NotKnown, func(f *Facts) { f.Contracts = nil }},
	{"never called", ContractsOnly, NotKnown, func(f *Facts) { f.Calls = Calls{} }},
	{"people alone", ServiceAccount, Failed, func(f *Facts) { f.Accounts, f.Acts[0].Account = nil, "" }},
	{"accounts that are deleted", ServiceAccount, Failed, func(f *Facts) {
		f.Accounts[0].Live, f.Acts[0].Live = false, false
	}},
	{"an account alone, which is deleted", ServiceAccount, Failed, func(f *Facts) {
		f.Accounts, f.Acts[0].Live = nil, false
	}},
	{"nobody's act", ServiceAccount, NotKnown, func(f *Facts) { f.Accounts, f.Acts = nil, nil }},
	{"no report between tenants", TenantBoundary, NotKnown, func(f *Facts) { f.Reports = f.Reports[1:] }},
	{"a report that failed", TenantBoundary, Failed, func(f *Facts) {
		f.Reports[0].Passed, f.Reports[0].Failed, f.Reports[0].Missing = false, 1, []string{"tenancy.token"}
	}},
	{"a report that nobody signed", TenantBoundary, Failed, func(f *Facts) { f.Reports[0].Runner = "" }},
	{"an event without its id", LifecycleEvents, Failed, func(f *Facts) {
		f.Instances[0].Events[1].Lacks = []string{"correlation_id"}
	}},
	{"an event that is missing", LifecycleEvents, Failed, func(f *Facts) {
		f.Instances[0].Events = f.Instances[0].Events[:3]
	}},
	{"none that went", LifecycleEvents, NotKnown, func(f *Facts) { f.Instances[0].Gone = false }},
	{"an artifact from nowhere", ArtifactSources, Failed, func(f *Facts) { f.Artifacts[0].Source = "" }},
	{"a source that is off", ArtifactSources, Failed, func(f *Facts) { f.Artifacts[0].Off = true }},
	{"in quarantine", ArtifactSources, Failed, func(f *Facts) { f.Artifacts[0].Quarantine = "leaked" }},
	{"denied", ArtifactSources, Failed, func(f *Facts) { f.Artifacts[0].Denied = "the platform denies it" }},
	{"not signed", ArtifactSources, Failed, func(f *Facts) { f.Artifacts[0].Signed = "UNSIGNED" }},
	{"no artifact", ArtifactSources, NotKnown, func(f *Facts) { f.Artifacts = nil }},
	{"nothing declared", LifecycleWalked, Failed, func(f *Facts) { f.Lifecycle = nil }},
	{"no upgrade yet", LifecycleWalked, NotKnown, func(f *Facts) { f.Walks = f.Walks[:1] }},
	{"an upgrade that failed", LifecycleWalked, Failed, func(f *Facts) { f.Walks[1].Succeeded = false }},
	{"a proof that nobody signed", LifecycleWalked, NotKnown, func(f *Facts) { f.Reports[1].Runner = "" }},
	{"a proof in a report that failed", LifecycleWalked, NotKnown, func(f *Facts) { f.Reports[1].Passed = false }},
	{"a link alone", SupportRunbook, Failed, func(f *Facts) { f.Runbooks[0].Triage = nil }},
	{"another way in", SupportRunbook, Failed, func(f *Facts) { slices.Reverse(f.Runbooks[0].Triage) }},
	{"no runbook", SupportRunbook, Failed, func(f *Facts) { f.Runbooks = nil }},
}

func TestWhatIsReadyPassesAndWhateverSpoilsItTurnsItsConditionAlone(t *testing.T) {
	t.Parallel()
	require.Empty(t, Lacking(Judge(ready())))
	turned := map[Condition]bool{}
	for _, c := range spoiled {
		facts := ready()
		c.spoil(facts)
		checks := Judge(facts)
		require.Equal(t, []Condition{c.of}, Lacking(checks), c.name)
		at := slices.Index(Conditions(), c.of)
		require.Equal(t, c.to, checks[at].Verdict, c.name)
		require.NotEmpty(t, checks[at].Remedy, c.name)
		turned[c.of] = turned[c.of] || c.to == Failed
	}
	require.Len(t, turned, len(Conditions()), "each condition can fail")
	for of, failed := range turned {
		require.True(t, failed, of)
	}
}

func TestVerdictsAreTheGoldenOnes(t *testing.T) {
	t.Parallel()
	all := map[string][]*Check{"ready": Judge(ready()),
		"nothing": Judge(&Facts{App: "demo", Version: "1.0.0", Adapter: "demo"})}
	for _, c := range spoiled {
		facts := ready()
		c.spoil(facts)
		all[c.name] = []*Check{Judge(facts)[slices.Index(Conditions(), c.of)]}
	}
	encoded, err := json.MarshalIndent(all, "", " ")
	require.NoError(t, err)
	path := filepath.Join("testdata", "verdicts.json")
	if *update {
		require.NoError(t, os.WriteFile(path, append(encoded, '\n'), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(encoded)+"\n",
		"run go test ./domain/onboarding -update and read the difference")
}

func TestWhatIsSupportedIsWalkedAndWhatIsNotIsSaid(t *testing.T) {
	t.Parallel()
	facts := ready()
	facts.Lifecycle.Upgrade.Mode = unsupported
	facts.Walks = facts.Walks[:1]
	check := Judge(facts)[5]
	require.Equal(t, Passed, check.Verdict)
	require.Contains(t, check.Evidence[0].State, "unsupported")
}

func TestAWalkNamesItsVersionsWhereBothAreRecorded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{"1.0.0", "1.1.0", "upgrade from 1.0.0 to 1.1.0"},
		{"1.1.0", "1.1.0", "upgrade of the configuration, 1.1.0"},
		// one version alone would read as a walk from or to nothing
		{"1.0.0", "", "upgrade"},
		{"", "1.1.0", "upgrade"},
		{"", "", "upgrade"},
	} {
		facts := ready()
		facts.Walks[1].From, facts.Walks[1].To = c.from, c.to
		check := Judge(facts)[5]
		require.Equal(t, Passed, check.Verdict)
		require.Equal(t, c.want, check.Evidence[0].What, "from %q to %q", c.from, c.to)
	}
}

func TestOneLivingServiceAccountIsEnough(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*Facts){
		"it acted, and none is named":  func(f *Facts) { f.Accounts = nil },
		"it is named, and never acted": func(f *Facts) { f.Acts = nil },
		"people acted too":             func(f *Facts) { f.Acts[0].Account = "" },
		"another one is deleted":       func(f *Facts) { f.Accounts[0].Live = false },
	} {
		facts := ready()
		spoil(facts)
		require.Equal(t, Passed, Judge(facts)[1].Verdict, name)
	}
}

func TestTheNewestReportBetweenTenantsCounts(t *testing.T) {
	t.Parallel()
	older := &Report{ID: "evd_0", Kind: "TENANCY", Passed: true, Runner: "bench", At: at(0)}
	newer := &Report{ID: "evd_3", Kind: "TENANCY", Failed: 2, Missing: []string{"tenancy.token"}, Runner: "bench",
		At: at(9)}
	for _, c := range []struct {
		reports []*Report
		want    Verdict
	}{
		{[]*Report{newer, older}, Failed},
		{[]*Report{older}, Passed},
	} {
		facts := ready()
		conformance := facts.Reports[1:] // the first of all, and not about tenants
		facts.Reports = slices.Concat(conformance, c.reports)
		check := Judge(facts)[2]
		require.Equal(t, c.want, check.Verdict)
		require.Equal(t, c.reports[0].ID, *check.Evidence[0].ID)
		require.Len(t, check.Evidence, 1)
	}
}

// The evidence of many instances would only repeat itself: three show that the version was launched.
func TestTheThreeNewestInstancesStandForAll(t *testing.T) {
	t.Parallel()
	for instances, shown := range map[int]int{1: 1, 2: 2, 3: 3, 4: 3} {
		facts := ready()
		for len(facts.Instances) < instances {
			another := *facts.Instances[0]
			another.ID = ids.ID(fmt.Sprintf("ins_%d", len(facts.Instances)+1))
			facts.Instances = append(facts.Instances, &another)
		}
		check := Judge(facts)[0]
		require.Equal(t, Passed, check.Verdict)
		require.Contains(t, check.Message, count(instances, "instance"), "all of them were checked")
		require.Len(t, check.Evidence, shown, "of %d instances", instances)
		for i, one := range check.Evidence {
			require.Equal(t, facts.Instances[i].ID, *one.ID, "the newest come first")
		}
	}
}

func TestEvidenceIsBoundedAndTheNewestIsTheDate(t *testing.T) {
	t.Parallel()
	facts := ready()
	for i := range 40 {
		facts.Calls.Hidden = append(facts.Calls.Hidden, &Row{ID: ids.ID(fmt.Sprintf("tsk_%d", i)), At: at(i)})
	}
	check := Judge(facts)[0]
	require.Len(t, check.Evidence, MaxEvidence)
	require.Equal(t, at(39), check.At, "of all, shown or not")
	require.Contains(t, check.Message, "40 rows")
}

func TestEachConditionIsNotedAsAGapOfAKindThatThereIs(t *testing.T) {
	t.Parallel()
	require.Equal(t, Condition("").Values(), strings.Split(Words(Conditions()), ", "))
	for _, one := range Conditions() {
		require.Contains(t, lifecycle.GapOpen.Values(), "OPEN")
		require.Contains(t, one.Gap().Values(), string(one.Gap()))
	}
	require.Equal(t, []string{"PASSED", "FAILED", "NOT_KNOWN"}, Passed.Values())
	require.Contains(t, RequiredEvents(), "apps.instance.failed")
}
