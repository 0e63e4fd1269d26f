package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
)

// yesterday holds the sources of this program at commit a3d4938. They represent every adapter that was written against
// the SDK of that day, and are never edited.
const yesterday = "testdata/a3d4938"

func TestYesterdaysAdapterIsUntouched(t *testing.T) {
	t.Parallel()
	sums, err := os.ReadFile(filepath.Join(yesterday, "SHA256SUMS"))
	require.NoError(t, err)
	var listed []string
	for line := range strings.Lines(string(sums)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		raw, err := os.ReadFile(filepath.Join(yesterday, name))
		require.NoError(t, err)
		sum := sha256.Sum256(raw)
		require.Equal(t, want, hex.EncodeToString(sum[:]), "%s is a copy and is never edited", name)
		listed = append(listed, name)
	}
	found := files(t, yesterday)
	found = slices.DeleteFunc(found, func(name string) bool { return name == "SHA256SUMS" || name == "README.md" })
	require.ElementsMatch(t, listed, found)
}

// TestYesterdaysAdapterRunsOnTodaysSDK builds yesterday's sources in the place of today's, against today's sdk/adapter,
// and requires that the program passes what it passed then.
func TestYesterdaysAdapterRunsOnTodaysSDK(t *testing.T) {
	t.Parallel()
	overlay := overlaid(t)
	program := filepath.Join(t.TempDir(), "controller")
	goTool(t, "build", "-overlay", overlay, "-o", program, ".")
	t.Run("its own tests", func(t *testing.T) {
		t.Parallel()
		goTool(t, "test", "-overlay", overlay, "-count=1", "-timeout=25m", "./internal/hello")
		goTool(t, "vet", "-overlay", overlay, ".") // its conformance test compiles; it is run below
	})
	t.Run("the conformance suite", func(t *testing.T) {
		t.Parallel()
		if testing.Short() {
			t.Skip("it starts the program and runs for most of a minute")
		}
		const name = "hello-cluster"
		report := conformance.Test(t, conformance.Options{
			Name: name,
			Launcher: &conformance.Command{
				Line: program +
					` --platform-url "$PLATFORM_URL" --name "$ADAPTER_NAME" --listen "$ADAPTER_LISTEN" --state-dir "$ADAPTER_STATE_DIR"`,
				Name: name, StateDir: t.TempDir(),
			},
			Bounds: conformance.Bounds{Settle: 300 * time.Millisecond, Near: time.Second},
		})
		require.Zero(t, report.Count(conformance.NotRun))
		kept := clausesOf(t, filepath.Join(yesterday, "conformance.json"))
		var ids []string
		for _, clause := range kept {
			ids = append(ids, clause.ID)
		}
		then, err := report.Of(ids...) // what the suite has learnt since is not in it
		require.NoError(t, err)
		require.Equal(t, kept, then.Digested.Clauses, "it passes what it passed then, in today's suite")
	})
}

// clausesOf returns the clauses that a kept report is about.
func clausesOf(t *testing.T, path string) []conformance.ClauseOutcome {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var kept conformance.Report
	require.NoError(t, json.Unmarshal(raw, &kept))
	digest, err := kept.Digested.Digest()
	require.NoError(t, err)
	require.Equal(t, kept.Digest, digest)
	return kept.Digested.Clauses
}

// goTool runs the go command on this package, bounded by the test's time, without the network.
func goTool(t *testing.T, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", arguments...)
	command.Env = append(os.Environ(), "GOPROXY=off")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "go %s:\n%s", strings.Join(arguments, " "), out)
}

// overlaid writes a file that puts yesterday's sources in the place of today's for the go command: each of today's
// files is replaced or absent.
func overlaid(t *testing.T) string {
	t.Helper()
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	replace := map[string]string{}
	for _, name := range files(t, ".") {
		if !strings.HasPrefix(name, "testdata/") {
			replace[filepath.Join(here, name)] = ""
		}
	}
	for _, name := range files(t, yesterday) {
		replace[filepath.Join(here, name)] = filepath.Join(here, yesterday, name)
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(file, raw, 0o600))
	return file
}

// files lists the files below a folder, by their paths in it.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	}))
	return names
}
