package agent_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

func TestAgentEnrolsAndTellsItsInventory(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		r.eventually(func() bool { return r.count(&r.beats) > 0 }, "a heartbeat comes")
		want := gql.NodeIsolationNamespace
		if r.options.ForceProcess {
			want = gql.NodeIsolationProcess
		}
		require.Equal(t, want, r.enrolled.Inventory.Isolation)
		require.Equal(t, 2, r.enrolled.Inventory.Gpus)
		require.True(t, r.enrolled.Inventory.GpusSimulated)
		require.Len(t, r.enrolled.Inventory.Devices, 2)
		require.True(t, r.enrolled.Inventory.Devices[1].Simulated)
		require.NotEmpty(t, r.enrolled.Inventory.Walls.Classes)
		require.Positive(t, r.enrolled.Inventory.MemoryMiB)
		require.NotEmpty(t, r.enrolled.SealingKey)
		for _, name := range []string{"credential.json", "sealing.key", "journal.jsonl"} {
			info, err := os.Stat(filepath.Join(r.dir, name))
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
		}
	})
}

func TestRunReportsResultAndStreamsOutput(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		done := r.do(shell("tsk_a", `echo out; printf 'n\000ul \377' ; echo err >&2; exit 4`))
		require.Equal(t, "FAILED", done.State)
		require.Equal(t, 4, *done.exitCode)
		require.Equal(t, runResult{ExitCode: 4, Stdout: "out\nn\uFFFDul \uFFFD", Stderr: "err\n"},
			resultOf[runResult](t, done))
		require.Equal(t, "out\nn\uFFFDul \uFFFD", done.output["STDOUT"])
		require.Equal(t, "err\n", done.output["STDERR"])
	})
}

func TestOutputIsStreamedWhileTheCommandRuns(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		r.give(shell("tsk_a", "echo early; while ! test -e "+root+"/var/go; do sleep 0.05; done; echo late"))
		r.eventually(func() bool { return r.seen("tsk_a").output["STDOUT"] == "early\n" }, "output before the end")
		require.Equal(t, "RUNNING", r.seen("tsk_a").State)
		r.do(newTask("tsk_b", "WRITE_FILE", map[string]any{"path": "/var/go", "content": ""}))
		require.Equal(t, "early\nlate\n", resultOf[runResult](t, r.ended("tsk_a")).Stdout)
	})
}

func TestOutputIsCapped(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		done := r.do(shell("tsk_a", `head -c 300000 /dev/zero | tr '\0' x; echo end`))
		result := resultOf[runResult](t, done)
		require.True(t, result.Truncated)
		require.Len(t, result.Stdout, 64<<10)
		require.True(t, strings.HasSuffix(result.Stdout, "xend\n"))
		require.Len(t, done.output["STDOUT"], 64<<10)
	})
}

func TestKilledAgentNeitherRepeatsNorForgetsARun(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		count := root + "/var/count"
		r.give(shell("tsk_a", "echo once >> "+count+"; echo begun; while ! test -e "+root+
			"/var/go; do sleep 0.05; done; wc -l < "+count))
		r.eventually(func() bool { return r.seen("tsk_a").output["STDOUT"] == "begun\n" }, "the command has begun")
		r.kill()
		r.run()
		r.do(newTask("tsk_b", "WRITE_FILE", map[string]any{"path": "/var/go", "content": "now"}))
		done := r.ended("tsk_a")
		require.Equal(t, "SUCCEEDED", done.State, done.message)
		require.Equal(t, "begun\n1", strings.TrimSpace(resultOf[runResult](t, done).Stdout))
		require.Equal(t, "begun\n1", strings.TrimSpace(done.output["STDOUT"]))
	})
}

