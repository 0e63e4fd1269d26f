package main

import (
	"encoding/json"
	"flag"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
)

var update = flag.Bool("update", false, "write conformance.json and tenancy.json anew")

// TestControllerConformsToTheContract runs the whole suite over the real program, with kill -9 in
// the middle of its work.
func TestControllerConformsToTheContract(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts the program and runs for most of a minute")
	}
	program := filepath.Join(t.TempDir(), "controller")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	const name = "hello-cluster"
	report := conformance.Test(t, conformance.Options{
		Name: name, Manifest: manifest,
		Work: &conformance.Work{Action: "work.start", Input: json.RawMessage(`{"seconds":600,"member":"{member}"}`)},
		Launcher: &conformance.Command{
			Line: program +
				` --platform-url "$PLATFORM_URL" --name "$ADAPTER_NAME" --listen "$ADAPTER_LISTEN" --state-dir "$ADAPTER_STATE_DIR"`,
			Name: name, StateDir: t.TempDir(),
		},
		Bounds: conformance.Bounds{Settle: 300 * time.Millisecond, Near: time.Second},
	})
	conformance.CommittedBoth(t, report, *update)
}

func TestTheBuildIsThatOfTheManifest(t *testing.T) {
	t.Parallel()
	var document struct{ Version string }
	require.NoError(t, json.Unmarshal(manifest, &document))
	require.Equal(t, document.Version, build)
}
