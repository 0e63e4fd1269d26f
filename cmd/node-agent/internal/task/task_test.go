package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/logs"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/masks"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/seal"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/task"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
	"github.com/gpuaas/app-platform/sdk/nodetask"
)

const (
	member   = "mem_0000000000000000000task00"
	instance = "ins_0000000000000000000task00"
)

func TestMain(m *testing.M) {
	memberinit.Dispatch(os.Args)
	os.Exit(m.Run())
}

func setup(t *testing.T) *task.Executor {
	t.Helper()
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	key, err := seal.LoadOrCreate(dir)
	require.NoError(t, err)
	hidden := masks.NewKeeper(dir, key)
	kept, err := logs.New(logs.Options{StateDir: dir, Masks: hidden, Log: log})
	require.NoError(t, err)
	t.Cleanup(kept.Close)
	manager, err := sandbox.NewManager(t.Context(), sandbox.Options{StateDir: dir, ForceProcess: true, Log: log,
		Ending: func(ctx context.Context, id string) { _ = kept.Keep(ctx, id) }})
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := manager.Teardown(context.Background(), member)
		require.NoError(t, err)
	})
	return &task.Executor{Sandboxes: manager, Key: key, Started: func(string, string) error { return nil }, Log: log,
		Logs: kept, Masks: hidden}
}

func do(t *testing.T, e *task.Executor, kind, spec string) journal.Outcome {
	t.Helper()
	work := task.Task{ID: "tsk_" + strings.ToLower(kind), Fence: 1, Kind: nodetask.Kind(kind), MemberID: member,
		InstanceID: instance, Spec: json.RawMessage(spec), Timeout: 20 * time.Second}
	outcome, err := e.Do(t.Context(), work, task.Attempt{Output: func(wire.Output) {}})
	require.NoError(t, err)
	return outcome
}

func TestBadSpecificationIsRefusedByItsField(t *testing.T) {
	t.Parallel()
	e := setup(t)
	digest := "sha256:" + strings.Repeat("a", 64)
	long := `"` + strings.Repeat("x", 1<<20+1) + `"`
	for _, c := range []struct{ kind, spec, says string }{
		{"RUN", `{}`, "command: must name a program"},
		{"RUN", `{"command":[]}`, "command:"},
		{"RUN", `{"command":"ls"}`, "command: must be a list"},
		{"RUN", `{"comand":["ls"]}`, `unknown field "comand"`},
		{"RUN", `{"command":["ls"]} {}`, "more than one document"},
		{"RUN", ``, "spec: is missing"},
		{"RUN", `{"command":["a\u0000b"]}`, "command[0]: contains a NUL"},
		{"RUN", `{"command":["ls"],"env":[{"name":"A B"}]}`, "env[0].name:"},
		{"RUN", `{"command":["ls"],"env":[{"name":"A","value":"x","sealed":"y"}]}`, "env[0]: has both"},
		{"RUN", `{"command":["ls"],"env":[{"name":"A","sealed":"y"}]}`, "env[0].sealed:"},
		{"RUN", `{"command":["ls"],"workDir":"relative"}`, "workDir:"},
		{"RUN", `{"command":["ls"],"workDir":"/no/such/dir"}`, "workDir:"},
		{"RUN", `{"command":["ls"],"user":"no-such-user"}`, "user:"},
		{"RUN", `{"command":["ls"],"stdin":` + long + `}`, "stdin:"},
		{"RUN", `{"command":["no-such-program"]}`, "command:"},
		{"WRITE_FILE", `{"path":"relative"}`, "path:"},
		{"WRITE_FILE", `{"path":"/x","mode":"rw"}`, "mode:"},
		{"WRITE_FILE", `{"path":"/x","mode":"77777"}`, "mode:"},
		{"WRITE_FILE", `{"path":"/x","contentBase64":"%"}`, "contentBase64:"},
		{"WRITE_FILE", `{"path":"/x","content":"a","contentBase64":"YQ=="}`, "content: only one of"},
		{"WRITE_FILE", `{"path":"/x","content":"a","sealed":"YQ=="}`, "content:"},
		{"WRITE_FILE", `{"path":"/x","content":` + long + `}`, "content:"},
		{"WRITE_FILE", `{"path":"/x","owner":"no-such-user"}`, "owner:"},
		{"START_PROCESS", `{"name":"../x","command":["ls"]}`, "name:"},
		{"START_PROCESS", `{"name":"x","command":["ls"],"restart":{"policy":"perhaps"}}`, "restart.policy:"},
		{"START_PROCESS", `{"name":"x","command":["ls"],"restart":{"policy":"never","maxRestarts":-1}}`,
			"restart.maxRestarts:"},
		{"START_PROCESS", `{"name":"x","command":["ls"],"restart":{"policy":"never","backoffSeconds":-1}}`,
			"restart.backoffSeconds:"},
		{"START_PROCESS", `{"name":"x","command":["ls"],"stopSignal":"LOUD"}`, "stopSignal:"},
		{"START_PROCESS", `{"name":"x","command":["ls"],"stopTimeoutSeconds":4000}`, "stopTimeoutSeconds:"},
		{"STOP_PROCESS", `{}`, "name:"},
		{"INSPECT_PROCESS", `{"name":""}`, "name:"},
		{"PROBE", `{}`, "exactly one of exec, tcp and http, has 0"},
		{"PROBE", `{"tcp":{"port":1},"http":{"port":1}}`, "has 2"},
		{"PROBE", `{"tcp":{"port":0}}`, "tcp.port:"},
		{"PROBE", `{"http":{"port":80,"path":"x"}}`, "http.path:"},
		{"PROBE", `{"http":{"port":80,"expectStatus":42}}`, "http.expectStatus:"},
		{"PROBE", `{"exec":{"command":[]}}`, "command:"},
		{"PROBE", `{"tcp":{"port":1},"attempts":-1}`, "attempts:"},
		{"PROBE", `{"tcp":{"port":1},"timeoutSeconds":-1}`, "timeoutSeconds:"},
		{"FETCH_ARTIFACT", `{"path":"/x"}`, "digest:"},
		{"FETCH_ARTIFACT", `{"digest":"sha256:../x","path":"/x"}`, "digest:"},
		{"FETCH_ARTIFACT", `{"digest":"` + digest + `","path":"x"}`, "path:"},
		{"FETCH_ARTIFACT", `{"digest":"` + digest + `","path":"/a/.."}`, "path:"},
		{"FETCH_ARTIFACT", `{"digest":"` + digest + `","path":"/x","as":"zip"}`, "as:"},
		{"FETCH_ARTIFACT", `{"digest":"` + digest + `","path":"/x","mode":"rw"}`, "mode:"},
		{"FETCH_ARTIFACT", `{"digest":"` + digest + `","path":"/x","unpack":true}`, `unknown field "unpack"`},
		{"CLOUD_INIT", `{"instanceId":"i-1"}`, "userData:"},
		{"CLOUD_INIT", `{"instanceId":"i-1","userData":"x","userDataSealed":"y"}`, "userData:"},
		{"CLOUD_INIT", `{"instanceId":"../x","userData":"x"}`, "instanceId:"},
		{"CLOUD_INIT", `{"instanceId":"i-1","userData":"x","hostname":"a b"}`, "hostname:"},
		{"CLOUD_INIT", `{"instanceId":"i-1","userData":"x"}`, "are not containers"},
		{"RESIDUE", `{"x":1}`, `unknown field "x"`},
		{"TEARDOWN", `{"x":1}`, `unknown field "x"`},
		{"DANCE", `{}`, "kind:"},
	} {
		outcome := do(t, e, c.kind, c.spec)
		require.Equal(t, task.StateFailed, outcome.State, "%s %.80s", c.kind, c.spec)
		require.Contains(t, outcome.Message, c.says, "%s %.80s", c.kind, c.spec)
		require.Contains(t, string(outcome.Result), `"code":"`)
	}
}

