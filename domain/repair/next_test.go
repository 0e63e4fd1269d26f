package repair_test

import (
	"flag"
	"fmt"
	"math"
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

// after returns the tries with one before them, which has succeeded.
func after(success lifecycle.OperationKind, later ...repair.Try) []repair.Try {
	return append([]repair.Try{{Kind: success, Ended: now.Add(-time.Hour / 2), Succeeded: true}}, later...)
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
	{"a restarted node whose members came back at neither try, too soon", repair.Manual, 2, []repair.Member{
		{Name: "worker 0", Failure: "NODE_RESTARTED", NodeUp: true,
			Tries: tries(lifecycle.MemberRecover, time.Minute, 19*time.Second)}}},
	{"a restarted node whose members came back at neither try", repair.Manual, 2, []repair.Member{
		{Name: "worker 0", Failure: "NODE_RESTARTED", NodeUp: true,
			Tries: tries(lifecycle.MemberRecover, time.Minute, 20*time.Second)}}},
	{"the first component has been given up", repair.Manual, 3, []repair.Member{
		{Name: "controller 0", Order: 0, Failure: "NODE_RESTARTED",
			Tries: tries(lifecycle.MemberRecover, time.Hour/2, time.Hour/3, time.Hour/4)},
		{Name: "worker 0", Order: 1, Failure: "NODE_RESTARTED", NodeUp: true}}},
	{"the first component is left to people", repair.Manual, 0, []repair.Member{
		{Name: "controller 0", Order: 0, Failure: "NODE_LOST"},
		{Name: "worker 0", Order: 1, Failure: "NODE_RESTARTED", NodeUp: true}}},
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
	{"a recovery that did not help, and the node is lost", repair.Automatic, 1, []repair.Member{
		{Name: "worker 0", Failure: "NODE_LOST", Tries: tries(lifecycle.MemberRecover, 30*time.Second)}}},
	{"a replacement that did not help", repair.Automatic, 1, []repair.Member{
		{Name: "worker 0", Failure: "NODE_LOST", Tries: tries(lifecycle.MemberReplace, 30*time.Second)}}},
	{"a recovery that succeeded, and the node is lost", repair.Automatic, 1, []repair.Member{
		{Name: "worker 0", Failure: "NODE_LOST", Tries: after(lifecycle.MemberRecover)}}},
	{"a member that is lost again after a recovery, too soon", repair.Automatic, 1, []repair.Member{
		{Name: "worker 0", Failure: "INIT_GONE", NodeUp: true,
			Tries: []repair.Try{{Kind: lifecycle.MemberRecover, Ended: now.Add(-29 * time.Second), Succeeded: true}}}}},
	{"a member that is lost again after a recovery", repair.Automatic, 1, []repair.Member{
		{Name: "worker 0", Failure: "INIT_GONE", NodeUp: true,
			Tries: []repair.Try{{Kind: lifecycle.MemberRecover, Ended: now.Add(-30 * time.Second), Succeeded: true}}}}},
	{"a recovery that did not help after one that did", repair.Automatic, 2, []repair.Member{
		{Name: "worker 0", Failure: "INIT_GONE", NodeUp: true,
			Tries: after(lifecycle.MemberRecover, tries(lifecycle.MemberRecover, 30*time.Second)...)}}},
	{"two recoveries that did not help after one that did", repair.Automatic, 2, []repair.Member{
		{Name: "worker 0", Failure: "INIT_GONE", NodeUp: true,
			Tries: after(lifecycle.MemberRecover, tries(lifecycle.MemberRecover, 2*time.Minute, time.Minute)...)}}},
	{"the budget is spent", repair.Automatic, 3, []repair.Member{{Name: "worker 0", Failure: "INIT_GONE",
		NodeUp: true}}},
	{"one repair is left for two members", repair.Automatic, 2, []repair.Member{
		{Name: "worker 0", Failure: "INIT_GONE", NodeUp: true},
		{Name: "worker 1", Failure: "INIT_GONE", NodeUp: true}}},
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

// The bounds are those that the API publishes at SetRepairPolicyInput. A limit of 0 is one: only capacity without a
// price is taken.
func TestPoliciesOutOfBoundsAreRefusedAtTheirFields(t *testing.T) {
	t.Parallel()
	require.NoError(t, repair.Default().Check())
	modes := []repair.Mode{repair.Manual, repair.Automatic, "", "OFTEN"}
	for _, c := range []struct {
		path        string
		set         func(p *repair.Policy, to int)
		good, wrong []int
		message     string
	}{
		{"input.budget", func(p *repair.Policy, to int) { p.Budget = to },
			[]int{1, 20}, []int{-1, 0, 21}, "must be 1 to 20"},
		{"input.backOffSeconds", func(p *repair.Policy, to int) { p.BackOffSeconds = to },
			[]int{5, 3_600}, []int{0, 4, 3_601}, "must be 5 to 3600"},
		{"input.graceSeconds", func(p *repair.Policy, to int) { p.GraceSeconds = &to },
			[]int{60, 604_800}, []int{0, 59, 604_801}, "must be 60 to 604800"},
		{"input.hourlyLimitMicros", func(p *repair.Policy, to int) { p.HourlyLimitMicros = &to },
			[]int{0, math.MaxInt}, []int{-1}, "must be at least 0"},
		{"input.mode", func(p *repair.Policy, to int) { p.Mode = modes[to] },
			[]int{0, 1}, []int{2, 3}, "must be MANUAL or AUTOMATIC"},
	} {
		policy := repair.Default()
		for _, to := range c.good {
			c.set(&policy, to)
			require.NoError(t, policy.Check(), "%s %d", c.path, to)
		}
		for _, to := range c.wrong {
			c.set(&policy, to)
			refused, ok := fault.As(policy.Check())
			require.True(t, ok, "%s %d", c.path, to)
			require.Equal(t, fault.InvalidArgument, refused.Code)
			require.Equal(t, []fault.Reason{{Code: fault.BadValue, Message: c.message, Path: c.path}}, refused.Reasons)
		}
	}
}

func TestAllThatIsWrongWithAPolicyIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	refused, ok := fault.As(repair.Policy{GraceSeconds: new(0), HourlyLimitMicros: new(-1)}.Check())
	require.True(t, ok)
	var paths []string
	for _, one := range refused.Reasons {
		paths = append(paths, one.Path)
	}
	require.Equal(t, []string{"input.mode", "input.budget", "input.backOffSeconds", "input.graceSeconds",
		"input.hourlyLimitMicros"}, paths)
}

// The doubling ends at 64 times: with the least back-off a member that nothing helps is tried every 320 seconds until
// the budget is spent.
func TestThePauseDoublesWithEachTryThatDidNotHelpUpToSixtyFourTimes(t *testing.T) {
	t.Parallel()
	policy := repair.Policy{Mode: repair.Automatic, Budget: repair.MaxBudget, BackOffSeconds: 5}
	steps := func(failed int, since time.Duration) []repair.Step {
		list := make([]repair.Try, failed)
		for i := range list {
			list[i] = repair.Try{Kind: lifecycle.MemberRecover, Ended: now.Add(-since)}
		}
		return repair.Next(repair.Facts{Now: now, Policy: policy, Begun: failed, Members: []repair.Member{
			{ID: "mem_1", Name: "worker 0", Failure: lifecycle.FailureInitGone, NodeUp: true, Tries: list}}}).Steps
	}
	require.Len(t, steps(0, 0), 1, "the first repair begins at once")
	for i, seconds := range []time.Duration{5, 10, 20, 40, 80, 160, 320, 320, 320} {
		pause := seconds * time.Second
		require.Empty(t, steps(i+1, pause-time.Nanosecond), "%d did not help", i+1)
		require.Len(t, steps(i+1, pause), 1, "%d did not help", i+1)
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
