package oci

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

const patience = 5 * time.Minute

// launched is an instance whose members have namespaces of their own, so that cloud-init and podman really run.
type launched struct {
	t       *testing.T
	p       *adaptertest.Platform
	dir     string // what the controller keeps
	base    string
	count   int
	as      adapter.Instance
	members []adapter.Member
}

// real begins an instance of a profile. Without root, podman and cloud-init the test is skipped.
func real(t *testing.T, profile string, options ...adaptertest.Option) *launched {
	t.Helper()
	adaptertest.Require(t, "podman", "crun", "cloud-init")
	p := adaptertest.New(t, "oci-launch", append(options, adaptertest.Namespaces())...)
	dir := t.TempDir()
	app, err := App(readManifest(t), dir)
	require.NoError(t, err)
	l := &launched{t: t, p: p, dir: dir, base: p.Start(app), as: instanceOf(profile, "")}
	t.Cleanup(func() { // what a member had of limits is on this machine
		left, _ := filepath.Glob("/sys/fs/cgroup/*/gpuaas-mem_" + l.as.ID + "*")
		for _, dir := range left {
			_ = exec.Command("find", dir, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";").Run()
		}
	})
	l.as.ID = "ins_" + fmt.Sprint(time.Now().UnixNano())
	return l
}

// image builds a program of this repository into an image, and puts it where members fetch.
func (l *launched) image(program, build string) string {
	l.t.Helper()
	binary := filepath.Join(l.t.TempDir(), "program")
	command := exec.Command("go", "build", "-trimpath", "-ldflags", "-X main.build="+build, "-o", binary,
		"../../testimages/"+program)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := command.CombinedOutput()
	require.NoError(l.t, err, "%s", out)
	data, err := os.ReadFile(binary)
	require.NoError(l.t, err)
	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	require.NoError(l.t, archive.WriteHeader(&tar.Header{Name: "program", Mode: 0o755, Size: int64(len(data))}))
	_, err = archive.Write(data)
	require.NoError(l.t, err)
	require.NoError(l.t, archive.Close())
	sum := sha256.Sum256(layer.Bytes())
	config, err := json.Marshal(map[string]any{"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/program"}, "User": "65532:65532"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}}})
	require.NoError(l.t, err)
	return l.manifest("application/vnd.oci.image.config.v1+json", config, "application/vnd.oci.image.layer.v1.tar",
		layer.Bytes(), "")
}

func (l *launched) manifest(configType string, config []byte, layerType string, layer []byte, title string) string {
	l.t.Helper()
	held := l.p.Artifacts
	document, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": map[string]any{"mediaType": configType, "digest": held.Put(config), "size": len(config)},
		"layers": []any{map[string]any{"mediaType": layerType, "digest": held.Put(layer), "size": len(layer),
			"annotations": map[string]string{"org.opencontainers.image.title": title}}},
	})
	require.NoError(l.t, err)
	return held.Put(document)
}

// pin makes an artifact what the manifest pins.
func (l *launched) pin(name, digest string) {
	at := slices.IndexFunc(l.as.Artifacts, func(a adapter.Artifact) bool { return a.Name == name })
	l.as.Artifacts = slices.Clone(l.as.Artifacts)
	l.as.Artifacts[at].Digest = digest
}

func (l *launched) grow(count int) (ids []string) {
	for range count {
		index := len(l.members)
		id := fmt.Sprintf("mem_%s_%d", l.as.ID, index)
		l.members = append(l.members, adapter.Member{ID: id, ComponentKey: component, Index: index, Status: "pending",
			Node: l.p.Node("127.0.0.1")})
		ids = append(ids, id)
	}
	return ids
}

// run does an operation and answers its end; what members are then is what the next one finds.
func (l *launched) run(kind adapter.Kind, change any, targets ...string) adapter.Status {
	l.t.Helper()
	l.count++
	raw, err := json.Marshal(change)
	require.NoError(l.t, err)
	l.as.Components = []adapter.ComponentCount{{Key: component, Count: max(1, len(l.members))}}
	status := l.p.Run(l.base, adapter.Dispatch{
		OperationID: fmt.Sprintf("op_%d", l.count), Kind: kind, Attempt: 1, Deadline: time.Now().Add(patience),
		CorrelationID: "cor-1",
		Instance:      l.as, Members: slices.Clone(l.members), Targets: targets, Change: raw, Platform: l.p.Access(),
	}, patience)
	for _, said := range status.Members {
		for i := range l.members {
			if l.members[i].ID == said.ID {
				l.members[i].Status = string(said.Status)
			}
		}
	}
	l.members = slices.DeleteFunc(l.members, func(m adapter.Member) bool {
		return m.Status == string(adapter.MemberRemoved)
	})
	return status
}

