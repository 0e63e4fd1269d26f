package procfs_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/procfs"
)

func TestProcessIsKnownByNumberAndStart(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "7751")
	require.NoError(t, cmd.Start())
	pid := cmd.Process.Pid
	stat, err := procfs.ReadStat(pid)
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), stat.PPID)
	require.True(t, procfs.Running(pid, stat.Start))
	require.False(t, procfs.Running(pid, stat.Start+1), "another process with this number")
	require.Eventually(t, func() bool { return procfs.Command(pid) == "sleep 7751" }, 5*time.Second, time.Millisecond)
	require.NotZero(t, procfs.Namespace(pid, "pid"))
	below, err := procfs.Descendants(os.Getpid())
	require.NoError(t, err)
	require.Contains(t, below, pid)

	require.NoError(t, cmd.Process.Kill())
	require.True(t, procfs.WaitGone(pid, stat.Start, 5*time.Second), "a zombie does not run")
	below, err = procfs.Descendants(os.Getpid())
	require.NoError(t, err)
	require.NotContains(t, below, pid)
	_ = cmd.Wait()
	_, err = procfs.ReadStat(pid)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestWaitGivesUpOnTheLiving(t *testing.T) {
	t.Parallel()
	own, err := procfs.ReadStat(os.Getpid())
	require.NoError(t, err)
	require.False(t, procfs.WaitGone(own.PID, own.Start, 10*time.Millisecond))
}
