package cli_test

import (
	"bytes"
	"context"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/cli"
	"github.com/gpuaas/app-platform/sdk/client/clienttest"
)

const schemaFiles = "../../../../graph/schema/*.graphql"

var update = flag.Bool("update", false, "write the golden files anew")

// rig is a stand-in platform with fixtures, and the environment of appctl against it.
type rig struct {
	*clienttest.Server
	dir string
	env map[string]string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{Server: clienttest.New(t, schemaFiles), dir: t.TempDir()}
	r.env = map[string]string{"APPCTL_SERVER": r.URL, "APPCTL_TOKEN": "gpu_ses_test"}
	r.RequireToken("gpu_ses_test")
	addFixtures(r.Server)
	return r
}

// config is the path of the rig's configuration file.
func (r *rig) config() string { return filepath.Join(r.dir, "appctl", "config.json") }

// file writes a file and returns its path.
func (r *rig) file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(r.dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// result is what one run wrote and how it ended.
type result struct {
	stdout, stderr string
	code           int
}

// run runs appctl once in the rig's environment, without a person at the terminal.
func (r *rig) run(ctx context.Context, stdin string, args ...string) result {
	return r.runAt(ctx, false, stdin, args...)
}

// runAt is one run with or without a person at the terminal.
func (r *rig) runAt(ctx context.Context, terminal bool, stdin string, args ...string) result {
	env := maps.Clone(r.env)
	var stdout, stderr bytes.Buffer
	code := cli.Main(ctx, cli.Environment{
		Getenv: func(name string) string { return env[name] }, Stdin: strings.NewReader(stdin), Stdout: &stdout,
		Stderr:        &stderr,
		StdinTerminal: terminal, StandStill: 20 * time.Millisecond, ConfigPath: r.config(),
	}, args)
	return result{stdout.String(), stderr.String(), code}
}

var randomID = regexp.MustCompile(`\b[a-z2-7]{26}\b`)

// text is the result as a golden file shows it, without what differs from run to run.
func (r *rig) text(args []string, got result) string {
	text := "$ appctl " + strings.Join(args, " ") + "\n" + got.stdout
	if got.stderr != "" {
		text += "-- stderr --\n" + got.stderr
	}
	text += "-- exit " + strconv.Itoa(got.code) + " --\n"
	text = strings.ReplaceAll(text, r.URL, "http://server")
	text = strings.ReplaceAll(text, r.dir, "DIR")
	return randomID.ReplaceAllString(text, "RANDOM")
}

// golden compares the text with a file of testdata, or writes it with -update.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test -update and read the diff")
	require.Equal(t, string(want), text)
}
