package main

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/standin"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
)

var update = flag.Bool("update", false, "write conformance.json and tenancy.json anew")

// TestMain makes this test's own program the stand-in of RKE2 where it is called as one.
func TestMain(m *testing.M) {
	if os.Getenv(standin.StateVar) != "" {
		os.Exit(standin.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// nodes are plain sandboxes with the stand-in of RKE2.
type nodes struct {
	*sandbox.Nodes

	program, state string
}

// Do implements the suite's nodes.
func (n nodes) Do(ctx context.Context, task sandbox.Task) sandbox.Outcome {
	if err := standin.Install(ctx, n.Nodes, task, n.program, n.state); err != nil {
		return sandbox.Outcome{State: adapter.TaskFailed, Message: err.Error()}
	}
	return n.Nodes.Do(ctx, task)
}

// TestControllerConformsToTheContract runs the whole suite over the real program, with kill -9 in the middle of its
// work, and the stand-in of RKE2 on its nodes.
func TestControllerConformsToTheContract(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts the program and runs for most of a minute")
	}
	program := filepath.Join(t.TempDir(), "controller")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	self, err := os.Executable()
	require.NoError(t, err)
	plain, err := sandbox.New(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(plain.Close)
	const name = "rke2-self-managed"
	report := conformance.Test(t, conformance.Options{
		Name: name, Manifest: manifest, Runner: nodes{Nodes: plain, program: self, state: t.TempDir()},
		Nodes: 16, // a node for each member: two on one are refused
		Work: &conformance.Work{Command: `exec "$GPUAAS_MEMBER_ROOT/usr/local/bin/rke2" standin-pod ` +
			`"$(echo "$GPUAAS_MEMBER_ID" | tr 'A-Z_' 'a-z-')" train`},
		Launcher: &conformance.Command{
			Line: program + ` --platform-url "$PLATFORM_URL" --name "$ADAPTER_NAME" ` +
				`--listen "$ADAPTER_LISTEN" --state-dir "$ADAPTER_STATE_DIR"`,
			Name: name, StateDir: t.TempDir(),
		},
		Inputs: map[string]json.RawMessage{
			"snapshot.restore": json.RawMessage(`{"snapshot":"none"}`),
			"image.bring": json.RawMessage(`{"digest":"sha256:` + strings.Repeat("0", 64) +
				`","name":"registry.example/none:1"}`),
			"node.drain":    json.RawMessage(`{"component":"server","index":0}`),
			"node.uncordon": json.RawMessage(`{"component":"server","index":0}`),
		},
		// A certificate is signed for a request of the caller's own key, which the suite does not make, nor has it a
		// snapshot or an image.
		Refusable: []string{"snapshot.restore", "image.bring", "kubeconfig.viewer", "kubeconfig.member",
			"kubeconfig.admin"},
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