func TestBadMemberIDIsRefused(t *testing.T) {
	t.Parallel()
	e := setup(t)
	for _, kind := range []string{"RUN", "RESIDUE", "TEARDOWN"} {
		spec := `{}`
		if kind == "RUN" {
			spec = `{"command":["true"]}`
		}
		outcome, err := e.Do(t.Context(), task.Task{ID: "tsk_a", Kind: nodetask.Kind(kind), MemberID: "../../etc",
			InstanceID: instance, Spec: json.RawMessage(spec), Timeout: time.Second}, task.Attempt{})
		require.NoError(t, err)
		require.Equal(t, task.StateFailed, outcome.State)
		require.Contains(t, outcome.Message, "memberId:")
	}
}

func probeResult(t *testing.T, outcome journal.Outcome) task.ProbeResult {
	t.Helper()
	var result task.ProbeResult
	require.NoError(t, json.Unmarshal(outcome.Result, &result))
	return result
}

func TestProbesSucceedAndFailForWhatTheySee(t *testing.T) {
	t.Parallel()
	e := setup(t)
	require.Equal(t, task.StateSucceeded, do(t, e, "RUN", `{"command":["true"]}`).State)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ready" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(server.Close)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	closed := closedPort(t)
	for _, c := range []struct {
		spec   string
		ok     bool
		detail string
	}{
		{fmt.Sprintf(`{"tcp":{"port":%d}}`, port), true, "connected"},
		{fmt.Sprintf(`{"tcp":{"port":%d},"attempts":2,"intervalSeconds":0.01}`, closed), false, "refused"},
		{fmt.Sprintf(`{"http":{"port":%d,"path":"/ready"}}`, port), true, "200"},
		{fmt.Sprintf(`{"http":{"port":%d,"path":"/other"}}`, port), false, "418"},
		{fmt.Sprintf(`{"http":{"port":%d,"path":"/other","expectStatus":418}}`, port), true, "418"},
		{`{"exec":{"command":["sh","-c","echo fine"]}}`, true, "fine"},
		{`{"exec":{"command":["sh","-c","echo broken >&2; exit 3"]}}`, false, "exit code 3: broken"},
		{`{"exec":{"command":["sleep","7741"]},"timeoutSeconds":0.2}`, false, "not done within"},
	} {
		outcome := do(t, e, "PROBE", c.spec)
		result := probeResult(t, outcome)
		require.Equal(t, c.ok, result.OK, "%s: %s", c.spec, result.Detail)
		require.Equal(t, c.ok, outcome.State == task.StateSucceeded, c.spec)
		require.Contains(t, result.Detail, c.detail, c.spec)
	}
	require.Equal(t, 2, probeResult(t, do(t, e, "PROBE",
		fmt.Sprintf(`{"tcp":{"port":%d},"attempts":2,"intervalSeconds":0.01}`, closed))).Attempts)
}

