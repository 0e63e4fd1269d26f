package controller_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/controller"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

var manifest = []byte(`{"app":"tiny","components":[{"key":"peer","displayName":"Peer","min":1,"max":1,"default":1}]}` +
	"\n")

func spec() controller.Spec {
	return controller.Spec{Name: "tiny", Manifest: manifest, App: func(string) (adapter.App, error) {
		app, err := adapter.FromManifest(manifest, nil)
		app.Operations = map[adapter.Kind]adapter.OperationFunc{
			adapter.InstanceCreate: func(context.Context, *adapter.Run) error { return nil },
		}
		return app, err
	}}
}

// TestMain lets the test binary be a controller, for the test of inherited descriptors and signals.
func TestMain(m *testing.M) {
	if os.Getenv("CONTROLLER_TEST_CHILD") != "" {
		os.Exit(controller.Main(spec()))
	}
	os.Exit(m.Run())
}

func TestWrongFlagsAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cases := map[string]struct {
		args []string
		code int
		says string
	}{
		"no platform":  {[]string{"--state-dir", dir}, 2, "--platform-url"},
		"no directory": {[]string{"--platform-url", "http://p"}, 2, "--state-dir"},
		"unknown flag": {[]string{"--nonsense"}, 2, "nonsense"},
		"argument":     {[]string{"--platform-url", "http://p", "--state-dir", dir, "more"}, 2, `"more"`},
		"bad level": {[]string{"--platform-url", "http://p", "--state-dir", dir, "--log-level", "loud"},
			1, "--log-level"},
		"bad address": {[]string{"--platform-url", "http://p", "--state-dir", t.TempDir(), "--listen", "nowhere:x"}, 1,
			"--listen"},
		// Each case that opens its journal has a directory of its own: a program that another test starts may keep the
		// lock of the journal of the case before until its exec.
		"bad fd": {[]string{"--platform-url", "http://p", "--state-dir", t.TempDir(), "--listen-fd", "987"}, 1,
			"--listen-fd"},
	}
	for name, c := range cases {
		var stderr bytes.Buffer
		code := controller.Run(context.Background(), spec(), c.args, io.Discard, &stderr)
		require.Equal(t, c.code, code, name)
		require.Contains(t, stderr.String(), c.says, name)
	}
}

func TestManifestIsPrinted(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	require.Zero(t, controller.Run(context.Background(), spec(), []string{"--print-manifest"}, &stdout, io.Discard))
	require.Equal(t, string(manifest), stdout.String())
}

func TestTheVersionsAreToldApart(t *testing.T) {
	t.Parallel()
	its := spec()
	its.Build, its.Manifest = "1.2.4", []byte(`{"app":"tiny","version":"1.2.3"}`)
	var stdout bytes.Buffer
	require.Zero(t, controller.Run(context.Background(), its, []string{"--version"}, &stdout, io.Discard))
	require.Equal(t, "tiny 1.2.4\napp tiny 1.2.3\ncontract 1.1 1.0\n", stdout.String())
}

func TestAnAccountThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	require.Equal(t, 1, controller.Run(context.Background(), spec(),
		[]string{"--platform-url", "http://p", "--state-dir",
			t.TempDir(), "--service-account-file", "/nowhere"}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "--service-account-file")
}

func TestEvidenceIsPrinted(t *testing.T) {
	t.Parallel()
	its := spec()
	its.Conformance, its.Tenancy = []byte("whole"), []byte("part")
	for kind, want := range map[string]string{"conformance": "whole", "tenancy": "part"} {
		var stdout bytes.Buffer
		require.Zero(t, controller.Run(context.Background(), its, []string{"--print-evidence", kind}, &stdout,
			io.Discard))
		require.Equal(t, want, stdout.String())
	}
	require.Equal(t, 2, controller.Run(context.Background(), its, []string{"--print-evidence", "lint"}, io.Discard,
		io.Discard))
}

func TestControllerServesAnInheritedListenerUntilItsSignal(t *testing.T) {
	t.Parallel()
	p := adaptertest.New(t, "tiny")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	file, err := listener.(*net.TCPListener).File()
	require.NoError(t, err)
	base := "http://" + listener.Addr().String()
	require.NoError(t, listener.Close())

	command := exec.Command(os.Args[0], "--platform-url", p.URL+"/", "--state-dir", filepath.Join(t.TempDir(), "state"),
		"--listen-fd", "3")
	command.Env = append(os.Environ(), "CONTROLLER_TEST_CHILD=1")
	command.ExtraFiles = []*os.File{file}
	stderr, err := command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() })
	require.NoError(t, file.Close())

	log := bufio.NewScanner(stderr)
	require.True(t, log.Scan())
	var line map[string]any
	require.NoError(t, json.Unmarshal(log.Bytes(), &line), "the log must be JSON")
	require.Equal(t, "listening", line["msg"])
	resp, err := http.Get(base + "/healthz")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)

	d := adapter.Dispatch{OperationID: "op_1", Kind: adapter.InstanceCreate, Attempt: 1,
		Deadline: time.Now().Add(time.Minute), Instance: adapter.Instance{ID: "ins_1", App: "tiny"}}
	require.Equal(t, adapter.StateSucceeded, p.Run(base, d, 10*time.Second).State)
	code, _ := p.Call(base, http.MethodGet, adapter.AdapterPath, nil, nil)
	require.Equal(t, http.StatusOK, code)

	require.NoError(t, command.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(stderr)
	require.NoError(t, err)
	require.NoError(t, command.Wait(), "a stop on request is exit code 0")
	require.False(t, strings.Contains(log.Text()+string(rest), adaptertest.Token), "no token in the log")
}
