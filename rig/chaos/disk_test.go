package chaos

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASmallDiskIsFullUntilItIsEmptied(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "disk")
	disk, err := Mount(dir, 1<<20)
	if err != nil {
		t.Skip(err.Error())
	}
	t.Cleanup(func() { _ = disk.Unmount() })
	require.NoError(t, disk.Fill())
	require.NoError(t, disk.Fill(), "what others deleted meanwhile is filled as well")
	name := filepath.Join(dir, "file")
	require.ErrorIs(t, os.WriteFile(name, []byte("x"), 0o600), syscall.ENOSPC)
	require.NoError(t, SweepDisks())
	require.NoError(t, disk.Empty())
	require.NoError(t, disk.Empty())
	require.NoError(t, os.WriteFile(name, []byte("x"), 0o600), "the disk of a run that goes on is not swept")
}
