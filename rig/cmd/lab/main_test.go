package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	appctl := commandLine(t, "http://"+listen, "main")
	var own string
	for round := range 2 {
		cmd, said := launch(t, "-data", dir, "-nodes", "2", "-bin", "../../../bin", "-listen", listen)
		require.Contains(t, said.String(), "node-1")
		if os.Geteuid() == 0 && round == 0 {
			appctl("login", "--token-file", filepath.Join(dir, "cluster-automation.key"))
			appctl("allocations", "request", "--name", "room")
			appctl("launch", "slurm", "--name", "kept", "--allocation", "room", "--wait")
			servesAModel(t, appctl)
		}
		if os.Geteuid() == 0 && round == 1 {
			comesBack(t, appctl, "kept")
		}
		if os.Geteuid() == 0 {
			own = runsForThePlatform(t, "http://"+listen, said.String(), own)
		}
		started := children(t, cmd.Process.Pid)
		require.GreaterOrEqual(t, len(started), 2, "a database and at least one node")
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		require.NoError(t, cmd.Wait())
		for _, pid := range started {
			require.False(t, running(pid))
		}
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		require.NoError(t, err)
		for line := range strings.Lines(string(mounts)) {
			if !strings.Contains(line, "app-platform-chaos-") { // another test's small disk
				require.NotContains(t, line, "app-platform")
			}
		}
	}
}

// servesAModel launches the model server as a newcomer would, with capacity that the launch requests.
func servesAModel(t *testing.T, appctl func(args ...string) string) {
	t.Helper()
	for _, class := range []string{"shared  SHARED", "local   LOCAL"} {
		require.Regexp(t, class+` .* 2  `, appctl("storage-classes", "list"), "both nodes offer it")
	}
	appctl("launch", "model-server", "--name", "model", "--component", "replica=1", "--further",
		"replica=gpu-slice:1", "--wait")
	shown := strings.ReplaceAll(appctl("instances", "show", "model", "-o", "json"), " ", "")
	require.Contains(t, shown, `"status":"RUNNING"`)
	require.Contains(t, appctl("endpoints", "model"), "http://api--")
	appctl("decommission", "model", "--reason", "seen it", "--wait")
}

// runsForThePlatform requires that the system app runs, once, in the platform's own project, and that it is the
// instance of an earlier run, where there was one. It returns its id.
func runsForThePlatform(t *testing.T, server, said, earlier string) (id string) {
	t.Helper()
	operator := regexp.MustCompile(`(?m)^operator +(\S+)\n.*APPCTL_PROJECT=(\S+)$`).FindStringSubmatch(said)
	require.NotNil(t, operator, said)
	appctl := commandLine(t, server, operator[2])
	appctl("login", "--code", operator[1])
	require.Contains(t, appctl("apps", "list", "--system"), "staff-notebook")
	running := strings.Fields(appctl("instances", "list", "-q"))
	require.Len(t, running, 1)
	if earlier != "" {
		require.Equal(t, earlier, running[0])
		comesBack(t, appctl, "staff-notebook")
	}
	shown := strings.ReplaceAll(appctl("instances", "show", running[0], "-o", "json"), " ", "")
	require.Contains(t, shown, `"status":"RUNNING"`)
	require.Contains(t, shown, `"system":true`)
	return running[0]
}

// commandLine runs the command line against a server, as the guides do, and answers what it prints.
func commandLine(t *testing.T, server, project string) func(args ...string) string {
	t.Helper()
	home := t.TempDir()
	return func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "../../../bin/appctl", args...)
		cmd.Env = append(os.Environ(), "APPCTL_SERVER="+server, "APPCTL_PROJECT="+project, "HOME="+home,
			"XDG_CONFIG_HOME="+home)
		var complaints bytes.Buffer
		cmd.Stderr = &complaints
		out, err := cmd.Output()
		require.NoError(t, err, "appctl %v: %s%s", args, out, complaints.String())
		return string(out)
	}
}

// comesBack requires that the instance that ran before is well again, by operations of the platform's own: every node
// was restarted under it.
func comesBack(t *testing.T, appctl func(args ...string) string, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		shown := strings.ReplaceAll(appctl("instances", "show", name, "-o", "json"), " ", "")
		well := strings.Contains(shown, `"health":"HEALTHY"`)
		for _, other := range []string{"UNHEALTHY", "DEGRADED", "UNKNOWN"} {
			well = well && !strings.Contains(shown, `"health":"`+other+`"`)
		}
		return well && !strings.Contains(shown, `"status":"FAILED"`) && strings.Contains(shown, "MEMBER_RECOVER")
	}, 2*time.Minute, time.Second)
	told := appctl("events", "tail", name, "-o", "json")
	require.Contains(t, told, "apps.instance.member_failed")
	require.Contains(t, told, "NODE_RESTARTED")
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
