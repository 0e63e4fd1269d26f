package scaffold_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
	"github.com/gpuaas/app-platform/sdk/scaffold"
)

// some are clauses of each kind, so that a skeleton is checked in seconds; CONFORMANCE_SKELETONS=all runs all of them.
var some = []string{
	"describe", "dispatch.completes", "body.config", "cancel.stops", "add", "recover", "observe", "action",
	"decommission", "crash.once", "secret",
}

func write(t *testing.T, o scaffold.Options) string {
	t.Helper()
	o.Name, o.Dir = "beat", filepath.Join(t.TempDir(), "beat")
	written, err := scaffold.Write(o)
	require.NoError(t, err)
	require.Contains(t, written, "manifest.json")
	for _, file := range written {
		text, err := os.ReadFile(filepath.Join(o.Dir, file))
		require.NoError(t, err)
		require.NotContains(t, string(text), "__NAME__", file)
	}
	return o.Dir
}

func command(t *testing.T, dir, program string, arguments ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, arguments...)
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, string(output))
}

func conforms(t *testing.T, start string) {
	t.Helper()
	line := start + ` --platform-url "$PLATFORM_URL" --name "$ADAPTER_NAME" --listen "$ADAPTER_LISTEN"` +
		` --state-dir "$ADAPTER_STATE_DIR"`
	options := conformance.Options{
		Name: "beat", Launcher: &conformance.Command{Line: line, Name: "beat", StateDir: t.TempDir()},
		Bounds: conformance.Bounds{Settle: 300 * time.Millisecond, Near: time.Second}, Only: some,
	}
	if os.Getenv("CONFORMANCE_SKELETONS") == "all" {
		options.Only = nil
	}
	for _, result := range conformance.Test(t, options).Results {
		// What the skeleton's app does not describe is skipped.
		require.Contains(t, []conformance.Outcome{conformance.Passed, conformance.Skipped}, result.Outcome, result.ID)
	}
}

func TestSkeletonInPythonKeepsTheContract(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3"
	if exec.Command(python, "-c", "import nacl, jsonschema").Run() != nil {
		t.Skip("python3-nacl and python3-jsonschema are not installed")
	}
	dir := write(t, scaffold.Options{Language: "python"})
	command(t, dir, python, "-m", "unittest")
	conforms(t, "exec "+python+" "+filepath.Join(dir, "adapter.py"))
}

func TestSkeletonInTypescriptKeepsTheContract(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"npm", "node"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	dir := write(t, scaffold.Options{Language: "typescript"})
	command(t, dir, "npm", "ci", "--no-audit", "--no-fund")
	command(t, dir, "npm", "run", "build")
	command(t, dir, "npm", "test")
	conforms(t, "exec node "+filepath.Join(dir, "dist/src/main.js"))
}

func TestSkeletonInGoKeepsTheContract(t *testing.T) {
	t.Parallel()
	dir := write(t, scaffold.Options{Language: "go", SDK: "../.."})
	command(t, dir, "go", "build", "-mod=mod", "-o", "adapter", ".")
	command(t, dir, "go", "test", "-mod=mod", "-vet=off", "./...")
	conforms(t, "exec "+filepath.Join(dir, "adapter"))
}

func TestSkeletonIsRefused(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "mine"), []byte("mine"), 0o600))
	for says, o := range map[string]scaffold.Options{
		"is not an app's name":    {Name: "../beat", Language: "go", Dir: filepath.Join(full, "a")},
		"there is no skeleton in": {Name: "beat", Language: "cobol", Dir: filepath.Join(full, "b")},
		"is not empty":            {Name: "beat", Language: "python", Dir: full},
		"skeleton contains":       {Name: "beat", Language: "python", SDK: "../..", Dir: filepath.Join(full, "c")},
		"read the SDK's sources":  {Name: "beat", Language: "go", SDK: full, Dir: filepath.Join(full, "d")},
	} {
		_, err := scaffold.Write(o)
		require.ErrorContains(t, err, says)
	}
	left, err := os.ReadDir(full)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing is written")
}
