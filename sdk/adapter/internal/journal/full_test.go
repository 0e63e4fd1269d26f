package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
)

// A disk that fills up in the middle of a record leaves half of it. The next record must not be glued to it: neither
// would be read back, and the adapter would not start.
func TestAfterADiskWasFullEveryRecordThatWasTakenIsReadBackAndNoOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("gpuaas", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skip("a small disk needs the right to mount: " + err.Error())
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	j, err := Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	ballast := filepath.Join(dir, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 16<<10), 0o600))
	require.NoError(t, j.Append("op_1", Record{Dispatch: &contract.Dispatch{OperationID: "op_1"}}, true))
	step := func(n int) Record { return Record{Step: fmt.Sprintf("step %d %s", n, strings.Repeat("x", 700))} }
	taken, failed := 0, error(nil)
	for ; failed == nil; taken++ {
		require.Less(t, taken, 1000, "the disk never fills up")
		failed = j.Append("op_1", step(taken), true)
	}
	require.ErrorIs(t, failed, syscall.ENOSPC)
	taken--
	require.Error(t, j.Append("op_1", step(-1), true), "nothing is taken while the disk is full")
	require.NoError(t, os.Remove(ballast))
	require.NoError(t, j.Append("op_1", Record{Step: "next"}, true))
	records, err := j.Read("op_1")
	require.NoError(t, err)
	require.Len(t, records, 1+taken+1)
	require.Equal(t, step(taken-1).Step, records[taken].Step)
	require.Equal(t, "next", records[taken+1].Step)
}

// When even the half record cannot be cut off, nothing is added until it can.
func TestWhatCannotBeCutOffKeepsTheFileClosed(t *testing.T) {
	t.Parallel()
	j, err := Open(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	require.NoError(t, j.Append("op_1", Record{Step: "one"}, true))
	end := int64(len(read(t, j)))
	require.NoError(t, os.WriteFile(j.path("op_1"), append(read(t, j), `{"step":"ha`...), 0o600))
	closed, err := os.Open(j.path("op_1"))
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	full := errors.New("full")
	require.ErrorIs(t, j.cut("op_1", closed, end, full), full)
	_, err = j.sound("op_1", closed)
	require.Error(t, err, "and it is not forgotten")
	require.NoError(t, j.Append("op_1", Record{Step: "two"}, true))
	records, err := j.Read("op_1")
	require.NoError(t, err)
	require.Len(t, records, 2)
	require.Equal(t, "two", records[1].Step)
}

func read(t *testing.T, j *Journal) []byte {
	t.Helper()
	raw, err := os.ReadFile(j.path("op_1"))
	require.NoError(t, err)
	return raw
}

func TestTombstonesAreReadBack(t *testing.T) {
	t.Parallel()
	j, err := Open(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	require.NoError(t, j.Bury("op_1", 3))
	require.NoError(t, j.Bury("op_2", 1))
	require.NoError(t, j.Exhume("op_2"))
	require.NoError(t, j.Exhume("op_2"))
	all, err := j.Tombstones()
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, 3, all["op_1"].Attempt)
	require.False(t, all["op_1"].At.IsZero())
}
