package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
	"github.com/gpuaas/app-platform/sdk/loopback"
)

// TestAnOutsiderTakesAnAppOfItsOwnTheWholeWay is the walk of examples/outsider by the publisher that every local
// installation has, in the language that builds nothing: from a skeleton to an app that no one else sees, and back.
func TestAnOutsiderTakesAnAppOfItsOwnTheWholeWay(t *testing.T) {
	const python = "/usr/bin/python3"
	if exec.Command(python, "-c", "import nacl, jsonschema, websocket").Run() != nil {
		t.Skip("python3-nacl, python3-jsonschema and python3-websocket are not installed")
	}
	t.Parallel()
	ctx := bounded(t)
	bin, err := filepath.Abs("../../bin")
	require.NoError(t, err)
	address, err := loopback.Address()
	require.NoError(t, err)
	walk := exec.CommandContext(ctx, "bash", "-c", `eval "$(cat "$1")" && exec ../../examples/outsider/walk.sh python`,
		"-",
		shared.PublisherEnvFile())
	walk.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "XDG_CONFIG_HOME="+t.TempDir(), "PYTHON="+python,
		"NAME=demo-outsider", "ADDRESS="+address, "REGISTRY_FLAGS=--plain-http", "CHECK_FLAGS=--settle=300ms")
	var said, steps bytes.Buffer
	walk.Stdout, walk.Stderr = &said, &steps
	require.NoError(t, walk.Run(), "%s", steps.String())
	require.True(t, strings.HasPrefix(said.String(), "ins_"), said.String())
	asked := exec.CommandContext(ctx, "bash", "-c",
		`eval "$(cat "$1")" && exec "$2" testdata/python_client.py "$3"`, "-",
		shared.PublisherEnvFile(), python, strings.TrimSpace(said.String()))
	asked.Env = append(os.Environ(), "PYTHONPATH=../../sdk/python-client", "PYTHONDONTWRITEBYTECODE=1")
	answer, err := asked.CombinedOutput()
	require.NoError(t, err, "%s", answer)

	app, err := gql.GetApp(ctx, shared.Operator, "demo-outsider")
	require.NoError(t, err)
	require.True(t, app.App.Sandbox, "nobody has opened it")
	stages := map[string]gql.Stage{}
	for _, edge := range app.App.Manifests.Edges {
		stages[edge.Node.Version] = edge.Node.Stage
	}
	require.Equal(t, map[string]gql.Stage{"0.1.0": gql.StageRetired, "0.2.0": gql.StageActive}, stages)
	fit, complaint, code := appctlAs(t, ctx, shared.Demo.ServiceAccountKey, "apps", "fit", "demo-outsider")
	require.Zero(t, code, complaint)
	require.Contains(t, fit, "is in a sandbox", "another project does not launch it")

	_, err = gql.OpenApp(ctx, shared.Operator, gql.OpenAppInput{AppSlug: "demo-outsider", Reason: "looked at"})
	require.Equal(t, client.CodeFailedPrecondition, client.CodeOf(err), "its adapter is in the sandbox")
	_, err = gql.RegisterAdapter(ctx, shared.Operator,
		gql.RegisterAdapterInput{Name: "demo-outsider", Url: "http://" + address})
	require.NoError(t, err)
	_, err = gql.OpenApp(ctx, shared.Operator, gql.OpenAppInput{AppSlug: "demo-outsider", Reason: "looked at"})
	require.Equal(t, client.CodeEvidenceMissing, client.CodeOf(err), "its publisher's word alone")
	opened, err := gql.OpenApp(ctx, shared.Operator, gql.OpenAppInput{AppSlug: "demo-outsider", Reason: "looked at",
		Override: "no runner yet"})
	require.NoError(t, err)
	require.False(t, opened.OpenApp.Sandbox)
	require.Equal(t, "0.2.0", opened.OpenApp.ActiveManifest.Version, "what was active is active")
}
