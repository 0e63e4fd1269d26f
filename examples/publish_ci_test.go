package examples_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/clienttest"
	"github.com/gpuaas/app-platform/sdk/signing"
)

// desk is a stand-in that keeps the stages of one artifact and one manifest, and what was done, in order.
type desk struct {
	*clienttest.Server
	mu       sync.Mutex
	stages   map[string]string
	done     []string
	document map[string]any
	verdict  string
	env      []string // more of the recipe's environment
	known    string   // the reference that the artifact was published with
}

func (d *desk) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = append(d.done, what)
}

// in lists an object when it is in one of the requested stages.
func (d *desk) in(id string, call clienttest.Call) any {
	d.mu.Lock()
	defer d.mu.Unlock()
	edges := []object{}
	stages, some := call.Args["stages"].([]any)
	if !some { // all of them
		stages = []any{d.stages[id]}
	}
	for _, stage := range stages {
		if stage == d.stages[id] {
			edges = append(edges, object{"cursor": "c", "node": object{"id": id, "stage": stage}})
		}
	}
	return object{"edges": edges}
}

// promote takes the step that a call requests.
func (d *desk) promote(id string) clienttest.Resolver {
	return func(call clienttest.Call) (any, error) {
		to := call.Input()["to"].(string)
		d.note(id + " " + to)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.stages[id] = to
		return object{"id": id, "stage": to}, nil
	}
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{Server: clienttest.New(t, "../graph/schema/*.graphql"), stages: map[string]string{}, verdict: "NO_WORSE"}
	d.RequireToken(token)
	// made returns a new object as a draft, and the same one again to a repeat.
	made := func(id string, keep func(clienttest.Call)) clienttest.Resolver {
		return func(call clienttest.Call) (any, error) {
			keep(call)
			d.note("publish " + id)
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.stages[id] == "" {
				d.stages[id] = "DRAFT"
			}
			return object{"id": id, "stage": d.stages[id]}, nil
		}
	}
	d.Handle("publishArtifact", made("art_1", func(clienttest.Call) {}))
	d.Handle("publishManifest", made("man_1",
		func(call clienttest.Call) { d.document = call.Input()["document"].(map[string]any) }))
	d.Handle("promoteArtifact", d.promote("art_1"))
	d.Handle("promoteManifest", d.promote("man_1"))
	d.Handle("artifacts", func(call clienttest.Call) (any, error) { return d.in("art_1", call), nil })
	d.Handle("manifests", func(call clienttest.Call) (any, error) { return d.in("man_1", call), nil })
	d.Handle("lintManifest", func(clienttest.Call) (any, error) { return object{"ok": true}, nil })
	d.Handle("node", func(call clienttest.Call) (any, error) {
		if call.Args["id"] == "art_1" {
			return object{"__typename": "Artifact", "id": "art_1", "stage": d.stages["art_1"], "ref": d.known,
				"tenantId": "ten_1"}, nil
		}
		return object{"__typename": "Manifest", "id": "man_1", "appSlug": "server", "version": "1.2.0"}, nil
	})
	d.Handle("canaryReport", func(clienttest.Call) (any, error) {
		return object{"verdict": d.verdict, "canary": object{"manifest": object{"id": "man_1",
			"version": "1.2.0"}}}, nil
	})
	d.Handle("requestAllocation",
		func(clienttest.Call) (any, error) { return object{"allocations": []object{{"id": "alc_1"}}}, nil })
	for field, what := range map[string][2]string{"launchInstance": {"launch", "instance"},
		"decommissionInstance": {"decommission", "instance"},
		"releaseAllocation":    {"give back", "allocation"}} {
		d.Handle(field, func(clienttest.Call) (any, error) {
			d.note(what[0])
			return object{what[1]: object{"id": what[1][:3] + "_1"}, "operation": object{"id": "op_1"}}, nil
		})
	}
	d.Handle("instance", func(clienttest.Call) (any, error) { return object{"id": "ins_1"}, nil })
	d.HandleStream("operationProgress", func(_ clienttest.Call, emit func(any) error) error {
		return emit(object{"id": "op_1", "state": "SUCCEEDED", "percent": 100})
	})
	return d
}

// pipeline runs the recipe, with a registry of its own, as often as it is called.
func (d *desk) pipeline(t *testing.T) func() (string, error) {
	t.Helper()
	held := httptest.NewServer(registry.New(registry.WithReferrersSupport(true),
		registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(held.Close)
	folder := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(folder, "appctl"), "../cmd/appctl")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "server"), []byte("\x7fELF"), 0o755))
	template := `{"appSlug": "server", "version": "@VERSION@", "artifacts": [{"name": "server", "ref": "@REF@", "digest": "@DIGEST@"}]}`
	require.NoError(t, os.WriteFile(filepath.Join(folder, "manifest.json.in"), []byte(template), 0o600))
	private, err := signing.NewKey(signing.ECDSA)
	require.NoError(t, err)
	text, err := signing.EncodePrivate(private)
	require.NoError(t, err)
	return func() (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "bash", "publish-ci/publish.sh")
		cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"),
			"XDG_CONFIG_HOME="+filepath.Join(folder, "config"),
			"APPCTL_SERVER="+d.URL, "APPCTL_TOKEN="+token, "APPCTL_PROJECT=prj_1", "APPCTL_SIGNING_KEY="+string(text),
			"APP=server", "VERSION=1.2.0", "PROGRAM="+filepath.Join(folder, "server"),
			"MANIFEST="+filepath.Join(folder, "manifest.json.in"),
			"REPOSITORY="+strings.TrimPrefix(held.URL, "http://")+"/team/server", "REGISTRY_FLAGS=--plain-http",
			"CANARY_SECONDS=0", "POLL_SECONDS=0")
		cmd.Env = append(cmd.Env, d.env...)
		output, err := cmd.CombinedOutput()
		require.NotContains(t, string(output), token)
		require.NotContains(t, string(output), "PRIVATE KEY")
		return string(output), err
	}
}

