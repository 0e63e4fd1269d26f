package lab_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/supervise"
	"github.com/gpuaas/app-platform/rig/lab"
)

func TestPlainNodeEndsEverythingThatItsProgramsStarted(t *testing.T) {
	t.Parallel()
	plain, err := lab.NewPlain("local")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, plain.Kill()) })
	require.Equal(t, "127.0.0.1", plain.Addr().String())
	file := filepath.Join(t.TempDir(), "pid")
	run(t, plain, "setsid sh -c 'echo $$ > "+file+"; setsid sleep 999 & exec sleep 1000' &")
	require.Eventually(t, func() bool { data, err := os.ReadFile(file); return err == nil && len(data) > 1 }, waitFor,
		tick)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	daemon, err := strconv.Atoi(strings.TrimSpace(string(data)))
	require.NoError(t, err)
	require.True(t, running(daemon))
	require.ErrorContains(t, plain.CutNetwork(t.Context()), "no network of its own")
	require.NoError(t, plain.Kill())
	require.False(t, running(daemon))
}

// TestKilledLabLeavesOnlyAFolderThatSweepRemoves re-runs this test program as a lab that kills itself.
func TestKilledLabLeavesOnlyAFolderThatSweepRemoves(t *testing.T) {
	t.Parallel()
	const env = "LAB_TEST_REPORT"
	live := network(t) // says why where labs cannot be
	if path := os.Getenv(env); path != "" {
		a := node(t, live, lab.NodeConfig{Name: "a"})
		_, err := a.Start(supervise.Spec{Name: "agent", Command: []string{"sleep", "1000"}})
		require.NoError(t, err)
		plain, err := lab.NewPlain("local")
		require.NoError(t, err)
		run(t, plain, "setsid sleep 1000 &")
		require.NoError(t, os.WriteFile(path, []byte(fmt.Sprint(a.PID(), plain.PID(), stateDir(t, a))), 0o600))
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		select {}
	}
	path := filepath.Join(t.TempDir(), "report")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledLabLeavesOnlyAFolderThatSweepRemoves$")
	cmd.Env = append(os.Environ(), env+"="+path)
	require.ErrorContains(t, cmd.Run(), "signal: killed")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var nodeInit, plainInit int
	var dir string
	_, err = fmt.Sscan(string(data), &nodeInit, &plainInit, &dir)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !running(nodeInit) && !running(plainInit) }, waitFor, tick)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	require.NotContains(t, string(mounts), dir)

	survivor := node(t, live, lab.NodeConfig{Name: "survivor"})
	require.DirExists(t, dir)
	require.NoError(t, lab.Sweep())
	require.NoDirExists(t, dir)
	require.DirExists(t, stateDir(t, survivor), "a live lab is left alone")
	require.Equal(t, "survivor", run(t, survivor, "hostname"))
}

// stateDir is the folder of the node's lab: argument 1 of the node's init.
func stateDir(t *testing.T, node *lab.Node) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", node.PID()))
	require.NoError(t, err)
	return strings.Split(string(data), "\x00")[1]
}
