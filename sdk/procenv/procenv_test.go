package procenv_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/exectest"
	"github.com/gpuaas/app-platform/sdk/procenv"
)

// start runs a command until the test ends and returns its process's number.
func start(t *testing.T, env []string, name string, args ...string) int {
	t.Helper()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("there is no process table to read")
	}
	command := exec.CommandContext(t.Context(), name, args...)
	command.Env = env
	require.NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Wait() })
	return command.Process.Pid
}

func TestAnAssignmentIsComparedAsAWhole(t *testing.T) {
	t.Parallel()
	pid := start(t, []string{"FIRST=1", "MARK=here"}, "/bin/sleep", "600")
	require.True(t, procenv.Has(pid, "MARK=here"))
	require.True(t, procenv.Has(pid, "FIRST=1"))
	for _, other := range []string{"MARK=her", "ARK=here", "MARK=here1"} {
		require.False(t, procenv.Has(pid, other), other)
	}
}

func TestAProcessWithoutAnEnvironmentIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	pid := start(t, []string{}, "/bin/sleep", "600")
	began := time.Now()
	require.Empty(t, procenv.Of(pid))
	require.Empty(t, procenv.Of(2), "a thread of the kernel, or nothing")
	require.Empty(t, procenv.Of(1<<30), "no such process")
	require.Less(t, time.Since(began), 5*time.Second)
}

func TestAProcessThatIsBeingReplacedKeepsItsEnvironment(t *testing.T) {
	t.Parallel()
	again := filepath.Join(t.TempDir(), "again")
	exectest.Write(t, again, "#!/bin/sh\nexec \"$0\"\n")
	pid := start(t, []string{"MARK=here"}, "/bin/sh", "-c", `exec "$0"`, again)
	for range 5000 {
		require.True(t, procenv.Has(pid, "MARK=here"))
	}
}
