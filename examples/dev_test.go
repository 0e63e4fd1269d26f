package examples_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/dev"
)

// flags are those of the adapters that a session starts.
const flags = ` --platform-url "$PLATFORM_URL" --name "$ADAPTER_NAME" --listen "$ADAPTER_LISTEN" --state-dir "$ADAPTER_STATE_DIR"`

// faults is a session with a fault of each kind; it is the same for every app whose members are called so.
const faults = `launch MEMBER=2
expect accepted
expect healthy
lose
hold 1
scale MEMBER=3
caught
kill
release
expect accepted
hold
drain MEMBER-2
caught
cancel
expect canceled
release
deadline 1
hold
cordon MEMBER-2
caught
expect failed
release
fail
label MEMBER-1 rack=1
expect refused
release
wipe MEMBER-2
recover MEMBER-2
expect accepted
stop
start
away MEMBER-2
observe
remove MEMBER-2 force
expect accepted
back MEMBER-2
upgrade 9.9.9
expect accepted
rollback
expect accepted
decommission
expect accepted
quit`

// told holds lines that the timeline of the session must have.
var told = []string{
	"operation instance.create succeeded", "verdict MEMBER-1 passes the readiness probe", "fault the reply was lost",
	"fault the adapter was killed", "adapter it answers again", "fault the adapter answered the cancel with canceled",
	"operation DEADLINE_EXCEEDED", "failed: the stand-in platform failed this task on purpose",
	"fault all that MEMBER-2 had on its node was deleted", "fault the node of MEMBER-2 is away",
	"answer MEMBER-2 unknown", "verdict the platform has deleted what MEMBER-2 had left",
	"member MEMBER-0 removed", "evidence {",
}

// processesOf are the processes with this text in their environment, which no other test's have.
func processesOf(t *testing.T, mark string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, path := range all {
		environ, err := os.ReadFile(path)
		if err == nil && bytes.Contains(environ, []byte(mark)) {
			found = append(found, path)
		}
	}
	return found
}

// sessionOf runs the faults over an adapter, and requires that the session reports the lines of told.
func sessionOf(t *testing.T, name, start, manifest, component string) {
	t.Helper()
	document, err := os.ReadFile(manifest)
	require.NoError(t, err)
	folder := t.TempDir()
	var mu sync.Mutex
	var lines strings.Builder
	session, err := dev.Start(t.Context(), conformance.Options{
		Name: name, Manifest: document, Dir: folder,
		Launcher: &conformance.Command{Line: start + flags, Name: name, StateDir: folder},
		Bounds:   conformance.Bounds{Settle: 200 * time.Millisecond},
	}, func(event dev.Event) {
		mu.Lock()
		defer mu.Unlock()
		lines.WriteString(event.Kind + " " + event.Text + "\n")
	})
	require.NoError(t, err)
	require.NotEmpty(t, processesOf(t, folder))
	err = session.Scenario(strings.Split(strings.ReplaceAll(faults, "MEMBER", component), "\n"))
	require.NoError(t, session.Close())
	require.NoError(t, err, lines.String())
	require.Empty(t, processesOf(t, folder), "nothing is left")
	for _, line := range told {
		require.Contains(t, lines.String(), strings.ReplaceAll(line, "MEMBER", component))
	}
	require.NotContains(t, lines.String(), "gpu_op_", "no token is shown")
}

// programs builds programs of this repository.
func programs(t *testing.T, packages ...string) string {
	t.Helper()
	folder := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"build", "-o", folder + "/"}, packages...)...).
		CombinedOutput()
	require.NoError(t, err, "%s", out)
	return folder
}

func TestASessionBringsFaultsAboutForAnAdapterInGo(t *testing.T) {
	t.Parallel()
	folder := programs(t, "../cmd/hello-cluster-controller")
	sessionOf(t, "hello-cluster", "exec "+folder+"/hello-cluster-controller",
		"../cmd/hello-cluster-controller/manifest.json", "peer")
}

func TestASessionBringsFaultsAboutForAnAdapterInPython(t *testing.T) {
	t.Parallel()
	needsPython(t)
	program, err := filepath.Abs("python-adapter/redkeep.py")
	require.NoError(t, err)
	sessionOf(t, "redkeep", "exec env PYTHONDONTWRITEBYTECODE=1 "+kitPath(t)+" "+python+" "+program,
		"python-adapter/manifest.json", "server")
}

// TestCtrlCEndsASessionAndLeavesNothing types into the real command and interrupts it while an operation is held back.
func TestCtrlCEndsASessionAndLeavesNothing(t *testing.T) {
	t.Parallel()
	folder := programs(t, "../cmd/hello-cluster-controller", "../cmd/appctl")
	state := t.TempDir()
	cmd := exec.CommandContext(t.Context(), folder+"/appctl", "adapter", "dev", "--name", "hello-cluster", "-o", "json",
		"--start", "exec "+folder+"/hello-cluster-controller"+flags, "--state-dir", state)
	cmd.Env = append(cmd.Environ(), "TMPDIR="+state, "HOME="+state)
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var said bytes.Buffer
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	_, err = io.WriteString(input, "launch\nexpect accepted\nhold\nupgrade 2.0.0\ncaught\n")
	require.NoError(t, err)
	events := json.NewDecoder(output)
	var event dev.Event
	for event.Text != "a node task is held back or failed" {
		require.NoError(t, events.Decode(&event), said.String())
	}
	require.Greater(t, len(processesOf(t, state)), 2, "the adapter, and processes of members")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	for events.Decode(&event) == nil {
	}
	require.NoError(t, cmd.Wait(), said.String())
	require.Empty(t, processesOf(t, state))
	left, err := filepath.Glob(state + "/conformance-*")
	require.NoError(t, err)
	require.Empty(t, left, "what the members wrote is deleted")
}
