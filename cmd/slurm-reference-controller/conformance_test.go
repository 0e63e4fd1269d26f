package main

import (
	"encoding/json"
	"flag"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adaptertest"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
)

var update = flag.Bool("update", false, "write conformance.json and tenancy.json again")

// slow are the clauses that are checked on real clusters: most bring up one of their own, so not all
// hundred. What is left out rests on the adapter kit alone, and is checked on an app that is quick.
func slow() []string {
	return []string{
		"describe", "signature", "tenancy", "dispatch.repeat", "attempt.token", "cancel.stops", "observe.honest",
		"action.output", "remove.completes", "decommission.clean",
		"usage", "crash.once", "crash.instance", "crash.usage", "secret", "answer",
	}
}

func TestControllerConformsToTheContractOnRealClusters(t *testing.T) {
	t.Parallel()
	adaptertest.Require(t, "slurmctld", "slurmd", "munged", "srun")
	if testing.Short() {
		t.Skip("it brings up a dozen clusters")
	}
	program := filepath.Join(t.TempDir(), "controller")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	const name = "slurm-reference"
	report := conformance.Test(t, conformance.Options{
		Name: name, Manifest: manifest, Address: adaptertest.Address(t),
		Runner: adaptertest.NewNodes(t, adaptertest.Namespaces()), Only: slow(),
		Launcher: &conformance.Command{
			Line: program + ` --platform-url "$PLATFORM_URL" --name "$ADAPTER_NAME" ` +
				`--listen "$ADAPTER_LISTEN" --state-dir "$ADAPTER_STATE_DIR"`,
			Name: name, StateDir: t.TempDir(),
		},
		Refusable: []string{"ssh.account"}, // a cluster has no login unless somebody adds one
		Bounds: conformance.Bounds{Settle: 300 * time.Millisecond, Operation: 3 * time.Minute,
			Clause: 6 * time.Minute},
	})
	conformance.CommittedBoth(t, report, *update)
}

func TestTheBuildIsThatOfTheManifest(t *testing.T) {
	t.Parallel()
	var document struct{ Version string }
	require.NoError(t, json.Unmarshal(manifest, &document))
	require.Equal(t, document.Version, build)
}