func (l *launched) succeed(kind adapter.Kind, change any, targets ...string) adapter.Status {
	l.t.Helper()
	status := l.run(kind, change, targets...)
	require.Equal(l.t, adapter.StateSucceeded, status.State, "%+v", status.Error)
	return status
}

// at is where a member listens, as its detail says.
func (l *launched) at(status adapter.Status, member, port string) string {
	l.t.Helper()
	for _, said := range status.Members {
		var detail struct{ Endpoints map[string]string }
		if said.ID == member && json.Unmarshal(said.Detail, &detail) == nil {
			return "http://" + detail.Endpoints[port]
		}
	}
	l.t.Fatalf("nothing is said of %s", member)
	return ""
}

// get sends a request to a container; it returns an empty text when nothing answers.
func (l *launched) get(method, url string) string {
	l.t.Helper()
	request, err := http.NewRequestWithContext(l.t.Context(), method, url, nil)
	require.NoError(l.t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	require.NoError(l.t, err)
	return string(body)
}

func TestContainersReallyRunAndChangeAndLeaveNothing(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	l := real(t, strings.ReplaceAll(`{"image":"image","args":["--listen",":$(PORT_HTTP)"],"env":{"GREETING":"Hello"},
		"ports":[{"name":"http","port":8888}],"resources":{"memoryMiB":64,"cpus":0.5},
		"health":{"http":{"port":8888,"path":"/healthz","expectStatus":200}}}`, "8888", port))
	first, second := l.image("web-notebook", "one"), l.image("web-notebook", "two")
	l.pin("image", first)
	l.as.Config = json.RawMessage(`{"env":{"GREETING":"Bon jour"}}`)
	ids := l.grow(2)
	status := l.succeed(adapter.InstanceCreate, nil)
	a, b := l.at(status, ids[0], "http"), l.at(status, ids[1], "http")
	require.NotEqual(t, a, b, "two members of one node listen at two ports")
	require.Equal(t, "Bon jour from "+ids[0]+", build one\n", l.get(http.MethodGet, a))
	require.Equal(t, "Bon jour from "+ids[1]+", build one\n", l.get(http.MethodGet, b))

	var read struct{ Logs []struct{ Text string } }
	l.p.Action(l.base, "logs.read", adapter.Dispatch{Instance: l.as, Members: l.members}, "k1",
		map[string]any{"member": ids[0]}, &read)
	require.Len(t, read.Logs, 1)
	require.Contains(t, read.Logs[0].Text, "web-notebook listens build=one")

	from := adapter.VersionConfig{Version: l.as.Version, Config: l.as.Config}
	l.as.Version = "2.0.0"
	l.pin("image", second)
	status = l.succeed(adapter.InstanceUpgrade, adapter.VersionChange{From: from,
		To: adapter.VersionConfig{Version: "2.0.0"}})
	require.Contains(t, l.get(http.MethodGet, l.at(status, ids[1], "http")), "build two")

	l.as.Version = "3.0.0"
	l.as.RuntimeProfile = json.RawMessage(strings.ReplaceAll(`{"image":"image","args":["--no-such-flag"],
		"ports":[{"name":"http","port":8888}],"health":{"http":{"port":8888,"path":"/healthz"},"attempts":2}}`, "8888", port))
	status = l.run(adapter.InstanceUpgrade, adapter.VersionChange{From: from,
		To: adapter.VersionConfig{Version: "3.0.0"}})
	require.Equal(t, adapter.StateFailed, status.State)
	for _, at := range []string{a, b} {
		require.Contains(t, l.get(http.MethodGet, at), "build two", "what does not become well is taken back: %+v",
			status.Error)
	}

	l.succeed(adapter.MemberDrain, nil, ids[1])
	require.Empty(t, l.get(http.MethodGet, b))
	l.succeed(adapter.MemberUncordon, nil, ids[1])
	require.Contains(t, l.get(http.MethodGet, b), "build two")

	status = l.succeed(adapter.InstanceDecommission, nil)
	require.JSONEq(t, fmt.Sprintf(`{%q:0,%q:0}`, ids[0], ids[1]), string(status.Evidence["residue"]))
	require.Empty(t, l.get(http.MethodGet, a))
	left, err := filepath.Glob("/sys/fs/cgroup/*/gpuaas-" + ids[0])
	require.NoError(t, err)
	require.Empty(t, left, "limits go with what they bounded")
}

func TestAModelServerReadsItsWeightsFromAnArtifactAndIsMetered(t *testing.T) {
	t.Parallel()
	l := real(t, strings.ReplaceAll(modelProfile(t), "8000", freePort(t)))
	l.pin("image", l.image("model-server", "one"))
	weights := []byte(`{"one":{"two":1},"three":{"four":2,"five":1},"four":{"five":1},"five":{"six":1}}`)
	l.pin("weights", l.manifest("application/vnd.oci.empty.v1+json", []byte("{}"), "application/octet-stream", weights,
		"model.json"))
	ids := l.grow(1)
	status := l.succeed(adapter.InstanceCreate, nil)
	sum := sha256.Sum256(weights)
	require.Contains(t, l.get(http.MethodGet, l.at(status, ids[0], "api")+"/v1/models"), hex.EncodeToString(sum[:]))
	l.isMetered(ids[0], l.at(status, ids[0], "api"))
}

// isMetered asks a model server, and requires that each request is counted once: over reads, a restart of the
// controller, a restart of the container, and the instance's end.
func (l *launched) isMetered(member, at string) {
	t := l.t
	require.Empty(t, l.usage(), "nothing was served yet")
	ask := func() {
		answer, err := http.Post(at+"/v1/completions", "application/json",
			strings.NewReader(`{"model":"model","prompt":"one two three"}`))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode)
	}
	ask()
	ask()
	l.counted(2)
	require.Equal(t, map[string]int{"requests": 2, "tokens": 12}, l.usage(), "and no more when it is read again")

	ask()
	app, err := App(readManifest(t), l.dir) // the controller starts again on what is on its disk
	require.NoError(t, err)
	l.base = l.p.Start(app)
	l.succeed(adapter.MemberUncordon, nil, member)
	l.counted(3)

	ask()
	l.restarts()
	require.Equal(t, map[string]int{"requests": 4, "tokens": 24}, l.usage(), "what it counted is read before it stops")
	ask()
	l.counted(5) // a container that starts again counts from zero

	ask()
	l.succeed(adapter.InstanceDecommission, nil)
	require.Equal(t, map[string]int{"requests": 6, "tokens": 36}, l.usage(),
		"what ends with the instance is counted before")
}

