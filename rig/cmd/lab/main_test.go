package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/lab"
	"github.com/gpuaas/app-platform/sdk/loopback"
)

// asProgram makes this test program behave as the command itself.
const asProgram = "LAB_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	lab.MaybeRunInit()
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// launch starts the command and answers it once it says that it runs.
func launch(t *testing.T, args ...string) (cmd *exec.Cmd, said *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	said = &bytes.Buffer{}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "running") {
			return cmd, said
		}
	}
	t.Fatalf("the command ended early: %v\n%s", cmd.Wait(), said)
	return nil, nil
}

// children lists the live processes that the process started.
func children(t *testing.T, parent int) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		require.NoError(t, err)
		if fields[1] == strconv.Itoa(parent) && running(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func running(pid int) bool {
	_, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe") // gone or a zombie: no program
	return err == nil
}

func TestInterruptStopsEverythingAndASecondRunWorksOnTheKeptData(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	listen := freeAddress(t)
	for range 2 {
		cmd, said := launch(t, "-data", dir, "-nodes", "2", "-bin", "../../../bin", "-listen", listen)
		require.Contains(t, said.String(), "node-1")
		started := children(t, cmd.Process.Pid)
		require.GreaterOrEqual(t, len(started), 2, "a database and at least one node")
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		require.NoError(t, cmd.Wait())
		for _, pid := range started {
			require.False(t, running(pid))
		}
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		require.NoError(t, err)
		require.NotContains(t, string(mounts), "app-platform")
	}
}

// freeAddress is an address that nothing listens on now.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := loopback.AddressOn("127.0.0.1")
	require.NoError(t, err)
	return address
}

func TestBadArgumentsAreRefusedByName(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"-nodes 0 is not between 1 and 32": {"-nodes", "0"},
		`unexpected argument "stop"`:       {"stop"},
		"not defined: -no-such":            {"-no-such"},
	} {
		require.ErrorContains(t, run(t.Context(), args, &bytes.Buffer{}), want)
	}
}
