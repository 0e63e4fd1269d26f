package examples_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
)

// python is Debian's own interpreter, which finds Debian's python3-* packages.
const python = "/usr/bin/python3"

// kitPath is where the adapter finds the kit.
func kitPath(t *testing.T) string {
	t.Helper()
	kit, err := filepath.Abs("../sdk/python")
	require.NoError(t, err)
	return "PYTHONPATH=" + kit
}

// needsPython skips a test where what the example needs is not installed.
func needsPython(t *testing.T) {
	t.Helper()
	if exec.Command(python, "-c", "import nacl, jsonschema").Run() != nil {
		t.Skip("python3-nacl and python3-jsonschema are not installed")
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed")
	}
}

// startPython starts the adapter for the platform and returns its address.
func startPython(t *testing.T, p *adaptertest.Platform) string {
	t.Helper()
	needsPython(t)
	cmd := exec.Command(python, "python-adapter/redkeep.py", "--platform-url", p.URL, "--name", p.Name, "--state-dir",
		t.TempDir())
	cmd.Env = append(cmd.Environ(), kitPath(t), "PYTHONDONTWRITEBYTECODE=1")
	log, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	lines := bufio.NewScanner(log)
	require.True(t, lines.Scan(), "the adapter wrote nothing")
	var line struct{ Message, Address string }
	require.NoError(t, json.Unmarshal(lines.Bytes(), &line), lines.Text())
	require.Equal(t, "listening", line.Message)
	go func() {
		defer close(ended)
		for lines.Scan() {
			if strings.Contains(lines.Text(), adaptertest.Token) {
				t.Error("the token is in the log")
			}
		}
		_ = cmd.Wait()
	}()
	return "http://" + line.Address
}

// redisOf is a dispatch of redkeep with so many servers.
func redisOf(p *adaptertest.Platform, id string, kind adapter.Kind, servers ...int) adapter.Dispatch {
	d := adapter.Dispatch{
		OperationID: id, Kind: kind, Attempt: 1, Deadline: time.Now().Add(patience), CorrelationID: "cor-1",
		Instance: adapter.Instance{
			ID: "ins_1", Name: "one", TenantID: "ten_1", ProjectID: "prj_1", App: "redkeep", Version: "1.0.0",
			Config: json.RawMessage(`{}`), Components: []adapter.ComponentCount{{Key: "server", Count: len(servers)}},
		},
		Platform: p.Access(),
	}
	for _, n := range servers {
		d.Members = append(d.Members, adapter.Member{ID: fmt.Sprintf("mem_%d", n), ComponentKey: "server", Index: n,
			Status: "active", Node: p.Node("127.0.0.1")})
	}
	return d
}

func TestPythonAdapterKeepsItsDataWhenThePrimaryLeaves(t *testing.T) {
	t.Parallel()
	p := adaptertest.New(t, "redkeep")
	base := startPython(t, p)
	carry := func(d adapter.Dispatch) {
		status := p.Run(base, d, patience)
		require.Equal(t, adapter.StateSucceeded, status.State, "%s: %+v", d.Kind, status.Error)
	}
	all := redisOf(p, "op_1", adapter.InstanceCreate, 0, 1, 2)
	carry(all)
	var stored struct{ Server string }
	p.Action(base, "redkeep.put", all, "put", map[string]any{"key": "k", "value": "v"}, &stored)
	require.Equal(t, "server-0", stored.Server)

	remove := redisOf(p, "op_2", adapter.MemberRemove, 0, 1, 2)
	remove.Targets, remove.Instance.Components[0].Count = []string{"mem_0"}, 2
	carry(remove)
	var read struct {
		Servers []struct {
			Server, Role string
			Keys         int
		}
	}
	left := redisOf(p, "op_3", adapter.MemberDrain, 1, 2)
	p.Action(base, "redkeep.status", left, "status", map[string]any{}, &read)
	require.Len(t, read.Servers, 2)
	roles := []string{read.Servers[0].Role, read.Servers[1].Role}
	slices.Sort(roles)
	require.Equal(t, []string{"master", "slave"}, roles)
	for _, server := range read.Servers {
		require.Equal(t, 1, server.Keys, server.Server)
	}
	p.Action(base, "redkeep.put", left, "again", map[string]any{"key": "k2", "value": "v"}, &stored)
	require.NotEqual(t, "server-0", stored.Server)
	carry(redisOf(p, "op_4", adapter.InstanceDecommission, 1, 2))
}

