package repair_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/domain/repair"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var now = time.Date(2026, 11, 23, 5, 0, 0, 0, time.UTC)

func tries(kind lifecycle.OperationKind, ago ...time.Duration) (list []repair.Try) {
	for _, one := range ago {
		list = append(list, repair.Try{Kind: kind, Ended: now.Add(-one)})
	}
	return list
}

// cases are read in the golden file.
var cases = []struct {
	name   string
	mode   repair.Mode
	begun  int
	member []repair.Member
}{
	{"nothing is lost", repair.Automatic, 0, nil},
	{"a dead init under a manual policy", repair.Manual, 0,
		[]repair.Member{{Name: "worker 0", Failure: "INIT_GONE", NodeUp: true}}},
	{"a restarted node under a manual policy", repair.Manual, 0, []repair.Member{
		{Name: "worker 0", Order: 1, Failure: "NODE_RESTARTED", NodeUp: true},
		{Name: "controller 0", Order: 0, Failure: "NODE_RESTARTED", NodeUp: true}}},
	{"the first component is under repair", repair.Manual, 1, []repair.Member{
		{Name: "controller 0", Order: 0, Failure: "NODE_RESTARTED", NodeUp: true, Busy: true},
		{Name: "worker 0", Order: 1, Failure: "NODE_RESTARTED", NodeUp: true}}},
	{"the first component is back and waits for its proof", repair.Manual, 1, []repair.Member{
		{Name: "controller 0", Order: 0, Failure: "NODE_RESTARTED", NodeUp: true, Busy: true, Proving: true},
		{Name: "worker 0", Order: 1, Failure: "NODE_RESTARTED", NodeUp: true}}},
	{"the first component waits for its back-off", repair.Manual, 1, []repair.Member{
		{Name: "controller 0", Order: 0, Failure: "NODE_RESTARTED", NodeUp: true,
			Tries: tries(lifecycle.MemberRecover, time.Second)},
		{Name: "worker 0", Order: 1, Failure: "NODE_RESTARTED", NodeUp: true}}},
	{"the first component waits for its node", repair.Manual, 0, []repair.Member{
		{Name: "controller 0", Order: 0, Failure: "NODE_RESTARTED"},
		{Name: "worker 0", Order: 1, Failure: "NODE_RESTARTED", NodeUp: true}}},
	{"a restarted node whose members do not come back", repair.Manual, 3, []repair.Member{
		{Name: "worker 0", Failure: "NODE_RESTARTED", NodeUp: true,
			Tries: tries(lifecycle.MemberRecover, time.Hour/2, time.Hour/3, time.Hour/4)}}},
	{"a member that failed in an operation", repair.Automatic, 0, []repair.Member{{Name: "worker 0", NodeUp: true}}},
	{"a dead init", repair.Automatic, 0, []repair.Member{{Name: "worker 0", Failure: "INIT_GONE", NodeUp: true}}},
	{"a dead init on a silent node", repair.Automatic, 0, []repair.Member{{Name: "worker 0", Failure: "INIT_GONE"}}},
	{"a lost node", repair.Automatic, 0, []repair.Member{{Name: "worker 0", Failure: "NODE_LOST"}}},
	{"a lost node under a manual policy", repair.Manual, 0, []repair.Member{{Name: "worker 0", Failure: "NODE_LOST"}}},
	{"a recovery that did not help, too soon", repair.Automatic, 1, []repair.Member{
		{Name: "worker 0", Failure: "INIT_GONE", NodeUp: true, Tries: tries(lifecycle.MemberRecover, 29*time.Second)}}},
	{"a recovery that did not help", repair.Automatic, 1, []repair.Member{
		{Name: "worker 0", Failure: "INIT_GONE", NodeUp: true, Tries: tries(lifecycle.MemberRecover, 30*time.Second)}}},
	{"two recoveries that did not help, too soon", repair.Automatic, 2, []repair.Member{
		{Name: "worker 0", Failure: "INIT_GONE", NodeUp: true,
			Tries: tries(lifecycle.MemberRecover, 90*time.Second, 59*time.Second)}}},
	{"two recoveries that did not help", repair.Automatic, 2, []repair.Member{
		{Name: "worker 0", Failure: "INIT_GONE", NodeUp: true,
			Tries: tries(lifecycle.MemberRecover, 2*time.Minute, time.Minute)}}},
	{"the budget is spent", repair.Automatic, 3, []repair.Member{{Name: "worker 0", Failure: "INIT_GONE",
		NodeUp: true}}},
	{"more members than budget", repair.Automatic, 1, []repair.Member{
		{Name: "worker 0", Failure: "INIT_GONE", NodeUp: true}, {Name: "worker 1", Failure: "INIT_GONE", NodeUp: true},
		{Name: "worker 2", Failure: "INIT_GONE", NodeUp: true}}},
}