func TestRunThatEndsWhileNoAgentIsThereIsReportedByTheNext(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		r.give(shell("tsk_a", "echo $$ begun; sleep 0.7; echo ended"))
		r.eventually(func() bool { return strings.Contains(r.seen("tsk_a").output["STDOUT"], "begun") },
			"the command has begun")
		r.kill()
		r.eventually(func() bool {
			results, _ := filepath.Glob(filepath.Join(r.dir, "members", member, "state", "results", "tsk_a.json"))
			return len(results) == 1
		}, "the member keeps the result")
		r.run()
		done := r.ended("tsk_a")
		require.Equal(t, "SUCCEEDED", done.State, done.message)
		require.Contains(t, resultOf[runResult](t, done).Stdout, "ended\n")
		r.eventually(func() bool {
			results, _ := filepath.Glob(filepath.Join(r.dir, "members", member, "state", "results", "*"))
			return len(results) == 0
		}, "the member may forget the result")
	})
}

func TestRunWhoseMemberDiesWithTheAgentIsInterruptedNotRepeated(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		mark := filepath.Join(r.dir, "members", member, "fs", "upper", "var", "mark")
		if r.options.ForceProcess {
			mark = filepath.Join(r.dir, "members", member, "root", "var", "mark")
		}
		r.give(shell("tsk_a", "echo x >> "+root+"/var/mark; echo begun; sleep 7791"))
		r.eventually(func() bool { return r.seen("tsk_a").output["STDOUT"] == "begun\n" }, "the command has begun")
		r.kill()
		r.killInit()
		r.run()
		done := r.ended("tsk_a")
		require.Equal(t, "FAILED", done.State)
		require.Equal(t, "INTERRUPTED", resultOf[struct{ Code string }](t, done).Code)
		marks, err := os.ReadFile(mark)
		require.NoError(t, err)
		require.Equal(t, "x\n", string(marks), "the command ran again")
	})
}

func TestRunWhoseMemberDiesFailsHonestly(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		r.give(shell("tsk_a", "echo begun; sleep 7792"))
		r.eventually(func() bool { return r.seen("tsk_a").output["STDOUT"] == "begun\n" }, "the command has begun")
		r.killInit()
		require.Equal(t, "SANDBOX_LOST", resultOf[struct{ Code string }](t, r.ended("tsk_a")).Code)
		require.Equal(t, "begun", strings.TrimSpace(resultOf[runResult](t, r.do(shell("tsk_b", "echo begun"))).Stdout))
	})
}

// killInit kills the member's init as the node would see it.
func (r *rig) killInit() {
	r.t.Helper()
	raw, err := os.ReadFile(filepath.Join(r.dir, "members", member, "sandbox.json"))
	require.NoError(r.t, err)
	var known struct {
		InitPID   int    `json:"initPid"`
		InitStart uint64 `json:"initStart"`
	}
	require.NoError(r.t, json.Unmarshal(raw, &known))
	require.NoError(r.t, unix.Kill(known.InitPID, unix.SIGKILL))
	require.True(r.t, procfs.WaitGone(known.InitPID, known.InitStart, patience))
}

func TestPlatformThatWasAwayMissesNothing(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		r.give(shell("tsk_a", "echo before; sleep 0.5; echo while away"))
		r.eventually(func() bool { return r.seen("tsk_a").output["STDOUT"] == "before\n" }, "the command has begun")
		r.stop()
		r.eventually(func() bool { return strings.Contains(r.log.text(), `"msg":"task done","task_id":"tsk_a"`) },
			"the command ends while the platform is away")
		require.Contains(t, r.log.text(), contextOfA, "its lines lead to whoever requested it")
		r.give(shell("tsk_b", "echo asked meanwhile"))
		r.start()
		require.Equal(t, "before\nwhile away\n", r.ended("tsk_a").output["STDOUT"])
		require.Equal(t, "asked meanwhile\n", resultOf[runResult](t, r.ended("tsk_b")).Stdout)
	})
}

