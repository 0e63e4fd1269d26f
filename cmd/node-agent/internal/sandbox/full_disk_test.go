package sandbox_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
)

// What is tried on a full disk says nothing of what the node can do: an agent that went on without offering members
// would do so after there is space again.
func TestAFullDiskIsNoNodeWithoutContainers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mount("gpuaas", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Skip("a small disk needs the right to mount: " + err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	options := sandbox.Options{StateDir: dir, Root: testRoot, Log: slog.New(slog.DiscardHandler)}
	ballast := filepath.Join(dir, "ballast")
	require.ErrorIs(t, os.WriteFile(ballast, make([]byte, 80<<20), 0o600), unix.ENOSPC)
	_, err := sandbox.NewManager(t.Context(), options)
	require.ErrorIs(t, err, unix.ENOSPC)
	require.NoError(t, os.Remove(ballast))
	// a process that a test beside this one forks holds what was open until it is a program
	require.Eventually(t, func() bool {
		var disk unix.Statfs_t
		return unix.Statfs(dir, &disk) == nil && disk.Bavail > disk.Blocks/2
	}, 30*time.Second, 10*time.Millisecond)
	manager, err := sandbox.NewManager(t.Context(), options)
	require.NoError(t, err)
	require.Equal(t, memberinit.ModeContainer, manager.Isolation().Mode, manager.Isolation().Reason)
	require.False(t, manager.Isolation().Tmpfs)
}
