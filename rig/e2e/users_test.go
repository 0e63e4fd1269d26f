package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/loopback"
)

// appctl runs the command line as the service account and answers what it printed.
func appctl(t *testing.T, ctx context.Context, args ...string) string {
	t.Helper()
	out, problems, code := appctlAs(t, ctx, shared.Demo.ServiceAccountKey, args...)
	require.Zero(t, code, "appctl %v: %s", args, problems)
	return out
}

// appctlAs runs the command line with a token, and returns its output, its errors and its exit code.
func appctlAs(t *testing.T, ctx context.Context, token string, args ...string) (said, complaint string, code int) {
	t.Helper()
	command := exec.CommandContext(ctx, "../../bin/appctl", args...)
	command.Env = append(os.Environ(), "APPCTL_SERVER="+shared.URL, "APPCTL_TOKEN="+token,
		"APPCTL_PROJECT="+shared.Demo.ProjectID, "XDG_CONFIG_HOME="+t.TempDir())
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	err := command.Run()
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		require.NoError(t, err)
	}
	return out.String(), problems.String(), command.ProcessState.ExitCode()
}

func TestTheCommandLinesExitCodeSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	ctx, key := bounded(t), shared.Demo.ServiceAccountKey
	nobody, err := loopback.Address()
	require.NoError(t, err)
	for name, test := range map[string]struct {
		token, says string
		args        []string
		code        int
	}{
		"missing instance": {key, "NOT_FOUND", []string{"instances", "show", "no-such-instance"}, 3},
		"missing instance by id": {key, "NOT_FOUND", []string{"instances", "show",
			"ins_01m7w00000000000000000000a"}, 3},
		"decommission of nothing": {key, "NOT_FOUND", []string{"decommission", "no-such-instance", "--reason",
			"test"}, 3},
		"action of nothing": {key, "NOT_FOUND", []string{"action", "run", "no-such-instance", "greet"}, 3},
		"unknown app": {key, "NOT_FOUND",
			[]string{"launch", "no-such-app", "--name", "nothing", "--allocation",
				"alc_01m7w00000000000000000000a"}, 3},
		"unknown flag":            {key, "USAGE", []string{"instances", "list", "--no-such-flag"}, 2},
		"garbage token":           {"gpu_sa_garbage", "UNAUTHENTICATED", []string{"instances", "list"}, 4},
		"right that is not one's": {key, "FORBIDDEN", []string{"nodes"}, 4},
		"server that is not there": {key, "UNAVAILABLE", []string{"instances", "list", "--server",
			"http://" + nobody}, 7},
		"allocation that is no id": {key, "", []string{"launch", "hello-cluster", "--name", "nothing", "--allocation",
			"no-such-allocation"}, 3},
		"name that breaks the rules": {key, "INVALID_ARGUMENT",
			[]string{"launch", "hello-cluster", "--name", "No Name!", "--allocation",
				"alc_01m7w00000000000000000000a"}, 6},
	} {
		said, complaint, code := appctlAs(t, ctx, test.token, test.args...)
		require.Equal(t, test.code, code, "%s: %s", name, complaint)
		require.Contains(t, complaint, test.says, name)
		require.Empty(t, said, name)
	}
}

func TestALoginCodeWorksOnceAndAWrongOneNever(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	_, code, err := shared.LoginLink(ctx, shared.Demo.ViewerID)
	require.NoError(t, err)
	wrong := []byte(code)
	wrong[len(wrong)-9] ^= 1 // of the secret, before the checksum
	for _, bad := range []string{string(wrong), "gpu_lnk_", code[:len(code)-1], shared.Demo.ServiceAccountKey} {
		_, err := shared.LogIn(ctx, bad)
		require.Contains(t, []string{"UNAUTHENTICATED", "INVALID_ARGUMENT"}, client.CodeOf(err), "%q: %v", bad, err)
	}
	viewer, err := shared.LogIn(ctx, code)
	require.NoError(t, err)
	who, err := gql.GetViewer(ctx, viewer)
	require.NoError(t, err)
	require.Equal(t, shared.Demo.ViewerID, who.Viewer.Actor.Id)
	_, err = shared.LogIn(ctx, code)
	require.Equal(t, "UNAUTHENTICATED", client.CodeOf(err))
}

func TestTheCommandLineCarriesTheWholeJob(t *testing.T) {
	needsRoot(t)
	t.Parallel()
	ctx, c := bounded(t), automation(t)
	allocation := rent(t, ctx, c)
	require.Contains(t, appctl(t, ctx, "apps", "list"), "slurm")
	appctl(t, ctx, "launch", "slurm", "--name", "slurm-cli", "--allocation", allocation, "--wait")
	require.Contains(t, appctl(t, ctx, "instances", "list"), "slurm-cli")
	require.Contains(t, appctl(t, ctx, "events", "tail", "slurm-cli"), "apps.instance.running")
	submitted := appctl(t, ctx, "action", "run", "slurm-cli", "queue.submit", "--input",
		`{"name":"cli","script":"#!/bin/bash\nhostname\n"}`)
	require.NotEmpty(t, submitted)
	var listed any
	require.NoError(t, json.Unmarshal([]byte(appctl(t, ctx, "action", "run", "slurm-cli", "queue.list", "-o", "json")),
		&listed))
	appctl(t, ctx, "decommission", "slurm-cli", "--reason", "end-to-end test", "--wait")
}

func TestPlainCurlCarriesTheWholeJob(t *testing.T) {
	t.Parallel()
	ctx, c := bounded(t), automation(t)
	command := exec.CommandContext(ctx, "bash", "../../examples/curl/launch.sh")
	command.Env = append(os.Environ(), "GPUAAS_URL="+shared.URL, "GPUAAS_TOKEN="+shared.Demo.ServiceAccountKey,
		"GPUAAS_PROJECT="+shared.Demo.ProjectID, "GPUAAS_ALLOCATIONS="+rent(t, ctx, c), "GPUAAS_NAME=hello-curl")
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestAClientInAnotherLanguageTailsATimeline(t *testing.T) {
	ctx, c := bounded(t), automation(t)
	install := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund")
	install.Dir = "../../examples/node-graphql-ws"
	said, err := install.CombinedOutput()
	require.NoError(t, err, string(said))
	instance, operation := launch(t, ctx, c, "hello-cluster", "hello-node", rent(t, ctx, c))
	tail := exec.CommandContext(ctx, "node", "tail.mjs")
	tail.Dir = install.Dir
	tail.Env = append(os.Environ(), "GPUAAS_URL="+shared.URL, "GPUAAS_TOKEN="+shared.Demo.ServiceAccountKey,
		"GPUAAS_INSTANCE="+instance, "GPUAAS_UNTIL=apps.instance.running", "GPUAAS_TIMEOUT=120")
	out, err := tail.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "apps.instance.requested")
	require.Contains(t, string(out), "apps.instance.running")
	succeeds(t, ctx, c, operation)
	decommission(t, ctx, c, instance)
}

// TestTheConsoleCarriesTheWholeJobOverARestart drives real headless Chromium, and restarts the server while the launch
// is open in it. Its pages are judged in every size and scheme by TestTheConsoleAddsDrainsAndRemovesAMember.
func TestTheConsoleCarriesTheWholeJobOverARestart(t *testing.T) {
	ctx, c := walking(t), automation(t)
	rent(t, ctx, c)
	app := "slurm"
	if os.Geteuid() != 0 {
		app = "hello-cluster"
	}
	require.Contains(t, walkConsole(t, ctx, app, "--restart", "--brief"), "restart")
}