func TestOutcomeSurvivesAgentAndPlatformBothGone(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		r.mu.Lock()
		begun := false
		r.refuse = func(operation string) bool {
			if operation == "ReportNodeTask" && !begun { // it may begin
				begun = true
				return false
			}
			return operation != "NodeHeartbeat"
		}
		r.mu.Unlock()
		r.give(shell("tsk_a", "echo $RANDOM; cat /proc/sys/kernel/random/uuid"))
		r.eventually(func() bool { return strings.Contains(r.log.text(), `"msg":"task done","task_id":"tsk_a"`) },
			"the command ends")
		r.kill()
		before := len(r.log.text())
		r.run()
		r.eventually(func() bool {
			_, line, again := strings.Cut(r.log.text()[before:], `"msg":"outcome will be reported again"`)
			line, _, _ = strings.Cut(line, "\n")
			return again && strings.Contains(line, contextOfA)
		}, "the next agent's line about the outcome has the ids")
		r.mu.Lock()
		r.refuse = nil
		r.mu.Unlock()
		done := r.ended("tsk_a")
		require.Equal(t, "SUCCEEDED", done.State)
		require.Equal(t, resultOf[runResult](t, done).Stdout, done.output["STDOUT"])
		require.Len(t, strings.TrimSpace(done.output["STDOUT"]), 36)
	})
}

func TestRepeatedDeliveryRunsOnceAndReportsAgain(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		task := shell("tsk_a", "echo once >> "+root+"/var/count; wc -l < "+root+"/var/count")
		r.give(task)
		for range 5 {
			r.push(task)
		}
		require.Equal(t, "1", strings.TrimSpace(resultOf[runResult](t, r.ended("tsk_a")).Stdout))
		before := len(r.seen("tsk_a").reports)
		r.eventually(func() bool {
			r.push(task) // one that comes while the outcome's report is under way is answered by that report
			return len(r.seen("tsk_a").reports) > before
		}, "the outcome is reported again")
		reports := r.seen("tsk_a").reports
		require.Equal(t, gql.NodeTaskStateSucceeded, reports[len(reports)-1].State)
		require.JSONEq(t, string(r.seen("tsk_a").result), string(reports[len(reports)-1].Result))
		require.Equal(t, "1", strings.TrimSpace(resultOf[runResult](t,
			r.do(shell("tsk_b", "wc -l < "+root+"/var/count"))).Stdout))
	})
}

func TestStaleFenceIsRefusedAndAHigherOneRunsAgain(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		task := shell("tsk_a", "echo x >> "+root+"/var/count; wc -l < "+root+"/var/count")
		task.Fence = 5
		require.Equal(t, "1", strings.TrimSpace(resultOf[runResult](t, r.do(task)).Stdout))
		stale := task
		stale.Fence = 4
		r.push(stale)
		r.eventually(func() bool {
			return strings.Contains(r.log.text(), "stale fence refused")
		}, "the refusal is logged")
		task.Fence = 6
		require.Equal(t, "2", strings.TrimSpace(resultOf[runResult](t, r.do(task)).Stdout))
	})
}

func TestHigherFenceReplacesTheRunThatGoesOn(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		task := shell("tsk_a", "echo x >> "+root+"/var/count; echo begun; test $(wc -l < "+root+
			"/var/count) = 2 || sleep 7793; echo second")
		r.give(task)
		r.eventually(func() bool { return r.seen("tsk_a").output["STDOUT"] == "begun\n" }, "the first one runs")
		task.Fence = 2
		done := r.do(task)
		require.Equal(t, "SUCCEEDED", done.State, "%s %s", done.message, done.result)
		for _, report := range done.reports {
			require.Equal(t, 2, report.Fence)
		}
	})
}

func TestTimeoutKillsGrandchildren(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		task := shell("tsk_a", "setsid sh -c 'setsid env -i sleep 7794 & sleep 7795' & sleep 7796")
		task.TimeoutSeconds = 1
		done := r.do(task)
		require.Equal(t, "TIMED_OUT", done.State)
		residue := resultOf[struct{ Residue sandbox.Residue }](t, r.do(newTask("tsk_r", "RESIDUE", struct{}{}))).Residue
		require.NotContains(t, fmt.Sprint(residue.Processes), "sleep")
	})
}

func TestChangesOfAMemberHappenInOrder(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		for i := range 30 {
			r.give(newTask("tsk_w"+strconv.Itoa(i), "WRITE_FILE",
				map[string]any{"path": "/var/order", "content": strconv.Itoa(i)}))
		}
		require.Equal(t, "29", resultOf[runResult](t, r.do(shell("tsk_a", "cat "+root+"/var/order"))).Stdout)
	})
}
