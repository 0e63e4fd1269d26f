package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// brokenBy is a journal with one task, whose file is replaced by one that fails.
func brokenBy(t *testing.T, file *os.File) *Journal {
	t.Helper()
	j, _, err := Open(t.TempDir(), time.Now)
	require.NoError(t, err)
	require.NoError(t, j.Accept("tsk_a", 1, "mem_a", "RUN", Context{}))
	require.NoError(t, j.file.Close())
	j.file = file
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// notDone requires that a change fails for the cause, that the journal claims nothing that the disk does not have, and
// that the next change goes to a whole file.
func notDone(t *testing.T, j *Journal, cause error) {
	t.Helper()
	size := j.size
	require.ErrorIs(t, j.Accept("tsk_b", 1, "mem_a", "RUN", Context{}), cause)
	_, ok := j.Get("tsk_b")
	require.False(t, ok, "a task that is not on the disk is not taken")
	require.Equal(t, size, j.size)
	require.NoError(t, j.Finish("tsk_a", Outcome{State: "SUCCEEDED"}))
	again, damaged, err := Open(j.dir, time.Now)
	require.NoError(t, err)
	require.Zero(t, damaged)
	entry, ok := again.Get("tsk_a")
	require.True(t, ok)
	require.Equal(t, "SUCCEEDED", entry.Outcome.State)
}

// A disk that fills up in the middle of a line leaves half of it. The next line must not be glued to it: it would be
// read as damage, and a task that was taken would be forgotten.
func TestAfterADiskWasFullTheNextEntryIsReadBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mount("gpuaas", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("a small disk needs the right to mount: " + err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	j, _, err := Open(dir, time.Now)
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	ballast := filepath.Join(dir, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 8<<10), 0o600))
	var failed error
	for n := 0; failed == nil; n++ {
		require.Less(t, n, 1000, "the disk never fills up")
		failed = j.Accept(fmt.Sprintf("tsk_%d_%s", n, strings.Repeat("x", 300)), 1, "mem_a", "RUN", Context{})
	}
	require.ErrorIs(t, failed, unix.ENOSPC)
	require.Error(t, j.Accept("tsk_full", 1, "mem_a", "RUN", Context{}), "nothing is taken while the disk is full")
	require.NoError(t, os.Remove(ballast))
	for _, entry := range j.entries { // room for the whole file once more
		if len(entry.TaskID) > 100 {
			delete(j.entries, entry.TaskID)
		}
	}
	require.NoError(t, j.Accept("tsk_next", 1, "mem_a", "RUN", Context{}))
	again, damaged, err := Open(dir, time.Now)
	require.NoError(t, err)
	require.Zero(t, damaged)
	_, ok := again.Get("tsk_next")
	require.True(t, ok)
}

func TestAWriteThatFailsIsNotDone(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no disk that is always full: " + err.Error())
	}
	notDone(t, brokenBy(t, full), unix.ENOSPC)
}

func TestASyncThatFailsIsNotDone(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe() // takes bytes, and cannot sync them
	require.NoError(t, err)
	t.Cleanup(func() { _ = read.Close() })
	notDone(t, brokenBy(t, write), unix.EINVAL)
}
