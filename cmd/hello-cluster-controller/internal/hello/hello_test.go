package hello

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

func readManifest(t *testing.T) []byte {
	t.Helper()
	raw, err := os.ReadFile("../../manifest.json")
	require.NoError(t, err)
	return raw
}

func dispatch(p *adaptertest.Platform, id string, kind adapter.Kind) adapter.Dispatch {
	d := adapter.Dispatch{
		OperationID: id, Kind: kind, Attempt: 1, Deadline: time.Now().Add(time.Minute), CorrelationID: "cor-1",
		Instance: adapter.Instance{
			ID: "ins_1", Name: "one", TenantID: "ten_1", ProjectID: "prj_1", App: "hello-cluster", Version: "1.1.0",
			Config:     json.RawMessage(`{"greeting":"Welcome"}`),
			Components: []adapter.ComponentCount{{Key: component, Count: 2}},
		},
	}
	for i, id := range []string{"mem_a", "mem_b"} {
		d.Members = append(d.Members, adapter.Member{ID: id, ComponentKey: component, Index: i, Status: "pending",
			Node: p.Node("127.0.0.1")})
	}
	d.Platform = p.Access()
	return d
}

func TestHelloClusterLivesFromLaunchToTeardownWithoutRoot(t *testing.T) {
	t.Parallel()
	p := adaptertest.New(t, "hello-cluster")
	app, err := App(readManifest(t), t.TempDir())
	require.NoError(t, err)
	base := p.Start(app)

	d := dispatch(p, "op_1", adapter.InstanceCreate)
	status := p.Run(base, d, 30*time.Second)
	require.Equal(t, adapter.StateSucceeded, status.State, "%+v", status.Error)
	require.Len(t, status.Members, 2)
	require.Equal(t, adapter.MemberActive, status.Members[0].Status)

	var said struct{ Greetings []struct{ Peer, Text string } }
	p.Action(base, "hello.say", d, "k1", map[string]any{"name": "$(reboot)\nAda"}, &said)
	require.Len(t, said.Greetings, 2)
	require.Equal(t, "Welcome, $(reboot) Ada! This is peer-0.", said.Greetings[0].Text)
	var heard struct {
		Peers []struct{ Greetings []string }
	}
	p.Action(base, "hello.list", d, "k2", map[string]any{}, &heard)
	require.Equal(t, []string{said.Greetings[0].Text}, heard.Peers[0].Greetings)

	var seen adapter.Observation
	code, _ := p.Call(base, http.MethodGet, adapter.InstancePath("ins_1"), nil, &seen)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, adapter.Healthy, seen.Health, seen.Message)

	status = p.Run(base, dispatch(p, "op_2", adapter.InstanceDecommission), 30*time.Second)
	require.Equal(t, adapter.StateSucceeded, status.State, "%+v", status.Error)
	require.Equal(t, adapter.MemberRemoved, status.Members[0].Status)
	require.Contains(t, status.Evidence, "residue")
}

func TestEachGreetingIsCountedOnceThroughRepeatsRestartsAndTheEnd(t *testing.T) {
	t.Parallel()
	p, dir := adaptertest.New(t, "hello-cluster"), t.TempDir()
	app, err := App(readManifest(t), dir)
	require.NoError(t, err)
	base, d := p.Start(app), dispatch(p, "op_1", adapter.InstanceCreate)
	require.Equal(t, adapter.StateSucceeded, p.Run(base, d, 30*time.Second).State)
	var said any
	for _, key := range []string{"k1", "k1", "k2"} {
		p.Action(base, "hello.say", d, key, map[string]any{"name": "Ada"}, &said)
	}
	var first, after adapter.UsagePage
	code, raw := p.Call(base, http.MethodGet, adapter.UsagePath("ins_1", ""), nil, &first)
	require.Equal(t, http.StatusOK, code, "%s", raw)
	require.Len(t, first.Records, 4, "two calls of two peers; a repeat is the same call")
	require.Equal(t, "greetings.served", first.Records[0].Dimension)
	require.Equal(t, d.Members[0].ID, first.Records[0].MemberID)

	again, err := App(readManifest(t), dir)
	require.NoError(t, err)
	page, err := again.Usage(t.Context(), &adapter.Call{Instance: d.Instance}, "")
	require.NoError(t, err)
	require.Equal(t, first, page, "another process answers the same records behind the same cursor")

	require.Equal(t, adapter.StateSucceeded, p.Run(base, dispatch(p, "op_2", adapter.InstanceDecommission),
		30*time.Second).State)
	code, raw = p.Call(base, http.MethodGet, adapter.UsagePath("ins_1", ""), nil, &after)
	require.Equal(t, http.StatusOK, code, "%s", raw)
	require.Equal(t, first, after, "what was counted last is read after the end")
}

func TestDecommissionOfWhatNeverCameUpSucceeds(t *testing.T) {
	t.Parallel()
	p := adaptertest.New(t, "hello-cluster")
	app, err := App(readManifest(t), t.TempDir())
	require.NoError(t, err)
	status := p.Run(p.Start(app), dispatch(p, "op_1", adapter.InstanceDecommission), 30*time.Second)
	require.Equal(t, adapter.StateSucceeded, status.State, "%+v", status.Error)
}

func TestForeignComponentIsRefused(t *testing.T) {
	t.Parallel()
	p := adaptertest.New(t, "hello-cluster")
	d := dispatch(p, "op_1", adapter.InstanceCreate)
	d.Members[1].ComponentKey = "queen"
	err := check(nil, d)
	require.ErrorContains(t, err, "members[1].componentKey")
}

func TestManifestIsValidOncePublished(t *testing.T) {
	t.Parallel()
	compiled, err := jsonschema.NewCompiler().Compile("../../../../domain/manifest/manifest.schema.json")
	require.NoError(t, err)
	digest := "sha256:" + strings.Repeat("a", 64)
	text := strings.Replace(string(readManifest(t)), `"ref": ""`,
		`"ref": "registry.example/apps/controller@`+digest+`"`, 1)
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(text, `"digest": ""`,
		`"digest": "`+digest+`"`, 1)))
	require.NoError(t, err)
	require.NoError(t, compiled.Validate(document))
}
