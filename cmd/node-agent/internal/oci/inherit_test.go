package oci

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Members of one allocation start beside each other. One finds the group above them half set by the other, and must end
// with both settings all the same: the kernel lets no process into a group that lacks one.
func TestAGroupInheritsWhatAnotherHasHalfSetAbove(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(group, cpus, mems string) {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, group), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, group, "cpuset.cpus"), []byte(cpus+"\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, group, "cpuset.mems"), []byte(mems+"\n"), 0o600))
	}
	write(".", "0-1", "0")
	write("node", "0-1", "")
	write("node/member", "", "")
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })

	require.NoError(t, hierarchy{names: "cpuset", root: root}.inherit("node/member"))
	for _, group := range []string{"node", "node/member"} {
		cpus, _ := os.ReadFile(filepath.Join(dir, group, "cpuset.cpus"))
		mems, _ := os.ReadFile(filepath.Join(dir, group, "cpuset.mems"))
		require.Contains(t, string(cpus), "0-1", group)
		require.Contains(t, string(mems), "0", group)
	}
}
