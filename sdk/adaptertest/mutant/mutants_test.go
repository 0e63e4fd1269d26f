package mutant

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// together is how many mutants are exercised at the same time: they mostly wait.
const together = 32

// exercise runs the whole suite over one mutant.
func exercise(
	t *testing.T, fault string, burst int, runner standin.Nodes, only ...string,
) (conformance.Report, error) {
	return conformance.Run(t.Context(), conformance.Options{
		Name: name, Launcher: newLauncher(fault), Runner: runner, Only: only, Manifest: json.RawMessage(manifest),
		Work: &conformance.Work{Action: "tiny.note", Input: json.RawMessage(`{"text":"work on {member}"}`)},
		Bounds: conformance.Bounds{
			Overall: 2 * time.Minute, Clause: 30 * time.Second, Operation: 5 * time.Second, Request: 5 * time.Second,
			Start: 10 * time.Second, Settle: 200 * time.Millisecond, Near: 500 * time.Millisecond,
			Grace: 3 * time.Second, Burst: burst,
		},
	})
}

func TestTinyAdapterWithoutAFaultPassesEveryClause(t *testing.T) {
	t.Parallel()
	report, err := exercise(t, "", 510, nil)
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, report.WriteText(&text))
	require.Len(t, report.Results, report.Count(conformance.Passed), text.String())
	require.Len(t, report.Results, len(conformance.Clauses()))
}

// The mutants share the machine, and the suite's bounds are times: one that shows otherwise among the others is
// exercised again by itself, and that is what counts.
func TestEachMutantFailsExactlyTheClauseItBreaks(t *testing.T) {
	t.Parallel()
	faults := chosen()
	reports, failures := make([]conformance.Report, len(faults)), make([]error, len(faults))
	slots := make(chan struct{}, together)
	var all sync.WaitGroup
	for n, fault := range faults {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			reports[n], failures[n] = exercise(t, fault, burstOf(fault), newNodes())
		})
	}
	all.Wait()
	for n, fault := range faults {
		t.Run(fault, func(t *testing.T) {
			broken := clauseOf(fault)
			if report := reports[n]; failures[n] != nil || !slices.Equal(report.Failures(), []string{broken}) {
				t.Logf("exercised again by itself: %v\n%s", failures[n], told(report))
				reports[n], failures[n] = exercise(t, fault, burstOf(fault), newNodes())
			}
			require.NoError(t, failures[n])
			require.Equal(t, []string{broken}, reports[n].Failures(), "%s", told(reports[n]))
			require.False(t, reports[n].OK())
		})
	}
}

// more are faults that break a clause which another mutant breaks in another way.
var more = map[string]string{
	"usage.skips":     "usage.cursor",       // its cursor passes over records
	"describe.fields": "describe.valid",     // a component has no displayName
	"status.fields":   "dispatch.completes", // a status has no message
	"status.words":    "dispatch.completes", // a member's health is "ok"
	"observe.words":   "observe.valid",      // a member's health is "ok" in an observation
	"cancel.fields":   "answer.schema",      // the result of a cancel has no message
	"upgrade.looks":   "upgrade.changes",    // an upgrade only looks, as an observation does
	"remove.headless": "remove.each",        // nobody leads after the first member has left
	"secret.failure":  "secret.log",         // the token is logged of what fails
}

// The faults that an outsider planted and that passed once: each is caught when its group alone is run.
func TestAFaultIsCaughtWhenItsGroupAloneIsRun(t *testing.T) {
	t.Parallel()
	for fault, only := range map[string]string{
		"secret.log": "secret.log", "secret.failure": "secret.log", "drain.waits": "drain",
		"upgrade.changes": "upgrade",
		"remove.headless": "remove",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			report, err := exercise(t, fault, 20, newNodes(), only)
			require.NoError(t, err)
			require.Equal(t, []string{clauseOf(fault)}, report.Failures(), "%s", told(report))
		})
	}
}

// A refusal is not a failure of an action that may be refused, and is one of an action that may not.
func TestAnActionThatMayBeRefusedIsNoFailure(t *testing.T) {
	t.Parallel()
	for _, refusable := range [][]string{{"tiny.note"}, nil} {
		report, err := conformance.Run(t.Context(), conformance.Options{
			Name: name, Launcher: newLauncher("action.refused"), Runner: newNodes(), Refusable: refusable,
			Only: []string{"action.output", "tenancy.keys"}, Bounds: conformance.Bounds{Settle: 50 * time.Millisecond},
		})
		require.NoError(t, err)
		if refusable != nil {
			require.Empty(t, report.Failures(), told(report))
			continue
		}
		require.Equal(t, []string{"action.output", "tenancy.keys"}, report.Failures(), told(report))
	}
}

