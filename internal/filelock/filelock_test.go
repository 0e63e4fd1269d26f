package filelock_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/filelock"
)

func TestExclusiveLockKeepsOthersOutUntilReleased(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := filelock.Try(path, filelock.Exclusive)
	require.NoError(t, err)

	_, err = filelock.Try(path, filelock.Shared)
	require.ErrorIs(t, err, filelock.ErrBusy)

	first.Release()
	first.Release()
	second, err := filelock.Acquire(t.Context(), path, filelock.Exclusive)
	require.NoError(t, err)
	second.Release()
}

func TestSharedLocksAdmitEachOther(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	one, err := filelock.Try(path, filelock.Shared)
	require.NoError(t, err)
	defer one.Release()
	two, err := filelock.Try(path, filelock.Shared)
	require.NoError(t, err)
	two.Release()
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	held, err := filelock.Try(path, filelock.Exclusive)
	require.NoError(t, err)
	defer held.Release()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = filelock.Acquire(ctx, path, filelock.Exclusive)
	require.ErrorIs(t, err, context.Canceled)
}

func TestLockInMissingFolderNamesThePath(t *testing.T) {
	t.Parallel()
	_, err := filelock.Try(filepath.Join(t.TempDir(), "absent", "lock"), filelock.Shared)
	require.ErrorContains(t, err, "absent/lock")
}