func closedPort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func TestProbeSucceedsAtALaterAttempt(t *testing.T) {
	t.Parallel()
	e := setup(t)
	require.Equal(t, task.StateSucceeded, do(t, e, "RUN", `{"command":["true"]}`).State)
	script := `{"exec":{"command":["sh","-c","echo x >> $GPUAAS_MEMBER_ROOT/var/n; test $(wc -l < $GPUAAS_MEMBER_ROOT/var/n) = 3"]},"attempts":5,"intervalSeconds":0.01}`
	result := probeResult(t, do(t, e, "PROBE", script))
	require.True(t, result.OK)
	require.Equal(t, 3, result.Attempts)
}

func TestProbeMakesNoSandbox(t *testing.T) {
	t.Parallel()
	e := setup(t)
	require.Contains(t, probeResult(t, do(t, e, "PROBE", `{"exec":{"command":["true"]}}`)).Detail, "no sandbox")
	left, err := e.Sandboxes.Residue(member)
	require.NoError(t, err)
	require.True(t, left.Empty())
}

func TestTaskThatIsNotDoneInTimeIsTimedOut(t *testing.T) {
	t.Parallel()
	e := setup(t)
	work := task.Task{ID: "tsk_a", Kind: nodetask.KindProbe, MemberID: member, InstanceID: instance,
		Timeout: 100 * time.Millisecond,
		Spec: json.RawMessage(fmt.Sprintf(`{"tcp":{"port":%d},"attempts":3000,"intervalSeconds":0.02}`,
			closedPort(t)))}
	outcome, err := e.Do(t.Context(), work, task.Attempt{})
	require.NoError(t, err)
	require.Equal(t, task.StateTimedOut, outcome.State)
	require.False(t, probeResult(t, outcome).OK)
}

func TestStoppingAgentLeavesARunWithoutOutcome(t *testing.T) {
	t.Parallel()
	e := setup(t)
	ctx, stop := context.WithCancel(t.Context())
	work := task.Task{ID: "tsk_a", Fence: 1, Kind: nodetask.KindRun, MemberID: member, InstanceID: instance,
		Timeout: 20 * time.Second,
		Spec: json.RawMessage(
			`{"command":["sh","-c","echo up; while ! test -e $GPUAAS_MEMBER_ROOT/var/go; do sleep 0.02; done; echo down"]}`)}
	epoch := ""
	e.Started = func(_, started string) error { epoch = started; return nil }
	_, err := e.Do(ctx, work, task.Attempt{Output: func(wire.Output) { stop() }})
	require.ErrorIs(t, err, task.ErrDetached)
	require.Equal(t, task.StateSucceeded, do(t, e, "WRITE_FILE", `{"path":"/var/go"}`).State)
	outcome, err := e.Do(t.Context(), work, task.Attempt{Resumed: true, Epoch: epoch, Output: func(wire.Output) {}})
	require.NoError(t, err)
	require.Contains(t, string(outcome.Result), `up\ndown\n`)
}

func TestNothingIsStartedThatCannotBeJournalled(t *testing.T) {
	t.Parallel()
	e := setup(t)
	e.Started = func(string, string) error { return os.ErrPermission }
	work := task.Task{ID: "tsk_a", Kind: nodetask.KindRun, MemberID: member, InstanceID: instance, Timeout: time.Second,
		Spec: json.RawMessage(`{"command":["sh","-c","echo x > $GPUAAS_MEMBER_ROOT/var/ran"]}`)}
	_, err := e.Do(t.Context(), work, task.Attempt{Output: func(wire.Output) {}})
	require.ErrorIs(t, err, os.ErrPermission)
	e.Started = func(string, string) error { return nil }
	require.Contains(t, string(do(t, e, "RUN", `{"command":["sh","-c","ls $GPUAAS_MEMBER_ROOT/var"]}`).Result),
		`"lib\nlog\n"`)
}

func TestResultStaysWithinWhatThePlatformTakes(t *testing.T) {
	t.Parallel()
	e := setup(t)
	outcome := do(t, e, "RUN",
		`{"command":["sh","-c","head -c 60000 /dev/zero | tr '\\0' '\\001'; head -c 60000 /dev/zero | tr '\\0' '\\002' >&2"]}`)
	require.LessOrEqual(t, len(outcome.Result), 256<<10)
	require.Contains(t, string(outcome.Result), `"truncated":true`)
}