// A failure states what differed, which task failed and what it wrote.
func TestAFailureTellsWhatDifferedAndWhatATaskWrote(t *testing.T) {
	t.Parallel()
	report, err := exercise(t, "dispatch.mismatch", 20, newNodes(), "dispatch.mismatch")
	require.NoError(t, err)
	failed := resultOf(t, report, "dispatch.mismatch")
	last := failed.Exchanges[len(failed.Exchanges)-1]
	require.Contains(t, last.SentDiff, "change.conformance: true was added")
	require.NotContains(t, last.Sent+last.Came, "gpu_op_")

	report, err = exercise(t, "task.fails", 20, nil, "dispatch.completes")
	require.NoError(t, err)
	failed = resultOf(t, report, "dispatch.completes")
	require.Len(t, failed.Tasks, 1)
	require.Equal(t, "RUN", failed.Tasks[0].Kind)
	require.Equal(t, 3, *failed.Tasks[0].ExitCode)
	require.Contains(t, failed.Tasks[0].Stderr, "no such disk")
	var text strings.Builder
	require.NoError(t, report.WriteText(&text))
	require.Contains(t, text.String(), "stderr no such disk")
	require.Contains(t, text.String(), "exit code 3")
}

func resultOf(t *testing.T, report conformance.Report, id string) conformance.Result {
	t.Helper()
	at := slices.IndexFunc(report.Results, func(r conformance.Result) bool { return r.ID == id })
	require.GreaterOrEqual(t, at, 0)
	require.Equal(t, conformance.Failed, report.Results[at].Outcome)
	return report.Results[at]
}

// clauseOf is the clause that a fault breaks.
func clauseOf(fault string) string {
	if clause, ok := more[fault]; ok {
		return clause
	}
	return fault
}

// burstOf is how many operations fill the feed: as many as a page holds where that is what is broken.
func burstOf(fault string) int {
	if fault == "feed.page" {
		return 510
	}
	return 20
}

// usual are the mutants of every test run, some of each group of clauses.
func usual() []string {
	return []string{
		"describe.stable", "dispatch.idempotent", "dispatch.concurrent", "dispatch.mismatch", "dispatch.lost_reply",
		"attempt.stale",
		"attempt.token", "feed.waits", "feed.lossless", "cancel.running", "cancel.stops", "cancel.tombstone",
		"cancel.race",
		"deadline.near",
		"body.config",
		"signature.symmetric", "tenancy.instance", "tenancy.token", "observe.honest", "observe.patient",
		"action.idempotent",
		"usage.cursor",
		"usage.stable", "usage.skips", "crash.usage", "describe.fields", "status.fields", "status.words",
		"plan.harmless", "answer.schema", "observe.words", "drain.asks", "drain.waits", "drain.each", "upgrade.changes",
		"upgrade.looks", "remove.headless", "recover.each", "describe.manifest",
		"add.undone", "drain.canceled", "remove.several",
		"force.redispatch", "decommission.clean", "decommission.config", "crash.resumes", "crash.once",
		"secret.answers",
	}
}

// chosen are the mutants of this run: the usual ones, or with CONFORMANCE_MUTANTS=all one for every
// clause there is, or those of a group such as CONFORMANCE_MUTANTS=cancel.
func chosen() (faults []string) {
	only := os.Getenv("CONFORMANCE_MUTANTS")
	if only == "" {
		return usual()
	}
	for fault := range more {
		if only == "all" || strings.HasPrefix(fault, only+".") {
			faults = append(faults, fault)
		}
	}
	for _, clause := range conformance.Clauses() {
		if only == "all" || strings.HasPrefix(clause.ID, only+".") {
			faults = append(faults, clause.ID)
		}
	}
	return faults
}

// told returns what a report states about the clauses that did not pass.
func told(report conformance.Report) string {
	var lines []string
	for _, result := range report.Results {
		if result.Outcome != conformance.Passed {
			lines = append(lines, fmt.Sprintf("%s %s: %s", result.Outcome, result.ID, result.Reason))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
