package examples_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
)

// TestTypescriptAdapterConformsToTheContract runs the whole suite over the adapter, with kill -9 in the
// middle of its work.
func TestTypescriptAdapterConformsToTheContract(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts the adapter and runs for a minute")
	}
	const name = "counter"
	program := filepath.Join(typescriptAdapter(t), "dist/src/main.js")
	manifest, err := os.ReadFile("typescript-adapter/manifest.json")
	require.NoError(t, err)
	report := conformance.Test(t, conformance.Options{
		Name: name, Manifest: manifest,
		Work: &conformance.Work{
			Action: "counter.batch", Input: json.RawMessage(`{"seconds":600,"counter":"{member}"}`),
		},
		Launcher: &conformance.Command{
			Line: "node " +
				program +
				` --platform-url "$PLATFORM_URL" --name "$ADAPTER_NAME" --listen "$ADAPTER_LISTEN" --state-dir "$ADAPTER_STATE_DIR"`,
			Name: name, StateDir: t.TempDir(),
		},
		Bounds: conformance.Bounds{Settle: 300 * time.Millisecond, Near: time.Second},
	})
	for _, result := range report.Results {
		require.Equal(t, conformance.Passed, result.Outcome,
			"%s: it has all that the contract has, and the suite can kill it",
			result.ID)
	}
}
