package examples_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

const patience = 60 * time.Second

// buildFolder is the variable that names where the tests of this process build, for TestMain to delete.
const buildFolder = "GPUAAS_EXAMPLES_BUILD"

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "gpuaas-examples-")
	if err == nil {
		err = os.Setenv(buildFolder, folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// builtTypescript is a copy of the TypeScript adapter with its packages installed, built once.
var builtTypescript = sync.OnceValues(func() (string, error) {
	folder := filepath.Join(os.Getenv(buildFolder), "typescript-adapter")
	if err := copySources("typescript-adapter", folder); err != nil {
		return "", err
	}
	if err := copySources("../sdk/typescript/src", filepath.Join(folder, "src/kit")); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for _, arguments := range [][]string{{"ci", "--no-audit", "--no-fund"}, {"run", "build"}} {
		cmd := exec.CommandContext(ctx, "npm", arguments...)
		cmd.Dir = folder
		if output, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("npm %v: %w: %s", arguments, err, output)
		}
	}
	return folder, nil
})

// copySources copies a folder without what is installed and built.
func copySources(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if relative == filepath.Join("src", "kit") || entry.Name() == "node_modules" || entry.Name() == "dist" {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, relative), 0o755)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, relative), content, 0o600)
	})
}

// typescriptAdapter is the folder of the built adapter.
func typescriptAdapter(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"npm", "node"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	folder, err := builtTypescript()
	require.NoError(t, err)
	return folder
}

// startTypescript starts the adapter for the platform and returns its address and what kills it.
func startTypescript(t *testing.T, p *adaptertest.Platform, state string) (base string, kill func()) {
	t.Helper()
	cmd := exec.Command("node", filepath.Join(typescriptAdapter(t), "dist/src/main.js"), "--platform-url",
		p.URL, "--name", p.Name, "--state-dir", state)
	log, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	kill = func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	t.Cleanup(kill)
	lines, first := bufio.NewScanner(log), make(chan string, 1)
	go func() {
		defer close(ended)
		for lines.Scan() {
			select {
			case first <- lines.Text():
			default:
			}
			if strings.Contains(lines.Text(), adaptertest.Token) {
				t.Error("the token is in the log")
			}
		}
		_ = cmd.Wait()
	}()
	var line struct{ Message, Address string }
	select {
	case text := <-first:
		require.NoError(t, json.Unmarshal([]byte(text), &line), text)
	case <-ended:
		t.Fatal("the adapter ended and wrote nothing")
	}
	require.Equal(t, "listening", line.Message)
	return "http://" + line.Address, kill
}

// counterOf is a dispatch of the counter app with so many members.
func counterOf(p *adaptertest.Platform, id string, kind adapter.Kind, members int) adapter.Dispatch {
	d := adapter.Dispatch{
		OperationID: id, Kind: kind, Attempt: 1, Deadline: time.Now().Add(patience), CorrelationID: "cor-1",
		Instance: adapter.Instance{
			ID: "ins_1", Name: "one", TenantID: "ten_1", ProjectID: "prj_1", App: "counter", Version: "1.0.0",
			Config: json.RawMessage(`{"step":7}`), Components: []adapter.ComponentCount{{Key: "counter",
				Count: members}},
		},
		Platform: p.Access(),
	}
	for n := range members {
		d.Members = append(d.Members, adapter.Member{ID: fmt.Sprintf("mem_%d", n), ComponentKey: "counter", Index: n,
			Status: "active", Node: p.Node("127.0.0.1")})
	}
	return d
}

// requireItsManifest requires that the manifest beside the adapter declares what the adapter describes.
func requireItsManifest(t *testing.T, app adapter.AppInfo) {
	t.Helper()
	raw, err := os.ReadFile("typescript-adapter/manifest.json")
	require.NoError(t, err)
	var manifest adapter.AppInfo
	require.NoError(t, json.Unmarshal(raw, &manifest))
	require.Equal(t, manifest.Components, app.Components)
	require.Equal(t, manifest.UsageDimensions, app.UsageDimensions)
	require.Len(t, app.Actions, len(manifest.Actions))
	for n, action := range manifest.Actions {
		require.JSONEq(t, string(action.InputSchema), string(app.Actions[n].InputSchema))
		require.JSONEq(t, string(action.OutputSchema), string(app.Actions[n].OutputSchema))
		action.InputSchema, action.OutputSchema = app.Actions[n].InputSchema, app.Actions[n].OutputSchema
		require.Equal(t, action, app.Actions[n])
	}
}

// What the adapter runs in plans and read actions is verb("list") and verb("total") of src/counter.ts.
func TestTheTypescriptManifestNamesWhatIsRunWhileItsAdapterOnlyLooks(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("typescript-adapter/src/node.ts")
	require.NoError(t, err)
	const guard = `f="$GPUAAS_MEMBER_ROOT${scriptPath}"; test -f "$f" || exit 0; exec sh "$f" "$@"`
	require.Contains(t, string(source), "`"+guard+"`")
	command := []string{"sh", "-c", strings.ReplaceAll(guard, "${scriptPath}", "/srv/counter/counter.sh"), "counter"}
	adaptertest.Inspections(t, "typescript-adapter/manifest.json", false,
		adaptertest.Inspection{Name: "work", Command: append(slices.Clone(command), "list")},
		adaptertest.Inspection{Name: "total", Command: append(slices.Clone(command), "total")})
}

