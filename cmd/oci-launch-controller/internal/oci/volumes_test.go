package oci

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

// optionsOf are what podman's create is given for a profile's volumes and a member's.
func optionsOf(t *testing.T, profile string, volumes ...adapter.MemberVolume) (lines string, fetched []string) {
	t.Helper()
	member := memberOf(0)
	member.Volumes = volumes
	r, err := renderRelease(instanceOf(profile, ``), member, nil, digestOf("c"))
	require.NoError(t, err)
	for _, one := range r.fetched() {
		fetched = append(fetched, one.folder())
	}
	return r.createFile(nil), fetched
}

func TestAVolumeIsWhereItsSlotIsNamed(t *testing.T) {
	t.Parallel()
	work := adapter.MemberVolume{Slot: "work", ID: "vol_1", Path: "/srv/work"}
	const profile = `{"image":"image","volumes":[{"name":"w","path":"/work","slot":"work"},
		{"name":"models","path":"/models","slot":"weights","artifact":"weights"}]}`
	made, fetched := optionsOf(t, profile, work)
	require.Contains(t, made, "give '/srv/work'\n")
	require.Contains(t, made, "'--volume=/srv/work:/work:rw'")
	require.Contains(t, made, "'--volume=/srv/oci/artifacts/models-bbbbbbbbbbbb:/models:ro'")
	require.Equal(t, []string{"models-bbbbbbbbbbbb"}, fetched)

	weights := adapter.MemberVolume{Slot: "weights", ID: "vol_2", Path: "/srv/m", ReadOnly: true}
	made, fetched = optionsOf(t, profile, weights)
	require.Contains(t, made, "'--volume=/srv/oci/volumes/w:/work:U'", "without a volume it is the member's own")
	require.Contains(t, made, "'--volume=/srv/m:/models:ro'", "the volume is in place of the artifact")
	require.NotContains(t, made, "give")
	require.Empty(t, fetched)

	made, _ = optionsOf(t, `{"image":"image"}`, work)
	require.Contains(t, made, "'--volume=/srv/work:/srv/work:rw'", "a slot that is named nowhere")
	made, _ = optionsOf(t, `{"image":"image","volumes":[{"name":"w","path":"/w","slot":"work","readOnly":true}]}`, work)
	require.Contains(t, made, "'--volume=/srv/work:/w:ro'")
	require.NotContains(t, made, "give")
}

// bind gives the members a volume, in the form in which the platform describes it.
func (l *launched) bind(slot, path string, readOnly bool) {
	for i := range l.members {
		l.members[i].Volumes = []adapter.MemberVolume{{Slot: slot, ID: "vol_1", Path: path, ReadOnly: readOnly}}
	}
}

// ask posts a text to a container.
func ask(t *testing.T, url, body string) string {
	t.Helper()
	answer, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	var said json.RawMessage
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&said))
	return string(said)
}

func TestANotebookOnAVolumeOutlastsItsInstance(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	require.NoError(t, os.Chmod(disk, 0o755))
	var document struct{ RuntimeProfile json.RawMessage }
	require.NoError(t, json.Unmarshal(readManifest(t), &document))
	launch := func() (*launched, string) {
		l := real(t, strings.ReplaceAll(string(document.RuntimeProfile), "8888", freePort(t)),
			adaptertest.Volume(disk, "/work", false))
		l.pin("image", l.image("web-notebook", "one"))
		ids := l.grow(1)
		l.bind("work", "/work", false)
		return l, l.at(l.succeed(adapter.InstanceCreate, nil), ids[0], "http")
	}
	first, at := launch()
	require.JSONEq(t, `{"cell":1,"out":"6"}`, ask(t, at+"/notes", "rows = 6"))
	first.succeed(adapter.InstanceDecommission, nil)
	owned := func(name string) uint32 {
		info, err := os.Stat(filepath.Join(disk, name))
		require.NoError(t, err)
		return info.Sys().(*syscall.Stat_t).Uid
	}
	require.Equal(t, []uint32{65532, 65532}, []uint32{owned("."), owned("notebook.json")})

	// What others have on a volume stays theirs.
	require.NoError(t, os.WriteFile(filepath.Join(disk, "others"), []byte("x"), 0o600))
	second, at := launch()
	require.JSONEq(t, `{"cell":2,"out":"42"}`, ask(t, at+"/notes", "rows * 7"))
	require.JSONEq(t, `{"cells":[{"cell":1,"code":"rows = 6","out":"6"},{"cell":2,"code":"rows * 7","out":"42"}]}`,
		second.get(http.MethodGet, at+"/notes"))
	second.succeed(adapter.InstanceDecommission, nil)
	require.Zero(t, owned("others"))
}

func TestAModelServerReadsItsWeightsFromAVolumeAndWritesNothing(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	require.NoError(t, os.Chmod(disk, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(disk, "small.json"),
		[]byte(`{"the":{"cat":3,"dog":2},"cat":{"sleeps":1}}`), 0o644))
	before, err := os.Stat(disk)
	require.NoError(t, err)
	l := real(t, strings.ReplaceAll(modelProfile(t), "8000", freePort(t)),
		adaptertest.Volume(disk, "/srv/weights", true))
	l.pin("image", l.image("model-server", "one"))
	ids := l.grow(1)
	l.bind("weights", "/srv/weights", true)
	at := l.at(l.succeed(adapter.InstanceCreate, nil), ids[0], "api")
	require.JSONEq(t, `{"object":"text_completion","model":"small","choices":[{"text":"cat sleeps"}],
		"usage":{"prompt_tokens":2,"completion_tokens":2,"total_tokens":4}}`,
		ask(t, at+"/v1/completions", `{"model":"small","prompt":"See the"}`))
	require.Equal(t, map[string]int{"requests": 1, "tokens": 4}, l.usage())
	l.succeed(adapter.InstanceDecommission, nil)
	after, err := os.Stat(disk)
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime())
	require.Zero(t, after.Sys().(*syscall.Stat_t).Uid)
}
