package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
)

func TestMain(m *testing.M) {
	memberinit.Dispatch(os.Args)
	os.Exit(m.Run())
}

func execute(args ...string) (string, error) {
	cmd := command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestHelpNamesEveryFlagAndWhatStoppingMeans(t *testing.T) {
	t.Parallel()
	help, err := execute("--help")
	require.NoError(t, err)
	for _, expected := range []string{"--platform-url", "--state-dir", "--enrol-token-file", "--name", "--address",
		"--gpus", "--gpu-model", "--simulated-gpus", "--region", "--sku", "--label", "--no-namespaces", "--log-level",
		"stops no member"} {
		require.Contains(t, help, expected)
	}
}

func TestWrongUseNamesTheFlag(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	for _, c := range []struct {
		says string
		args []string
	}{
		{"platform-url", []string{"--state-dir", state}},
		{"platform url", []string{"--state-dir", state, "--platform-url", "nowhere", "--address", "10.0.0.1"}},
		{"address", []string{"--state-dir", state, "--platform-url", "http://127.0.0.1:1"}},
		{"name", []string{"--state-dir", state, "--platform-url", "http://127.0.0.1:1", "--address",
			"10.0.0.1", "--name", ""}},
		{"state-dir", []string{"--state-dir", "", "--platform-url", "http://127.0.0.1:1", "--address", "10.0.0.1"}},
		{"gpus", []string{"--state-dir", state, "--platform-url", "http://127.0.0.1:1", "--address",
			"10.0.0.1", "--gpus", "65"}},
		{"log-level", []string{"--log-level", "loud"}},
		{"enrolment token", []string{"--state-dir", state, "--platform-url", "http://127.0.0.1:1", "--address",
			"10.0.0.1", "--no-namespaces", "--enrol-token-file", "/no/such/file"}},
		{"unknown flag", []string{"--nonsense"}},
		{"unknown command", []string{"nonsense"}},
	} {
		_, err := execute(c.args...)
		require.ErrorContains(t, err, c.says, "%v", c.args)
	}
}
