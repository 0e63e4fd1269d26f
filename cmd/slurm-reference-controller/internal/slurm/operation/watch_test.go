package operation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// paddedLine pads values to the widths of [report.QueueFormat], as squeue does.
func paddedLine(values ...string) string {
	var line strings.Builder
	for i, field := range strings.Split(report.QueueFormat(), ",") {
		_, width, _ := strings.Cut(field, ":")
		fmt.Fprintf(&line, "%-"+width+"s", values[i])
	}
	return line.String() + "\n"
}

// jobLine is a job as squeue prints it with the columns of [report.QueueFormat].
func jobLine(id, user, state, node, started, name string) string {
	return paddedLine(id, user, "main", state, "None", "0", "1", node, "2026-11-20T10:00:00", started, "N/A", name)
}

func TestNothingButSlurmsWordIsTakenForDrained(t *testing.T) {
	t.Parallel()
	running := jobLine("7", "nobody", "RUNNING", "w1", "2026-11-20T10:00:05", "train") + "\n"
	cases := map[string]struct {
		printed                string
		drained, left, ourHand bool
	}{
		"drained":                  {"d\ndrained|platform drain op_1\n=== jobs\n\n=== sure\n", true, false, true},
		"drained by somebody else": {"d\ndrained|bad disk\n=== jobs\n\n=== sure\n", true, false, false},
		"still draining": {
			"d\ndraining|platform drain op_1\n=== jobs\n" + running + "=== sure\n", false, false, true,
		},
		"drained with a job": {
			"d\ndrained|platform drain op_1\n=== jobs\n" + running + "=== sure\n", false, false, true,
		},
		"jobs not listed":           {"d\ndrained|platform drain op_1\n=== jobs\n", false, false, true},
		"silent":                    {"d\ndrained*|platform drain op_1\n=== jobs\n\n=== sure\n", false, true, true},
		"down":                      {"d\ndown*|Not responding\n=== jobs\n\n=== sure\n", false, true, false},
		"down, jobs not listed":     {"d\ndown*|Not responding\n=== jobs\n", false, false, false},
		"slurmctld does not answer": {"d\n\n=== jobs\n", false, false, false},
		"nothing":                   {"", false, false, false},
	}
	for name, c := range cases {
		seen := parsePoll(adapter.TaskResult{State: adapter.TaskSucceeded, Stdout: c.printed})
		require.Equal(t, c.drained, seen.drained(), name)
		require.Equal(t, c.left, seen.abandoned(), name)
		require.Equal(t, c.ourHand, seen.held(), name)
	}
	failed := parsePoll(adapter.TaskResult{State: adapter.TaskFailed, Stdout: cases["drained"].printed})
	require.False(t, failed.drained(), "a command that failed says nothing")
}

func TestWaitingIsDescribed(t *testing.T) {
	t.Parallel()
	seen := parsePoll(
		adapter.TaskResult{State: adapter.TaskSucceeded, Stdout: "d\ndraining|platform drain op_1\n=== jobs\n" +
			jobLine("7", "nobody", "RUNNING", "w1", "2026-11-20T10:00:05", "train a model") + "\n=== sure\n"},
	)
	require.Equal(t, "w1 is draining: waiting for job 7", seen.describe(layout.Worker{Slot: 1}))
	require.Equal(t, []adapter.Work{{
		Kind: "job", ID: "7", Name: "train a model", MemberID: "mem_1", Owner: "nobody", Message: "running w1",
		Since: time.Date(2026, 11, 20, 10, 0, 5, 0, time.UTC),
	}}, report.WorkOf(seen.Jobs, "mem_1"))
	require.Contains(t, polled{State: "drained*"}.describe(layout.Worker{}), "does not count as drained")
	require.Contains(t, polled{}.describe(layout.Worker{}), "slurmctld does not report")
}

func TestNodesThatAnswerAreNotForgotten(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{
		"idle": true, "mixed": true, "drained": true, "idle*": false, "down": false, "unknown": false, "": false,
	} {
		require.Equal(t, want, answers(state), state)
	}
	turns := NewTurns()
	done := turns.markJoining([]adapter.Member{{ID: "mem_1"}})
	require.True(t, turns.isJoining("mem_1"))
	again := turns.markJoining([]adapter.Member{{ID: "mem_1"}})
	done()
	require.True(t, turns.isJoining("mem_1"), "another operation still brings it up")
	again()
	require.False(t, turns.isJoining("mem_1"))
	unlock, err := turns.Lock(t.Context(), "ins_1")
	require.NoError(t, err)
	elsewhere, err := turns.Lock(t.Context(), "ins_2")
	require.NoError(t, err)
	elsewhere()
	unlock()
}