func TestDecisionsAreTheGoldenOnes(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, c := range cases {
		policy := repair.Default()
		policy.Mode = c.mode
		for i := range c.member {
			c.member[i].ID = "mem_1"
		}
		decided := repair.Next(repair.Facts{Now: now, Policy: policy, Begun: c.begun, Members: c.member})
		fmt.Fprintf(&out, "%s (%s)\n", c.name, c.mode)
		for _, step := range decided.Steps {
			fmt.Fprintf(&out, "  %s: %s\n", step.Kind, step.Reason)
		}
		if decided.Stopped != "" {
			fmt.Fprintf(&out, "  stopped, budget spent %t: %s\n", decided.Spent, decided.Stopped)
		}
		if len(decided.Steps) == 0 && decided.Stopped == "" {
			out.WriteString("  nothing now\n")
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/decisions.golden", []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile("testdata/decisions.golden")
	require.NoError(t, err)
	require.Equal(t, string(want), out.String(), "run go test ./domain/repair -update and read the difference")
}

func TestPoliciesOutOfBoundsAreRefusedAtTheirFields(t *testing.T) {
	t.Parallel()
	require.NoError(t, repair.Default().Check())
	bad := func(change func(*repair.Policy)) error {
		policy := repair.Default()
		change(&policy)
		return policy.Check()
	}
	minus := -1
	for path, change := range map[string]func(*repair.Policy){
		"input.mode":              func(p *repair.Policy) { p.Mode = "OFTEN" },
		"input.budget":            func(p *repair.Policy) { p.Budget = repair.MaxBudget + 1 },
		"input.backOffSeconds":    func(p *repair.Policy) { p.BackOffSeconds = repair.MinBackOff - 1 },
		"input.graceSeconds":      func(p *repair.Policy) { p.GraceSeconds = new(repair.MinGrace - 1) },
		"input.hourlyLimitMicros": func(p *repair.Policy) { p.HourlyLimitMicros = &minus },
	} {
		refused, ok := fault.As(bad(change))
		require.True(t, ok, path)
		require.Equal(t, fault.InvalidArgument, refused.Code)
		require.Len(t, refused.Reasons, 1)
		require.Equal(t, path, refused.Reasons[0].Path)
	}
	for _, change := range []func(*repair.Policy){
		func(p *repair.Policy) { p.Budget = 1 }, func(p *repair.Policy) { p.Budget = repair.MaxBudget },
		func(p *repair.Policy) { p.GraceSeconds = new(repair.MinGrace) },
	} {
		require.NoError(t, bad(change))
	}
}

func TestAStoredPolicyIsReadAndNoneIsTheDefault(t *testing.T) {
	t.Parallel()
	none, err := repair.Of(nil)
	require.NoError(t, err)
	require.Equal(t, repair.Default(), none)
	some, err := repair.Of([]byte(`{"mode":"AUTOMATIC","budget":7,"backOffSeconds":60,"graceSeconds":90}`))
	require.NoError(t, err)
	require.Equal(t, repair.Policy{Mode: repair.Automatic, Budget: 7, BackOffSeconds: 60, GraceSeconds: new(90)}, some)
	_, err = repair.Of([]byte(`[]`))
	require.Error(t, err)
}
