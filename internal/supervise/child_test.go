package supervise_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/supervise"
)

const (
	waitFor = 10 * time.Second
	tick    = 10 * time.Millisecond
)

// buffer is a log that a test may read while the program writes.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func start(t *testing.T, spec supervise.Spec) *supervise.Child {
	t.Helper()
	spec.Name = t.Name()
	child, err := supervise.Start(spec)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, child.Stop()) })
	return child
}

func shell(script string) []string { return []string{"/bin/sh", "-c", script} }

func running(pid int) bool {
	_, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe") // gone or a zombie: no program
	return err == nil
}

func TestOutputAndExitOfAProgramThatEndsAreKept(t *testing.T) {
	t.Parallel()
	var log buffer
	child := start(t, supervise.Spec{Command: shell("echo out; echo err >&2; exit 3"), Log: &log})
	<-child.Done()
	require.Equal(t, "out\nerr\n", log.String())
	require.ErrorContains(t, child.Err(), "exit status 3")
	require.Equal(t, 1, child.Starts())
}

func TestFailingProgramIsStartedAgainAndASuccessfulOneIsNot(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	child := start(t, supervise.Spec{
		Command: shell(`test -e ` + mark + ` && exit 0; touch ` + mark + `; exit 1`),
		Restart: supervise.OnFailure, Backoff: time.Millisecond,
	})
	<-child.Done()
	require.Equal(t, 2, child.Starts())
	require.NoError(t, child.Err())
}

func TestKilledProgramIsStartedAgain(t *testing.T) {
	t.Parallel()
	child := start(t, supervise.Spec{Command: []string{"sleep", "1000"}, Restart: supervise.Always,
		Backoff: time.Millisecond})
	first := child.PID()
	require.NoError(t, child.Signal(syscall.SIGKILL))
	require.Eventually(t, func() bool { return child.Starts() == 2 }, waitFor, tick)
	require.NotEqual(t, first, child.PID())
}

func TestRestartOnDemandReplacesTheRunWhateverThePolicy(t *testing.T) {
	t.Parallel()
	child := start(t, supervise.Spec{Command: []string{"sleep", "1000"}})
	first := child.PID()
	require.NoError(t, child.Restart(t.Context()))
	require.Equal(t, 2, child.Starts())
	require.False(t, running(first))
	require.NoError(t, child.Stop())
	require.ErrorIs(t, child.Restart(t.Context()), supervise.ErrEnded)
}

func TestStopKillsAProgramThatIgnoresTheSignalAndWhatItStarted(t *testing.T) {
	t.Parallel()
	var log buffer
	child := start(t, supervise.Spec{
		Command: shell(`trap "" TERM; sleep 1000 & echo $!; while :; do wait; done`),
		Log:     &log, Restart: supervise.Always, StopTimeout: 50 * time.Millisecond,
	})
	require.Eventually(t, func() bool { return strings.HasSuffix(log.String(), "\n") }, waitFor, tick)
	grandchild, err := strconv.Atoi(strings.TrimSpace(log.String()))
	require.NoError(t, err)

	require.NoError(t, child.Stop())
	require.NoError(t, child.Stop())
	require.False(t, running(child.PID()))
	require.Eventually(t, func() bool { return !running(grandchild) }, waitFor, tick)
}

func TestStopDuringTheRestartPauseEndsAtOnce(t *testing.T) {
	t.Parallel()
	child := start(t, supervise.Spec{Command: []string{"false"}, Restart: supervise.Always, Backoff: time.Hour})
	require.Eventually(t, func() bool { return child.Err() != nil }, waitFor, tick)
	require.NoError(t, child.Stop())
	require.Equal(t, 1, child.Starts())
}

func TestMissingProgramIsAnErrorOfStart(t *testing.T) {
	t.Parallel()
	_, err := supervise.Start(supervise.Spec{Name: "ghost", Command: []string{"/no/such/program"}})
	require.ErrorContains(t, err, "start ghost")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = supervise.Start(supervise.Spec{Name: "empty"})
	require.ErrorContains(t, err, "Command is empty")
}

// TestChildDiesWithItsKilledSupervisor re-runs this test program as a supervisor that kills itself.
func TestChildDiesWithItsKilledSupervisor(t *testing.T) {
	t.Parallel()
	const env = "SUPERVISE_TEST_PIDFILE"
	if path := os.Getenv(env); path != "" {
		child := start(t, supervise.Spec{Command: []string{"sleep", "1000"}})
		require.NoError(t, os.WriteFile(path, []byte(strconv.Itoa(child.PID())), 0o600))
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		select {}
	}
	path := filepath.Join(t.TempDir(), "pid")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChildDiesWithItsKilledSupervisor$")
	cmd.Env = append(os.Environ(), env+"="+path)
	require.ErrorContains(t, cmd.Run(), "signal: killed")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(data))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !running(pid) }, waitFor, tick)
}

func TestStackComesDownLastFirstAndPastFailures(t *testing.T) {
	t.Parallel()
	var stack supervise.Stack
	var order []string
	broken := errors.New("broken")
	for _, name := range []string{"database", "server", "node"} {
		stack.Push(name, func() error {
			order = append(order, name)
			if name == "server" {
				return broken
			}
			return nil
		})
	}
	err := stack.Close()
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "stop server")
	require.Equal(t, []string{"node", "server", "database"}, order)
	require.NoError(t, stack.Close())
}

func TestLogIsBoundedAndRemembersItsEnd(t *testing.T) {
	t.Parallel()
	log, err := supervise.OpenLog(filepath.Join(t.TempDir(), "logs"), "noisy")
	require.NoError(t, err)
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range 40 {
		_, err := log.Write(chunk)
		require.NoError(t, err)
	}
	_, err = log.Write([]byte("\nlast words\n"))
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(log.Tail(), "last words"))
	require.LessOrEqual(t, len(log.Tail()), 4<<10)
	for _, path := range []string{log.Path(), log.Path() + ".1"} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(16<<20))
	}
	require.NoError(t, log.Close())
}
