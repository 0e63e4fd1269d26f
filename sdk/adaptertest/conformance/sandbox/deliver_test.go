package sandbox_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/sandbox"
)

// put adds a manifest of the layers, by their titles, with a config of the media type; and an index of it for this
// machine.
func put(a *sandbox.Artifacts, configType string, layers map[string]string) (index, manifest string) {
	config := a.Put([]byte("{}"))
	var listed []string
	for title, text := range layers {
		listed = append(
			listed,
			fmt.Sprintf(
				`{"mediaType":"application/x","digest":%q,"size":%d,"annotations":{"org.opencontainers.image.title":%q}}`,
				a.Put([]byte(text)),
				len(text),
				title,
			),
		)
	}
	document := fmt.Sprintf(
		`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",`+
			`"config":{"mediaType":%q,"digest":%q,"size":2},"layers":[%s]}`,
		configType,
		config,
		strings.Join(listed, ","),
	)
	manifest = a.Put([]byte(document))
	index = a.Put(
		[]byte(
			fmt.Sprintf(
				`{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":%q,"size":%d,
		"platform":{"os":"linux","architecture":%q,"variant":"v9"}}]}`,
				manifest,
				len(document),
				runtime.GOARCH,
			),
		),
	)
	return index, manifest
}

func TestArtifactsAreFetchedFromMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	out := r.do(
		adapter.TaskFetchArtifact, adapter.FetchArtifact{Digest: "sha256:" + strings.Repeat("0", 64), Path: "/srv/a"},
	)
	require.Equal(t, adapter.TaskFailed, out.State)
	require.Equal(t, "ARTIFACT_UNAVAILABLE", out.Result["code"], "there are none at all")
	r.Artifacts = &sandbox.Artifacts{}
	index, manifest := put(
		r.Artifacts, "application/vnd.oci.image.config.v1+json", map[string]string{"model/weights.bin": "weights"},
	)
	root := filepath.Join(r.dir, "mem_1")

	out = r.do(adapter.TaskFetchArtifact, adapter.FetchArtifact{Digest: index, Path: "/srv/image"})
	require.Equal(t, adapter.TaskSucceeded, out.State, out.Message)
	require.Equal(t, manifest, out.Result["manifest"])
	require.Equal(t, false, out.Result["cached"])
	listed, err := os.ReadFile(filepath.Join(root, "srv/image/index.json"))
	require.NoError(t, err)
	require.Contains(t, string(listed), manifest)
	require.FileExists(t, filepath.Join(root, "srv/image/oci-layout"))
	require.FileExists(t, filepath.Join(root, "srv/image/blobs/sha256", strings.TrimPrefix(manifest, "sha256:")))

	out = r.do(
		adapter.TaskFetchArtifact,
		adapter.FetchArtifact{Digest: index, Path: "/srv/files", As: adapter.AsFiles, Mode: "0600"},
	)
	require.Equal(t, adapter.TaskSucceeded, out.State, out.Message)
	require.Equal(t, true, out.Result["cached"], "the node has it")
	info, err := os.Stat(filepath.Join(root, "srv/files/model/weights.bin"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	out = r.do(
		adapter.TaskFetchArtifact,
		adapter.FetchArtifact{Digest: r.Artifacts.Put([]byte("#!/bin/sh\n")), Path: "/srv/run.sh", Mode: "0755"},
	)
	require.Equal(t, adapter.TaskSucceeded, out.State, out.Message)
	require.FileExists(t, filepath.Join(root, "srv/run.sh"))
	out = r.do(adapter.TaskFetchArtifact, adapter.FetchArtifact{Digest: index, Path: "/srv/x", Platform: "plan9/mips"})
	require.Equal(t, "ARTIFACT_UNAVAILABLE", out.Result["code"], out.Message)

	evil, _ := put(r.Artifacts, "application/x", map[string]string{"../../escape": "x"})
	out = r.do(adapter.TaskFetchArtifact, adapter.FetchArtifact{Digest: evil, Path: "/srv/x"})
	require.Equal(t, "PATH_INVALID", out.Result["code"], out.Message)
}

func TestAFirstBootIsNotedOnceAnInstanceIdAndNotCarriedOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	sealed, err := adapter.Seal(r.SealingKey(), "ins_1", []byte("#cloud-config\nruncmd: [ [false] ]\n"))
	require.NoError(t, err)
	for _, spec := range []adapter.CloudInit{
		{UserData: "#cloud-config\n", InstanceID: "i-1", Hostname: "a"},
		{UserData: "#cloud-config\n", InstanceID: "i-1", Hostname: "a"},
		{UserDataSealed: sealed, InstanceID: "i-2", Hostname: "a"},
	} {
		out := r.do(adapter.TaskCloudInit, spec)
		require.Equal(t, adapter.TaskSucceeded, out.State, out.Message)
		require.Equal(t, "done", out.Result["status"])
	}
	raw, err := json.Marshal(r.Boots("mem_1"))
	require.NoError(t, err)
	require.JSONEq(t, `[{"userData":"#cloud-config\n","instanceId":"i-1","hostname":"a"},
		{"userData":"#cloud-config\nruncmd: [ [false] ]\n","instanceId":"i-2","hostname":"a"}]`, string(raw))
	out := r.do(adapter.TaskCloudInit, adapter.CloudInit{UserData: "nothing of the kind", InstanceID: "i-3"})
	require.Equal(t, "CLOUD_INIT_FAILED", out.Result["code"])
	out = r.do(
		adapter.TaskCloudInit, adapter.CloudInit{UserData: "#cloud-config\n", UserDataSealed: sealed,
			InstanceID: "i-3"},
	)
	require.Equal(t, "SPEC_INVALID", out.Result["code"])
	require.Len(t, r.Boots("mem_1"), 2)
	require.Empty(t, r.Boots("mem_2"))
}