// What the adapter runs in observations, plans and read actions is verb("state") and verb("clients").
func TestThePythonManifestNamesWhatIsRunWhileItsAdapterOnlyLooks(t *testing.T) {
	t.Parallel()
	command := []string{"sh", "-c", `f="$GPUAAS_MEMBER_ROOT/srv/redkeep/redkeep.sh"; test -f "$f" || exit 0; ` +
		`exec sh "$f" "$@"`, "redkeep"}
	adaptertest.Inspections(t, "python-adapter/manifest.json", false,
		adaptertest.Inspection{Name: "state", Command: append(slices.Clone(command), "state")},
		adaptertest.Inspection{Name: "clients", Command: append(slices.Clone(command), "clients")})
}

func TestPythonKitsOwnTestsPass(t *testing.T) {
	t.Parallel()
	needsPython(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-m", "unittest", "discover", "-t", ".", "-s", "tests")
	cmd.Dir, cmd.Env = "../sdk/python", append(cmd.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, string(output))
}

// client is a client of a server of redkeep that stays connected.
const client = `dir="$GPUAAS_MEMBER_ROOT/srv/redkeep"
export REDISCLI_AUTH=$(sed -n 's/^client //p' "$dir/secret")
exec redis-cli -h "$(sed -n 's/^bind //p' "$dir/settings")" -p "$(cat "$dir/port")" subscribe conformance`

// TestPythonAdapterConformsToTheContract runs the whole suite over the adapter, with kill -9 in the middle of its work.
func TestPythonAdapterConformsToTheContract(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts the adapter and runs for a minute")
	}
	needsPython(t)
	program, err := filepath.Abs("python-adapter/redkeep.py")
	require.NoError(t, err)
	manifest, err := os.ReadFile("python-adapter/manifest.json")
	require.NoError(t, err)
	const name = "redkeep"
	report := conformance.Test(t, conformance.Options{
		Name: name, Manifest: manifest, Work: &conformance.Work{Command: client},
		Launcher: &conformance.Command{
			Line: "exec env PYTHONDONTWRITEBYTECODE=1 " + kitPath(t) + " " + python + " " + program +
				` --platform-url "$PLATFORM_URL" --name "$ADAPTER_NAME" --listen "$ADAPTER_LISTEN" --state-dir "$ADAPTER_STATE_DIR"`,
			Name: name, StateDir: t.TempDir(),
		},
		Bounds: conformance.Bounds{Settle: 300 * time.Millisecond, Near: time.Second},
	})
	for _, result := range report.Results {
		require.Equal(t, conformance.Passed, result.Outcome, "%s: it has all that the contract has", result.ID)
	}
}

// The pieces of code in the guide are pieces of the program.
func TestTheGuideOfPythonShowsTheProgram(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/guides/write-an-adapter-in-python.md")
	require.NoError(t, err)
	program, err := os.ReadFile("python-adapter/redkeep.py")
	require.NoError(t, err)
	pieces := strings.Split(string(guide), "```python\n")[1:]
	require.NotEmpty(t, pieces)
	for _, piece := range pieces {
		code, _, closed := strings.Cut(piece, "```")
		require.True(t, closed)
		require.Contains(t, string(program), code)
	}
	require.LessOrEqual(t, strings.Count(string(program), "\n"), 400)
}
