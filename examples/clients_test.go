// Package examples_test runs the client examples against the client SDK's stand-in server, which speaks the
// platform's protocols and checks every document against its SDL.
package examples_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/clienttest"
)

const token = "gpu_sa_example"

type object = clienttest.Object

// run runs a program in a folder against the stand-in, with these further variables.
func run(t *testing.T, server *clienttest.Server, folder string, variables []string,
	command ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = folder
	cmd.Env = append(append(os.Environ(), "GPUAAS_URL="+server.URL, "GPUAAS_TOKEN="+token, "GPUAAS_PROJECT=prj_1"),
		variables...)
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// platform is a stand-in whose operations end in the given state on the second look.
func platform(t *testing.T, end string) *clienttest.Server {
	t.Helper()
	server := clienttest.New(t, "../graph/schema/*.graphql")
	server.RequireToken(token)
	server.Handle("launchOptions", func(clienttest.Call) (any, error) {
		return object{"allocations": []object{
			{"compatible": false, "allocation": object{"id": "alc_1"}},
			{"compatible": true, "allocation": object{"id": "alc_2"}},
		}}, nil
	})
	server.Handle("launchInstance", func(clienttest.Call) (any, error) {
		return object{"instance": object{"id": "ins_1"}, "operation": object{"id": "op_1"}}, nil
	})
	server.Handle("decommissionInstance",
		func(clienttest.Call) (any, error) { return object{"operation": object{"id": "op_2"}}, nil })
	server.Handle("invokeAction", func(call clienttest.Call) (any, error) {
		return object{"output": call.Input()["input"]},
			nil
	})
	var looks atomic.Int32
	server.Handle("operation", func(call clienttest.Call) (any, error) {
		if looks.Add(1) == 1 {
			return object{"state": "RUNNING", "percent": 40, "phase": "dispatch"}, nil
		}
		if call.Args["id"] == "op_1" {
			return object{"state": end, "percent": 100, "phase": "done"}, nil
		}
		return object{"state": "SUCCEEDED", "percent": 100, "phase": "done"}, nil
	})
	return server
}

func TestCurlLaunchesAsksAndTearsDown(t *testing.T) {
	t.Parallel()
	server := platform(t, "SUCCEEDED")
	output, err := run(t, server, "curl", []string{
		"GPUAAS_APP=hello", "GPUAAS_NAME=one", `GPUAAS_CONFIG={"greeting":"hi"}`, "GPUAAS_ACTION=greet",
		`GPUAAS_INPUT={"name":"world"}`,
	}, "bash", "launch.sh")
	require.NoError(t, err, output)
	require.Contains(t, output, "launch: ins_1 by op_1\n  RUNNING 40% dispatch\n  SUCCEEDED 100% done\n")
	require.Contains(t, output, `{"name":"world"}`)
	require.Contains(t, output, "decommission: op_2\n  SUCCEEDED 100% done\n")
	input := server.CallsOf("launchInstance")[0].Input()
	require.Equal(t, []any{"alc_2"}, input["allocationIds"], "the first that fits")
	require.Equal(t, map[string]any{"greeting": "hi"}, input["config"])
}

func TestCurlTearsDownAFailedLaunchAndFails(t *testing.T) {
	t.Parallel()
	server := platform(t, "FAILED")
	output, err := run(t, server, "curl", []string{"GPUAAS_ALLOCATIONS=alc_7 alc_8"}, "bash", "launch.sh")
	require.Error(t, err, output)
	require.Len(t, server.CallsOf("decommissionInstance"), 1)
	require.Equal(t, []any{"alc_7", "alc_8"}, server.CallsOf("launchInstance")[0].Input()["allocationIds"])
}

func TestCurlShowsARefusal(t *testing.T) {
	t.Parallel()
	server := platform(t, "SUCCEEDED")
	server.Handle("launchInstance", func(clienttest.Call) (any, error) {
		return nil, &clienttest.Fault{Code: "INCOMPATIBLE", Message: "the app does not fit"}
	})
	output, err := run(t, server, "curl", nil, "bash", "launch.sh")
	require.Error(t, err, output)
	require.Contains(t, output, "INCOMPATIBLE")
	require.NotContains(t, output, token)
}

// nodeExample is a copy of the Node example with its packages installed.
func nodeExample(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed")
	}
	folder := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "tail.mjs"} {
		text, err := os.ReadFile(filepath.Join("node-graphql-ws", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund")
	cmd.Dir = folder
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, string(output))
	return folder
}

func TestNodeTailsOverACutOnceEach(t *testing.T) {
	t.Parallel()
	folder := nodeExample(t)
	server := clienttest.New(t, "../graph/schema/*.graphql")
	server.RequireToken(token)
	event := func(n string, kind string) object { return object{"id": "evt_" + n, "cursor": "c" + n, "type": kind} }
	server.HandleStream("instanceTimeline", func(call clienttest.Call, emit func(any) error) error {
		if call.Args["after"] == nil {
			_ = emit(event("1", "apps.instance.requested"))
			return clienttest.ErrDrop
		}
		_ = emit(event("1", "apps.instance.requested"))
		_ = emit(event("2", "apps.instance.running"))
		<-call.Context.Done()
		return nil
	})
	output, err := run(t, server, folder, []string{"GPUAAS_INSTANCE=ins_1", "GPUAAS_UNTIL=apps.instance.running",
		"GPUAAS_TIMEOUT=60"}, "node", "tail.mjs")
	require.NoError(t, err, output)
	require.Equal(t, []string{"evt_1", "evt_2"}, eventIDs(t, output))
	require.Equal(t, "c1", server.CallsOf("instanceTimeline")[1].Args["after"])
}

func TestNodeEndsWhenRefused(t *testing.T) {
	t.Parallel()
	folder := nodeExample(t)
	server := clienttest.New(t, "../graph/schema/*.graphql")
	server.RequireToken("another")
	output, err := run(t, server, folder, []string{"GPUAAS_TIMEOUT=60"}, "node", "tail.mjs")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode(), output)
	require.Contains(t, output, "4403")
}

// eventIDs are the ids of the events that were printed.
func eventIDs(t *testing.T, output string) []string {
	t.Helper()
	var ids []string
	for lines := bufio.NewScanner(strings.NewReader(output)); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "{") {
			continue
		}
		var event struct{ ID string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &event))
		ids = append(ids, event.ID)
	}
	return ids
}
