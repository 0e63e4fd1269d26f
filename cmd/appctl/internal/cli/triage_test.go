package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheNextActionIsCarriedOutByItsPlan: it shows the plan, asks, and sends the plan's hash with the documents that
// came with the report.
func TestTheNextActionIsCarriedOutByItsPlan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.runAt(t.Context(), true, "n\n", "triage", "op_1", "--do")
	require.NotZero(t, got.code)
	require.Contains(t, got.stderr, "INSTANCE_DECOMMISSION")
	require.Empty(t, r.CallsOf("decommissionInstance"), "not confirmed, nothing sent")

	got = r.runAt(t.Context(), true, "y\n", "triage", "op_1", "--do", "-q")
	require.Zero(t, got.code, got.stderr)
	sent := r.CallsOf("decommissionInstance")
	require.Len(t, sent, 1)
	input := sent[0].Args["input"].(map[string]any)
	require.NotEmpty(t, input["planHash"])
	require.Equal(t, []any{"ins_1", true, "triage: NODE_OFFLINE", "triage-1"},
		[]any{input["instanceId"], input["force"], input["reason"], input["idempotencyKey"]})

	got = r.run(t.Context(), "", "triage", "op_1", "--do", "--yes", "--reason", "mine", "-o", "json")
	require.Zero(t, got.code, got.stderr)
	require.Equal(t, "mine", r.CallsOf("decommissionInstance")[1].Args["input"].(map[string]any)["reason"])

	got = r.run(t.Context(), "", "triage", "op_1", "--do")
	require.Contains(t, got.stderr, "--yes", "without a terminal nobody is asked")
	got = r.run(t.Context(), "", "triage", "op_denied", "--do", "--yes")
	require.Contains(t, got.stderr, "you lack the key apps.instance.delete")
	require.Len(t, r.CallsOf("decommissionInstance"), 2)
}

// TestASupportBundleIsWrittenAndVerified: to a new file, whole or not at all.
func TestASupportBundleIsWrittenAndVerified(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := filepath.Join(r.dir, "bundle.jsonl")
	got := r.run(t.Context(), "", "triage", "op_1", "--bundle", path)
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "appctl bundle verify")
	about, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), about.Mode().Perm())
	got = r.run(t.Context(), "", "bundle", "verify", path)
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "intact")
	require.NotZero(t, r.run(t.Context(), "", "triage", "op_1", "--bundle", path).code, "no other file is written over")

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	got = r.run(t.Context(), string(text), "bundle", "verify", "-")
	require.Zero(t, got.code, got.stderr)
	require.NoError(t, os.WriteFile(path, append(text, "{}\n"...), 0o600))
	got = r.run(t.Context(), "", "bundle", "verify", path)
	require.NotZero(t, got.code)
	require.Contains(t, got.stderr, "belongs to no section")

	changed := filepath.Join(r.dir, "changed.jsonl")
	got = r.run(t.Context(), "", "triage", "op_changed", "--bundle", changed)
	require.Contains(t, got.stderr, "was not written")
	require.NoFileExists(t, changed)
	got = r.run(t.Context(), "", "triage", "op_1", "--bundle", "-")
	require.Equal(t, string(text), got.stdout)
}