func TestTypescriptAdapterRunsACounterFromLaunchToTeardown(t *testing.T) {
	t.Parallel()
	p := adaptertest.New(t, "counter")
	base, _ := startTypescript(t, p, t.TempDir())
	var said adapter.Description
	code, raw := p.Call(base, http.MethodGet, adapter.AdapterPath, nil, &said)
	require.Equal(t, http.StatusOK, code, "body: %s", raw)
	require.Equal(t, []string{"1.1", "1.0"}, said.ContractVersions)
	require.ElementsMatch(t, adapter.Kinds(), said.Apps[0].Operations, "every operation kind")
	requireItsManifest(t, said.Apps[0])

	create := counterOf(p, "op_1", adapter.InstanceCreate, 2)
	status := p.Run(base, create, patience)
	require.Equal(t, adapter.StateSucceeded, status.State, "%+v", status.Error)
	var read struct{ Total int }
	require.Eventually(t, func() bool {
		p.Action(base, "counter.read", create, fmt.Sprint("read-", time.Now().UnixNano()), map[string]any{}, &read)
		return read.Total >= 14
	}, patience, 100*time.Millisecond, "it counts by its step")

	drain := counterOf(p, "op_2", adapter.MemberDrain, 2)
	drain.Targets = []string{"mem_1"}
	var batch struct{ ID string }
	p.Action(base, "counter.batch", create, "batch", map[string]any{"seconds": 600, "counter": "counter-1"}, &batch)
	p.Dispatch(base, drain)
	status = p.Await(base, "op_2", patience, "waiting", func(s adapter.Status) bool { return len(s.WaitsFor) > 0 })
	require.Equal(t, batch.ID, status.WaitsFor[0].ID)
	drain.Attempt, drain.Force = 2, true
	status = p.Run(base, drain, patience)
	require.Equal(t, adapter.StateSucceeded, status.State, "%+v", status.Error)
	require.Contains(t, string(status.Evidence["workLost"]), batch.ID)

	status = p.Run(base, counterOf(p, "op_3", adapter.InstanceDecommission, 2), patience)
	require.Equal(t, adapter.StateSucceeded, status.State, "%+v", status.Error)
	require.NoDirExists(t, p.Root("mem_0"))
	var usage adapter.UsagePage
	code, raw = p.Call(base, http.MethodGet, adapter.UsagePath("ins_1", ""), nil, &usage)
	require.Equal(t, http.StatusOK, code, "body: %s", raw)
	require.Len(t, usage.Records, 2, "each counter was read before it went")
}

func TestTypescriptAdapterThatIsKilledGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	p := adaptertest.New(t, "counter")
	state := t.TempDir()
	base, kill := startTypescript(t, p, state)
	create := counterOf(p, "op_1", adapter.InstanceCreate, 2)
	p.Away("mem_1")
	p.Dispatch(base, create)
	status := p.Await(base, "op_1", patience, "half way", func(s adapter.Status) bool {
		return len(s.Members) == 2 && (s.Members[0].Status == adapter.MemberActive ||
			s.Members[1].Status == adapter.MemberActive)
	})
	require.Equal(t, adapter.StateRunning, status.State)
	kill()

	base, _ = startTypescript(t, p, state)
	status = p.Dispatch(base, create)
	require.Equal(t, adapter.StateRunning, status.State, "the operation is known")
	p.Back("mem_1")
	status = p.Await(base, "op_1", patience, "at its end", func(s adapter.Status) bool { return s.State.Terminal() })
	require.Equal(t, adapter.StateSucceeded, status.State, "%+v", status.Error)
	var seen adapter.Observation
	p.Call(base, http.MethodGet, adapter.InstancePath("ins_1"), nil, &seen)
	require.Equal(t, adapter.Healthy, seen.Health, seen.Message)
}

func TestTypescriptAdaptersOwnTestsPass(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "test")
	cmd.Dir = typescriptAdapter(t)
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, string(output))
}

// The kit's packages are the example's, so the kit is built in a folder below the example's packages.
func TestTypescriptKitsOwnTestsPass(t *testing.T) {
	t.Parallel()
	passesItsTests(t, "../sdk/typescript")
}

func TestTypescriptClientsOwnTestsPass(t *testing.T) {
	t.Parallel()
	passesItsTests(t, "../sdk/typescript-client", olderPlatform(t)...)
}

// passesItsTests builds a package in a folder below the example's packages, and runs its tests.
func passesItsTests(t *testing.T, sources string, environment ...string) {
	t.Helper()
	folder := filepath.Join(typescriptAdapter(t), filepath.Base(sources))
	require.NoError(t, copySources(sources, folder))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "test")
	cmd.Dir, cmd.Env = folder, append(cmd.Environ(), environment...)
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, string(output))
}

// TestTypescriptPackagesAreOfOneVersion requires that who copies the kit installs what the kit was tested with.
func TestTypescriptPackagesAreOfOneVersion(t *testing.T) {
	t.Parallel()
	read := func(file string) (found struct{ Dependencies, DevDependencies, Engines map[string]string }) {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &found))
		return found
	}
	kit := read("../sdk/typescript/package.json")
	require.NotEmpty(t, kit.Dependencies)
	for _, file := range []string{"typescript-adapter/package.json", "../sdk/scaffold/files/typescript/package.json"} {
		require.Equal(t, kit, read(file), file)
	}
}

// The pieces of code in the guide are pieces of the program.
func TestTheGuideOfTypescriptShowsTheProgram(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/guides/write-an-adapter-in-typescript.md")
	require.NoError(t, err)
	files, err := filepath.Glob("typescript-adapter/*/*.ts")
	require.NoError(t, err)
	var program strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		program.Write(text)
	}
	pieces := strings.Split(string(guide), "```ts\n")[1:]
	require.NotEmpty(t, pieces)
	for _, piece := range pieces {
		code, _, closed := strings.Cut(piece, "```")
		require.True(t, closed)
		require.Contains(t, program.String(), code)
	}
}
