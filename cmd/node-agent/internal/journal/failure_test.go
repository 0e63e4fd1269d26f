package journal

import (
	"os"
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
	require.NoError(t, j.Accept("tsk_a", 1, "mem_a", "RUN"))
	require.NoError(t, j.file.Close())
	j.file = file
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// notDone requires that each change fails for the cause, and that the journal claims nothing that the disk does not
// have.
func notDone(t *testing.T, j *Journal, cause error) {
	t.Helper()
	size := j.size
	require.ErrorIs(t, j.Accept("tsk_b", 1, "mem_a", "RUN"), cause)
	_, ok := j.Get("tsk_b")
	require.False(t, ok, "a task that is not on the disk is not taken")
	require.ErrorIs(t, j.Finish("tsk_a", Outcome{State: "SUCCEEDED"}), cause)
	entry, ok := j.Get("tsk_a")
	require.True(t, ok)
	require.Equal(t, StateRunning, entry.State)
	require.Nil(t, entry.Outcome)
	require.Empty(t, j.Unreported())
	require.Equal(t, size, j.size)
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
