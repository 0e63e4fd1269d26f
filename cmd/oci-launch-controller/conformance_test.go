package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
)

var update = flag.Bool("update", false, "write conformance.json and tenancy.json again")

// standIn is a podman for nodes without any: containers are processes that sleep.
//
//go:embed testdata/podman.sh
var standIn string

// nodes are plain sandboxes that also fetch and boot: what is fetched is a name, and of cloud-init there is what it
// would do with these documents. The script that is tested runs as it is, with the stand-in for podman.
type nodes struct{ *sandbox.Nodes }

// Do implements the suite's nodes.
func (n nodes) Do(ctx context.Context, task sandbox.Task) sandbox.Outcome {
	switch task.Kind {
	case adapter.TaskFetchArtifact:
		var spec adapter.FetchArtifact
		if err := json.Unmarshal(task.Spec, &spec); err != nil {
			return sandbox.Outcome{State: adapter.TaskFailed, Message: err.Error()}
		}
		return n.as(ctx, task, adapter.TaskWriteFile, adapter.WriteFile{Path: spec.Path + "/digest",
			Content: spec.Digest, MakeDirs: true})
	case adapter.TaskCloudInit:
		return n.boot(ctx, task)
	}
	return n.Nodes.Do(ctx, task)
}

// as does another task in place of one.
func (n nodes) as(ctx context.Context, task sandbox.Task, kind adapter.TaskKind, spec any) sandbox.Outcome {
	raw, err := json.Marshal(spec)
	if err != nil {
		return sandbox.Outcome{State: adapter.TaskFailed, Message: err.Error()}
	}
	task.Kind, task.Spec = kind, raw
	return n.Nodes.Do(ctx, task)
}

func (n nodes) boot(ctx context.Context, task sandbox.Task) sandbox.Outcome {
	var spec adapter.CloudInit
	if err := json.Unmarshal(task.Spec, &spec); err != nil {
		return sandbox.Outcome{State: adapter.TaskFailed, Message: err.Error()}
	}
	if out := n.as(ctx, task, adapter.TaskWriteFile,
		adapter.WriteFile{Path: "/tmp/user-data", Sealed: spec.UserDataSealed}); out.State != adapter.TaskSucceeded {
		return out
	}
	read := n.as(ctx, task, adapter.TaskRun, adapter.RunCommand{Command: []string{"sh", "-c",
		`cat "$GPUAAS_MEMBER_ROOT/tmp/user-data"`}})
	if read.State != adapter.TaskSucceeded {
		return read
	}
	files, release := parse(read.Stdout)
	files = append(files, adapter.WriteFile{Path: "/tools/podman", Mode: "0755", Content: standIn})
	for _, file := range files {
		file.MakeDirs = true
		file.Content = strings.Replace(file.Content, "set -eu\n",
			"set -eu\nPATH=\"$GPUAAS_MEMBER_ROOT/tools:$PATH\"\n", 1)
		if out := n.as(ctx, task, adapter.TaskWriteFile, file); out.State != adapter.TaskSucceeded {
			return out
		}
	}
	out := n.as(ctx, task, adapter.TaskRun, adapter.RunCommand{Command: []string{"sh", "-c",
		`exec sh "$GPUAAS_MEMBER_ROOT/srv/oci/oci.sh" prepare "$1"`, "boot", release}})
	if out.State == adapter.TaskSucceeded {
		out.Result = map[string]any{"status": "done", "errors": []string{}, "stages": []string{}, "output": ""}
	}
	return out
}

// parse reads the files and the release of a document: a line each, and values in JSON.
func parse(document string) (files []adapter.WriteFile, release string) {
	for line := range strings.Lines(document) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		text := strings.Trim(value, "'")
		_ = json.Unmarshal([]byte(value), &text) // what is no JSON is the word itself
		switch key {
		case "- path":
			files = append(files, adapter.WriteFile{Path: text})
		case "permissions":
			files[len(files)-1].Mode = text
		case "content":
			files[len(files)-1].Content = text
		}
		if strings.HasPrefix(strings.TrimSpace(line), "- [sh,") {
			release = strings.Split(line, `"`)[1]
		}
	}
	return files, release
}

// TestControllerConformsToTheContract runs the whole suite over the real program, with kill -9 in the middle of its
// work.
func TestControllerConformsToTheContract(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts the program and runs for minutes")
	}
	program := filepath.Join(t.TempDir(), "controller")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	plain, err := sandbox.New(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(plain.Close)
	const name = "oci-launch"
	report := conformance.Test(t, conformance.Options{
		Name: name, Runner: nodes{plain}, Members: map[string]int{"replica": 2},
		RuntimeProfile: json.RawMessage(
			`{"image":"image","args":["$(PORT_HTTP)"],"ports":[{"name":"http","port":28800}]}`),
		Artifacts: []adapter.Artifact{{Name: "image", Digest: "sha256:" + strings.Repeat("a", 64),
			MediaType: "application/vnd.oci.image.manifest.v1+json"}},
		Launcher: &conformance.Command{
			Line: program +
				` --platform-url "$PLATFORM_URL" --name "$ADAPTER_NAME" --listen "$ADAPTER_LISTEN" --state-dir "$ADAPTER_STATE_DIR"`,
			Name: name, StateDir: t.TempDir(),
		},
		Bounds: conformance.Bounds{Settle: 300 * time.Millisecond, Near: time.Second},
	})
	conformance.CommittedBoth(t, report, *update)
}

func TestTheBuildIsThatOfTheManifest(t *testing.T) {
	t.Parallel()
	var document struct{ Version string }
	require.NoError(t, json.Unmarshal(manifest, &document))
	require.Equal(t, document.Version, build)
}
