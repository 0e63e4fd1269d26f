package oci

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestWhatCannotRunIsRefusedWithItsField(t *testing.T) {
	t.Parallel()
	app, err := App(readManifest(t), t.TempDir())
	require.NoError(t, err)
	for name, c := range map[string]struct{ profile, config, path string }{
		"no profile":     {``, ``, "instance.runtimeProfile"},
		"unpinned image": {`{"image":"other"}`, ``, "instance.runtimeProfile.image"},
		"unpinned volume": {`{"image":"image","volumes":[{"name":"a","path":"/a","artifact":"none"}]}`, ``,
			"instance.runtimeProfile.volumes[0].artifact"},
		"a path with a colon": {`{"image":"image","volumes":[{"name":"a","path":"/a:b"}]}`, ``,
			"instance.runtimeProfile.volumes[0].path"},
		"two lines": {`{"image":"image"}`, `{"env":{"A":"b\nC=d"}}`, "instance.runtimeProfile.env.A"},
		"unknown policy": {`{"image":"image"}`, `{"restart":{"policy":"sometimes"}}`,
			"instance.runtimeProfile.restart.policy"},
		"health without port": {`{"image":"image","health":{"http":{"port":1,"path":"/"}}}`, ``,
			"instance.runtimeProfile.health.http.port"},
		"more GPUs than there": {`{"image":"image","resources":{"gpus":3}}`, ``, "members[0].node.gpus"},
	} {
		d := adapter.Dispatch{OperationID: "op_1", Kind: adapter.InstanceCreate,
			Instance: instanceOf(c.profile, c.config), Members: []adapter.Member{memberOf(0)}}
		err := check(app.Components, d)
		require.ErrorContains(t, err, c.path, name)
		d.Kind = adapter.InstanceDecommission
		require.NoError(t, check(app.Components, d), "%s: what cannot run can be taken down", name)
	}
}

func TestTextsNameWhatIsKnownAndKeepTheRest(t *testing.T) {
	t.Parallel()
	known := map[string]string{"A": "1", "PORT_HTTP": "8889"}
	for text, want := range map[string]string{
		"$(A)": "1", "x$(A)y$(PORT_HTTP)": "x1y8889", "$$(A)": "$(A)", "$(B)": "$(B)", "$(A": "$(A",
		"$A ${A}": "$A ${A}",
		"":        "", "$(A)$$(A)$(A)": "1$(A)1",
	} {
		require.Equal(t, want, expand(text, known), text)
	}
}

func TestAConfigIsLaidOverTheProfile(t *testing.T) {
	t.Parallel()
	p, err := profileOf(instanceOf(`{"image":"image","args":["a"],"env":{"A":"1","B":"2"}}`,
		`{"env":{"B":"3"},"args":[],"restart":{"policy":"always","maxRestarts":2}}`))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"A": "1", "B": "3"}, p.Env)
	require.Empty(t, p.Args)
	require.NotNil(t, p.Args)
	require.Equal(t, Restart{Policy: "always", MaxRestarts: 2}, p.Restart)
}

func TestTheSameReleaseHasTheSameNameAndAnotherHasAnother(t *testing.T) {
	t.Parallel()
	named := func(change func(*adapter.Instance)) string {
		instance := instanceOf(notebook, ``)
		change(&instance)
		r, err := renderRelease(instance, memberOf(0), map[string]int{"http": 8888}, instance.Artifacts[0].Digest)
		require.NoError(t, err)
		return r.Name
	}
	first := named(func(*adapter.Instance) {})
	require.Equal(t, first, named(func(*adapter.Instance) {}))
	require.NotEqual(t, first, named(func(i *adapter.Instance) { i.Version = "2.0.0" }))
	require.NotEqual(t, first, named(func(i *adapter.Instance) { i.Artifacts[0].Digest = digestOf("d") }))
	require.NotEqual(t, first, named(func(i *adapter.Instance) { i.Config = json.RawMessage(`{"env":{"A":"b"}}`) }))
}

func TestTheManifestsAreValidOncePublished(t *testing.T) {
	t.Parallel()
	compiled, err := jsonschema.NewCompiler().Compile("../../../../domain/manifest/manifest.schema.json")
	require.NoError(t, err)
	for _, file := range []string{"../../manifest.json", "../../testimages/model-server/manifest.json"} {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		text := strings.NewReplacer(`"ref": ""`, `"ref": "registry.example/apps/one@`+digestOf("a")+`"`,
			`"digest": ""`, `"digest": "`+digestOf("a")+`"`).Replace(string(raw))
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		require.NoError(t, err)
		require.NoError(t, compiled.Validate(document), file)
	}
}
