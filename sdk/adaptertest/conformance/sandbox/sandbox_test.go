package sandbox_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

// rig is one member's sandbox.
type rig struct {
	*sandbox.Nodes
	t   *testing.T
	dir string
}

func newRig(t *testing.T) rig {
	t.Helper()
	dir := t.TempDir()
	nodes, err := sandbox.New(dir)
	require.NoError(t, err)
	t.Cleanup(nodes.Close)
	return rig{nodes, t, dir}
}

func (r rig) do(kind adapter.TaskKind, spec any) sandbox.Outcome {
	r.t.Helper()
	return r.within(r.t.Context(), kind, spec, time.Minute)
}

func (r rig) within(ctx context.Context, kind adapter.TaskKind, spec any, patience time.Duration) sandbox.Outcome {
	r.t.Helper()
	raw, err := json.Marshal(spec)
	require.NoError(r.t, err)
	return r.Do(ctx, sandbox.Task{InstanceID: "ins_1", MemberID: "mem_1", Kind: kind, Spec: raw, Timeout: patience})
}

// shell is a command that finds the member's files below $R.
func shell(script string) adapter.RunCommand {
	return adapter.RunCommand{Command: []string{"sh", "-c", `R="$GPUAAS_MEMBER_ROOT"; ` + script}}
}

func stateOf(t *testing.T, out sandbox.Outcome) string {
	t.Helper()
	process, ok := out.Result["process"].(map[string]any)
	require.True(t, ok, "%+v", out)
	state, _ := process["state"].(string)
	return state
}

func TestFilesAndCommandsLiveInTheMembersDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	out := r.do(adapter.TaskWriteFile, adapter.WriteFile{Path: "/srv/x/y", Content: "hello", Mode: "0640",
		MakeDirs: true})
	require.Equal(t, adapter.TaskSucceeded, out.State, out.Message)
	out = r.do(adapter.TaskRun, shell(`cat "$R/srv/x/y"; echo "$GPUAAS_MEMBER_ID" >&2; exit 3`))
	require.Equal(t, adapter.TaskFailed, out.State)
	require.Equal(t, "hello", out.Stdout)
	require.Equal(t, "mem_1\n", out.Stderr)
	require.Equal(t, 3, *out.ExitCode)
}

func TestAPathThatLeadsOutIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Equal(t, adapter.TaskSucceeded, r.do(adapter.TaskRun, shell(`ln -s / "$R/out"`)).State)
	for _, path := range []string{"/out/tmp/conformance-escaped", "relative", "/"} {
		out := r.do(adapter.TaskWriteFile, adapter.WriteFile{Path: path, Content: "x"})
		require.Equal(t, adapter.TaskFailed, out.State, path)
	}
	require.NoFileExists(t, "/tmp/conformance-escaped")
	out := r.do(adapter.TaskWriteFile, adapter.WriteFile{Path: "/../../inside", Content: "x"})
	require.Equal(t, adapter.TaskSucceeded, out.State, out.Message)
	require.FileExists(t, filepath.Join(r.dir, "mem_1", "inside"))
}

func TestUnknownFieldsAndKindsAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	out := r.do(adapter.TaskRun, map[string]any{"command": []string{"true"}, "shell": true})
	require.Equal(t, adapter.TaskFailed, out.State)
	require.Equal(t, "SPEC_INVALID", out.Result["code"])
	require.Equal(t, adapter.TaskFailed, r.do("DANCE", map[string]any{}).State)
}

func TestASealedValueOpensForItsInstanceOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	wanted := map[string]adapter.TaskState{"ins_1": adapter.TaskSucceeded, "ins_2": adapter.TaskFailed}
	for instance, state := range wanted {
		sealed, err := adapter.Seal(r.SealingKey(), instance, []byte("secret"))
		require.NoError(t, err)
		require.Equal(
			t, state, r.do(adapter.TaskWriteFile, adapter.WriteFile{Path: "/key-" + instance, Sealed: sealed}).State,
		)
	}
	content, err := os.ReadFile(filepath.Join(r.dir, "mem_1", "key-ins_1"))
	require.NoError(t, err)
	require.Equal(t, "secret", string(content))
}

func TestAProcessIsSupervisedStoppedAndStartedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	start := adapter.StartProcess{Name: "p", Command: []string{"sleep", "600"},
		Restart: adapter.Restart{Policy: "never"}}
	require.Equal(t, "running", stateOf(t, r.do(adapter.TaskStartProcess, start)))
	require.Equal(t, "running", stateOf(t, r.do(adapter.TaskStartProcess, start)), "the same again changes nothing")
	other := start
	other.Command = []string{"sleep", "700"}
	require.Equal(t, "PROCESS_SPEC_DIFFERS", r.do(adapter.TaskStartProcess, other).Result["code"])
	require.Equal(t, "absent", stateOf(t, r.do(adapter.TaskStopProcess, adapter.StopProcess{Name: "p"})))
	require.Equal(t, "absent", stateOf(t, r.do(adapter.TaskInspectProcess, adapter.InspectProcess{Name: "p"})))
	require.Equal(t, "running", stateOf(t, r.do(adapter.TaskStartProcess, other)))
}

