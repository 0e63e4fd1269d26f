package daemons

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestUnfitNodesSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	member := adapter.Member{ID: "mem_c1", ComponentKey: layout.ComponentController, Node: adapter.Node{Name: "n"}}
	codes := map[int]string{3: "PACKAGES_MISSING", 4: "NAMESPACES_MISSING", 1: adapter.CodeNodeTask}
	for exit, want := range codes {
		var failed adapter.OperationError
		require.ErrorAs(
			t,
			unfit(member, adapter.TaskResult{State: adapter.TaskFailed, ExitCode: &exit,
				Stderr: " slurmctld munged\n"}),
			&failed,
		)
		require.Equal(t, want, failed.Code)
		require.Equal(t, adapter.OwnerNode, failed.Owner)
	}
	require.NoError(t, unfit(member, adapter.TaskResult{State: adapter.TaskSucceeded}))
}

func TestMungeKeysDifferByInstanceAndOutliveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys, err := OpenKeyring(dir)
	require.NoError(t, err)
	one, err := keys.munge("ins_1")
	require.NoError(t, err)
	require.Len(t, one, mungeSize)
	two, err := keys.munge("ins_2")
	require.NoError(t, err)
	require.NotEqual(t, one, two)
	again, err := OpenKeyring(dir)
	require.NoError(t, err)
	same, err := again.munge("ins_1")
	require.NoError(t, err)
	require.Equal(t, one, same)
	password, err := keys.password("ins_1")
	require.NoError(t, err)
	require.Regexp(t, `^[0-9a-f]{48}$`, password)
	info, err := os.Stat(filepath.Join(dir, "master.key"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "master.key"), []byte("short"), 0o600))
	_, err = OpenKeyring(dir)
	require.ErrorContains(t, err, "32 bytes")
}