// restarts has the containers start again, and tries again while their node is too busy.
func (l *launched) restarts() {
	l.t.Helper()
	for try := range 10 {
		code, raw := l.p.TryAction(l.base, "container.restart", adapter.Dispatch{Instance: l.as, Members: l.members},
			fmt.Sprint("r", try), map[string]any{})
		if code == http.StatusOK {
			require.JSONEq(l.t, `{"output":{"restarted":["replica-0"]}}`, string(raw))
			return
		}
		require.Contains(l.t, string(raw), "NODE_SILENT")
	}
	require.FailNow(l.t, "the node was silent ten times")
}

// counted waits until the usage has so many requests, and requires that it has no more: a busy node may answer too
// late, and is then read again.
func (l *launched) counted(requests int) {
	l.t.Helper()
	want := map[string]int{"requests": requests, "tokens": 6 * requests}
	for deadline := time.Now().Add(time.Minute); ; {
		seen := l.usage() // asks the container each time
		if seen["requests"] >= requests || time.Now().After(deadline) {
			require.Equal(l.t, want, seen)
			return
		}
	}
}

// usage reads the instance's usage to its end, and adds it up by dimension; no record comes twice.
func (l *launched) usage() map[string]int {
	l.t.Helper()
	var sums map[string]int
	seen, cursor := make(map[string]bool), ""
	for {
		var page adapter.UsagePage
		code, raw := l.p.Call(l.base, http.MethodGet, adapter.UsagePath(l.as.ID, cursor), nil, &page)
		require.Equal(l.t, http.StatusOK, code, "%s", raw)
		if len(page.Records) == 0 {
			return sums
		}
		for _, one := range page.Records {
			require.False(l.t, seen[one.ID], one.ID)
			count, err := strconv.Atoi(one.Quantity)
			require.NoError(l.t, err)
			require.False(l.t, one.To.Before(one.From), "%+v", one)
			if sums == nil {
				sums = make(map[string]int)
			}
			seen[one.ID] = true
			sums[one.Dimension] += count
		}
		cursor = page.Cursor
	}
}