func TestTheRecipeTakesAVersionTheWholeWayAndOnlyOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	run := d.pipeline(t)
	output, err := run()
	require.NoError(t, err, output)
	require.True(t, strings.HasSuffix(output, "\nman_1\n"), output)
	require.Equal(t, []string{"publish art_1", "art_1 STAGED", "publish man_1", "launch", "decommission", "give back",
		"man_1 STAGED", "art_1 CANARY", "man_1 CANARY", "art_1 ACTIVE", "man_1 ACTIVE"}, d.done)
	published := d.CallsOf("publishArtifact")[0].Input()
	require.Equal(t, "prj_1", published["projectId"])
	pinned := d.document["artifacts"].([]any)[0].(map[string]any)
	require.Equal(t, published["ref"], pinned["ref"])
	require.True(t, strings.HasSuffix(published["ref"].(string), "@"+pinned["digest"].(string)))
	canary := d.CallsOf("promoteManifest")[1].Input()
	require.Equal(t, json.Number("20"), json.Number(jsonText(t, canary["canaryPercent"])))
	require.Equal(t, "ins_1", d.CallsOf("promoteManifest")[0].Input()["smokeInstanceId"])

	d.done = nil
	output, err = run()
	require.NoError(t, err, output)
	require.Equal(t, []string{"publish art_1", "publish man_1"}, d.done, "a step that was taken is not taken again")
	require.Equal(t, published["idempotencyKey"], d.CallsOf("publishArtifact")[1].Input()["idempotencyKey"])
}

// A runner's job has left its reports and their signatures beside them: the recipe brings both, and a report without a
// signature as its publisher's own.
func TestTheRecipeBringsReportsWithTheSignaturesBesideThem(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.Handle("submitEvidence", func(call clienttest.Call) (any, error) {
		d.note("report " + call.Input()["kind"].(string))
		return object{"id": "evd_1", "manifestId": "man_1", "kind": call.Input()["kind"]}, nil
	})
	folder := t.TempDir()
	signed, own := filepath.Join(folder, "conformance.json"), filepath.Join(folder, "tenancy.json")
	for _, file := range []string{signed, own} {
		require.NoError(t, os.WriteFile(file, []byte(`{"digested":{}}`), 0o600))
	}
	runner, err := signing.NewKey(signing.Ed25519)
	require.NoError(t, err)
	signature, err := signing.SignReport(runner, "CONFORMANCE", []byte(`{"digested":{}}`))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(signed+".sig", []byte(signature+"\n"), 0o600))
	d.env = []string{"REPORTS=conformance=" + signed + " tenancy=" + own}
	output, err := d.pipeline(t)()
	require.NoError(t, err, output)
	require.Equal(t, []string{"publish art_1", "art_1 STAGED", "publish man_1", "launch", "decommission", "give back",
		"report CONFORMANCE", "report TENANCY", "man_1 STAGED", "art_1 CANARY", "man_1 CANARY", "art_1 ACTIVE",
		"man_1 ACTIVE"}, d.done)
	brought := d.CallsOf("submitEvidence")
	require.Equal(t, signature, brought[0].Input()["signature"])
	require.Equal(t, `{"digested":{}}`, brought[0].Input()["report"])
	require.Nil(t, brought[1].Input()["signature"])
}

// The tenant has the bytes already, for another app: the platform refuses to publish them again, and the version pins
// what is there.
func TestTheRecipePinsBytesThatAnotherAppHasPublished(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.stages["art_1"] = "ACTIVE"
	d.Handle("publishArtifact", func(call clienttest.Call) (any, error) {
		_, digest, _ := strings.Cut(call.Input()["ref"].(string), "@")
		d.known = "registry.test/first@" + digest
		return nil, &clienttest.Fault{Code: "CONFLICT", Message: "an artifact with digest " + digest +
			" exists already"}
	})
	output, err := d.pipeline(t)()
	require.NoError(t, err, output)
	require.Equal(t, []string{"publish man_1", "launch", "decommission", "give back", "man_1 STAGED", "man_1 CANARY",
		"man_1 ACTIVE"}, d.done)
	pinned := d.document["artifacts"].([]any)[0].(map[string]any)
	require.Equal(t, d.known, pinned["ref"])
	require.True(t, strings.HasSuffix(d.known, "@"+pinned["digest"].(string)))
}

func jsonText(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}

func TestTheRecipeStopsAtWhatIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.Handle("publishArtifact", func(clienttest.Call) (any, error) {
		return nil, &clienttest.Fault{Code: "SIGNATURE_UNTRUSTED", Message: "the source does not trust the key"}
	})
	output, err := d.pipeline(t)()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 6, exit.ExitCode(), output)
	require.Contains(t, output, "SIGNATURE_UNTRUSTED")
	require.Empty(t, d.done, "nothing after it is done")

	worse := newDesk(t)
	worse.verdict = "WORSE"
	output, err = worse.pipeline(t)()
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode(), output)
	require.Contains(t, output, "fails more often")
	require.Equal(t, "CANARY", worse.stages["man_1"])
	require.NotEqual(t, "ACTIVE", worse.stages["art_1"])
}
