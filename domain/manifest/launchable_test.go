package manifest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
)

// launching is the full manifest as a launchable one with this runtime profile, and a blob beside its image.
func launching(t *testing.T, profile string) []byte {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal(full(t), &m))
	image := m["artifacts"].([]any)[0].(map[string]any)
	m["artifactKind"], image["name"] = "launchable", "server"
	m["artifacts"] = append(m["artifacts"].([]any), map[string]any{
		"name": "weights", "mediaType": "application/octet-stream", "digest": image["digest"],
		"ref": "https://blobs.example:8443/models/small-1.2/weights.bin",
	})
	if profile == "" {
		delete(m, "runtimeProfile")
	} else {
		m["runtimeProfile"] = json.RawMessage(profile)
	}
	data, err := json.Marshal(m)
	require.NoError(t, err)
	return data
}

func TestALaunchableProfileIsHeldAgainstItsShapeAndItsArtifacts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		profile string
		want    []string
	}{
		"whole": {`{"image": "server", "command": ["/serve"], "args": ["--port", "80", ""], "env": {"MODE": "fast", "EMPTY": ""},
			"ports": [{"name": "http", "port": 80}, {"name": "metrics", "port": 90}], "resources": {"cpus": 0.5, "memoryMiB": 256, "gpus": 0},
			"restart": {"policy": "on-failure", "maxRestarts": 3}, "health": {"http": {"port": 80, "path": "/healthz"}, "intervalSeconds": 2},
			"readOnly": true, "volumes": [{"name": "scratch", "path": "/tmp"}, {"name": "model", "path": "/srv/model", "artifact": "weights"}]}`, nil},
		"image alone":          {`{"image": "server"}`, nil},
		"none":                 {``, nil},
		"without an image":     {`{}`, []string{"REQUIRED runtimeProfile.image"}},
		"image from elsewhere": {`{"image": "nginx"}`, []string{"UNKNOWN_VALUE runtimeProfile.image"}},
		"unknown field": {`{"image": "server", "privileged": true}`,
			[]string{"UNKNOWN_FIELD runtimeProfile.privileged"}},
		"bad variable": {`{"image": "server", "env": {"A B": "x"}}`,
			[]string{"UNKNOWN_FIELD runtimeProfile.env.A B"}},
		"variable of a number": {`{"image": "server", "env": {"A": 1}}`, []string{"BAD_VALUE runtimeProfile.env.A"}},
		"port twice": {`{"image": "server", "ports": [{"name": "a", "port": 80}, {"name": "a", "port": 80}]}`,
			[]string{"DUPLICATE runtimeProfile.ports.1.name", "DUPLICATE runtimeProfile.ports.1.port"}},
		"port 0": {`{"image": "server", "ports": [{"name": "a", "port": 0}]}`,
			[]string{"BAD_VALUE runtimeProfile.ports.0.port"}},
		"no core": {`{"image": "server", "resources": {"cpus": 0}}`,
			[]string{"BAD_VALUE runtimeProfile.resources.cpus"}},
		"unknown policy": {`{"image": "server", "restart": {"policy": "sometimes"}}`,
			[]string{"UNKNOWN_VALUE runtimeProfile.restart.policy"}},
		"health of both": {`{"image": "server", "health": {"http": {"port": 1, "path": "/"}, "exec": {"command": ["a"]}}}`,
			[]string{"BAD_VALUE runtimeProfile.health"}},
		"volume above": {`{"image": "server", "volumes": [{"name": "a", "path": "etc"}]}`,
			[]string{"BAD_VALUE runtimeProfile.volumes.0.path"}},
		"volume of nothing": {`{"image": "server", "volumes": [{"name": "a", "path": "/a", "artifact": "gone"}]}`,
			[]string{"UNKNOWN_VALUE runtimeProfile.volumes.0.artifact"}},
		"metered": {`{"image": "server", "ports": [{"name": "http", "port": 80}], "usage": {"port": 80, "path": "/metrics",
			"counters": [{"metric": "vllm:tokens_total", "dimension": "job.seconds"}]}}`, nil},
		"metered elsewhere": {`{"image": "server", "usage": {"port": 80, "path": "/metrics", "counters": [{"metric": "a", "dimension": "unheard.of"},
			{"metric": "a", "dimension": "job.seconds"}]}}`, []string{"UNKNOWN_VALUE runtimeProfile.usage.port",
			"DUPLICATE runtimeProfile.usage.counters.1.metric",
			"UNKNOWN_VALUE runtimeProfile.usage.counters.0.dimension"}},
		"metered in nothing": {`{"image": "server", "usage": {"port": 80, "path": "metrics", "counters": []}}`,
			[]string{"BAD_VALUE runtimeProfile.usage.counters", "BAD_VALUE runtimeProfile.usage.path"}},
		"volumes in one path": {`{"image": "server", "volumes": [{"name": "a", "path": "/a"}, {"name": "b", "path": "/a"}]}`,
			[]string{"DUPLICATE runtimeProfile.volumes.1.path"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(launching(t, c.profile))
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			found, ok := fault.As(err)
			require.True(t, ok, "got %v", err)
			require.Equal(t, fault.ManifestInvalid, found.Code)
			var seen []string
			for _, reason := range found.Reasons {
				seen = append(seen, string(reason.Code)+" "+reason.Path)
			}
			require.Equal(t, c.want, seen)
		})
	}
}

func TestARuntimeProfileOfAnotherKindIsTheAdaptersOwn(t *testing.T) {
	t.Parallel()
	_, err := Parse(changed(t, `{"image": "demo"}`, `{"image": 7, "anything": ["goes"]}`))
	require.NoError(t, err)
}

func TestALaunchableProfileNamesSlotsOfItsManifest(t *testing.T) {
	t.Parallel()
	const slots = `[{"name": "work", "title": "Work", "path": "/srv/work"},
		{"name": "data", "title": "Data", "path": "/srv/data"}]`
	for name, c := range map[string]struct {
		volumes string
		want    []string
	}{
		"named": {`[{"name": "a", "path": "/work", "slot": "work"},
			{"name": "b", "path": "/data", "slot": "data", "artifact": "weights"}]`, nil},
		"in place of another's": {`[{"name": "a", "path": "/srv/work", "slot": "data"},
			{"name": "b", "path": "/b", "slot": "work"}]`, nil},
		"unheard of": {`[{"name": "a", "path": "/work", "slot": "home"}]`,
			[]string{"UNKNOWN_VALUE runtimeProfile.volumes.0.slot"}},
		"named twice": {`[{"name": "a", "path": "/a", "slot": "work"}, {"name": "b", "path": "/b", "slot": "work"}]`,
			[]string{"DUPLICATE runtimeProfile.volumes.1.slot"}},
		"where a slot is": {`[{"name": "a", "path": "/srv/work"}]`, []string{"DUPLICATE runtimeProfile.volumes.0.path"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m map[string]any
			require.NoError(t, json.Unmarshal(launching(t, `{"image": "server", "volumes": `+c.volumes+`}`), &m))
			m["volumes"] = json.RawMessage(slots)
			data, err := json.Marshal(m)
			require.NoError(t, err)
			_, err = Parse(data)
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.Equal(t, c.want, reasonsOf(t, err))
		})
	}
}