func TestResidueSeesWhatLeftItsSessionAndTeardownEndsIt(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("there is no process table to read")
	}
	r := newRig(t)
	require.Equal(
		t,
		adapter.TaskSucceeded,
		r.do(adapter.TaskRun, shell(`echo x > "$R/left"; setsid sleep 600 >/dev/null 2>&1 &`)).State,
	)
	var left adapter.Residue
	require.Eventually(t, func() bool {
		var err error
		left, err = r.Residue("mem_1")
		return err == nil && len(left.Processes) == 1
	}, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, []string{"/left"}, left.Names)
	out := r.do(adapter.TaskTeardown, adapter.Teardown{})
	require.Equal(t, adapter.TaskSucceeded, out.State, out.Message)
	left, err := r.Residue("mem_1")
	require.NoError(t, err)
	require.True(t, left.Empty())
	require.NoDirExists(t, filepath.Join(r.dir, "mem_1"))
	require.Equal(
		t, adapter.TaskSucceeded, r.do(adapter.TaskTeardown, adapter.Teardown{}).State,
		"what is not there is torn down",
	)
}

func TestAProcessThatIsReplacedByAnotherIsAlwaysSeen(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("there is no process table to read")
	}
	r := newRig(t)
	again := shell(
		`printf '#!/bin/sh\nexec "$0"\n' > "$R/again"; chmod +x "$R/again"; setsid "$R/again" >/dev/null 2>&1 &`)
	require.Equal(t, adapter.TaskSucceeded, r.do(adapter.TaskRun, again).State)
	require.Eventually(t, func() bool {
		left, err := r.Residue("mem_1")
		return err == nil && len(left.Processes) == 1
	}, 10*time.Second, 10*time.Millisecond)
	for range 300 {
		left, err := r.Residue("mem_1")
		require.NoError(t, err)
		require.Len(t, left.Processes, 1)
	}
	require.Equal(t, adapter.TaskSucceeded, r.do(adapter.TaskTeardown, adapter.Teardown{}).State)
}

func TestATimeoutAndACancelKillTheCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	began := time.Now()
	require.Equal(
		t, adapter.TaskTimedOut, r.within(t.Context(), adapter.TaskRun, shell("sleep 600"), 50*time.Millisecond).State,
	)
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(50*time.Millisecond, cancel)
	defer timer.Stop()
	require.Equal(t, adapter.TaskCanceled, r.within(ctx, adapter.TaskRun, shell("sleep 600"), time.Minute).State)
	require.Less(t, time.Since(began), 30*time.Second)
}

func TestAProbeTriesAsOftenAsItSays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	count := &adapter.ExecProbe{
		Command: []string{
			"sh",
			"-c",
			`echo x >> "$GPUAAS_MEMBER_ROOT/tries"; test "$(wc -l < "$GPUAAS_MEMBER_ROOT/tries")" -ge 3`,
		},
	}
	out := r.do(adapter.TaskProbe, adapter.Probe{Exec: count, Attempts: 2, IntervalSeconds: 0.01})
	require.Equal(t, adapter.TaskFailed, out.State)
	out = r.do(adapter.TaskProbe, adapter.Probe{Exec: count, Attempts: 2, IntervalSeconds: 0.01})
	require.Equal(t, adapter.TaskSucceeded, out.State, out.Message)
	require.Equal(t, 1, out.Result["attempts"])
	require.Equal(t, adapter.TaskFailed, r.do(adapter.TaskProbe, adapter.Probe{TCP: &adapter.TCPProbe{Port: 1}}).State)
}

func TestFractionsOfSecondsAreKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	start := nodetask.StartProcess{Name: "p", Command: []string{"sh", "-c",
		"trap '' TERM; while :; do sleep 600; done"},
		StopTimeoutSeconds: 0.05}
	require.Equal(t, "running", stateOf(t, r.do(adapter.TaskStartProcess, start)))
	begun := time.Now()
	require.Equal(t, "absent", stateOf(t, r.do(adapter.TaskStopProcess, adapter.StopProcess{Name: "p"})))
	require.Less(t, time.Since(begun), nodetask.DefaultStopTimeout)
	slow := nodetask.Probe{Exec: &nodetask.ExecProbe{Command: []string{"sleep", "600"}}, TimeoutSeconds: 0.05}
	require.Equal(t, adapter.TaskFailed, r.do(adapter.TaskProbe, slow).State)
	require.Less(t, time.Since(begun), nodetask.DefaultStopTimeout)
}
