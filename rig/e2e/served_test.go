package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/rig/stack/storage"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// served is an instance that programs call through its endpoint.
type served struct {
	t      *testing.T
	ctx    context.Context
	c      *client.Client
	id     string
	name   string
	origin string // of its endpoint
}

// serve launches an app with one replica and a volume in a slot, into an allocation.
func serve(t *testing.T, ctx context.Context, c *client.Client, app, name, allocation, slot, volume string,
	env map[string]string) *served {
	t.Helper()
	config, err := json.Marshal(map[string]any{"env": env})
	require.NoError(t, err)
	launched, err := gql.LaunchInstance(ctx, c, gql.LaunchInstanceInput{ProjectId: shared.Demo.ProjectID, AppSlug: app,
		Name: name, AllocationIds: []string{allocation}, Config: config,
		Volumes:         []gql.VolumeUseInput{{Slot: slot, VolumeId: volume}},
		DeadlineSeconds: 180, Reason: "end-to-end test", IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	s := &served{t: t, ctx: ctx, c: c, id: launched.LaunchInstance.Instance.Id, name: name}
	succeeds(t, ctx, c, launched.LaunchInstance.Operation.Id)
	var endpoints []struct{ Address string }
	printed := appctl(t, ctx, "endpoints", name, "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(printed), &endpoints), printed)
	require.Len(t, endpoints, 1, printed)
	s.origin = strings.TrimSuffix(endpoints[0].Address, "/")
	require.NotEmpty(t, s.origin, printed)
	return s
}

// ask calls the endpoint with a key's short token, as the guide of endpoints says; without a key, anonymously.
func (s *served) ask(key, method, path, body string) (status int, answer string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.ctx, method, s.origin+path, strings.NewReader(body))
	require.NoError(s.t, err)
	if key != "" {
		token, complaint, code := appctlAs(s.t, s.ctx, key, "token", "--life", "5m", "--quiet")
		require.Zero(s.t, code, complaint)
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	}
	platform, err := url.Parse(shared.URL)
	require.NoError(s.t, err)
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, platform.Host)
		}}}
	response, err := web.Do(request)
	require.NoError(s.t, err)
	defer func() { _ = response.Body.Close() }()
	said, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	require.NoError(s.t, err)
	return response.StatusCode, string(said)
}

// gets is ask that succeeds.
func (s *served) gets(key, method, path, body string) string {
	s.t.Helper()
	status, answer := s.ask(key, method, path, body)
	require.Equal(s.t, http.StatusOK, status, answer)
	return answer
}

// says runs a script in a replica as a person who may.
func (s *served) says(person string, replica int, script string) (printed string, code int) {
	s.t.Helper()
	said, complaint, code := appctlAs(s.t, s.ctx, person, "exec", fmt.Sprintf("%s/replica/%d", s.name, replica),
		"--reason", "end-to-end test", "--", "sh", "-c", script)
	return said + complaint, code
}

// does is says that succeeds.
func (s *served) does(person string, replica int, script string) string {
	s.t.Helper()
	printed, code := s.says(person, replica, script)
	require.Zero(s.t, code, printed)
	return printed
}

// diskOf is where the machine has the image of a node's volume.
func diskOf(node, volume string) string {
	return filepath.Join(filepath.Dir(shared.LogDir()), "nodes", node, "volumes", volume+".img")
}

// TestANotebookKeepsItsWorkOnTheDiskOfANode writes cells through the endpoint of a notebook whose volume is on its
// node's own disk. They outlast the instance there and on no other node, they are the image's user's, and they take no
// more than the volume has.
func TestANotebookKeepsItsWorkOnTheDiskOfANode(t *testing.T) {
	needsRoot(t)
	ctx, c := bounded(t), automation(t)
	key, admin := shared.Demo.ServiceAccountKey, tokenOf(t, ctx, shared.Demo.AdminID)
	volume, room := makeVolumeOf(t, ctx, storage.Local, "cells"), rent(t, ctx, c)
	greeting := map[string]string{"GREETING": "Hello"}

	first := serve(t, ctx, c, notebook, "cells-first", room, "work", volume, greeting)
	home := nodeOf(t, membersOf(t, ctx, c, first.id)[0]).Name()
	require.FileExists(t, diskOf(home, volume))
	require.JSONEq(t, `{"cell":1,"out":"6"}`, first.gets(key, http.MethodPost, "/notes", "rows = 6"))
	mounted := first.does(admin, 0, "grep ' /work ' /proc/self/mountinfo")
	require.Contains(t, mounted, " rw,nosuid,nodev,relatime,idmapped ")
	require.Contains(t, mounted, " ext4 ")
	require.Equal(t, "65532 65532\n", first.does(admin, 0, "stat -c '%u %u' /work/notebook.json"))
	first.fillsItsVolume(admin, key)
	decommission(t, ctx, c, first.id)
	kept, err := exec.CommandContext(ctx, "debugfs", "-R", "stat /notebook.json", diskOf(home, volume)).Output()
	require.NoError(t, err)
	require.Regexp(t, `User: +65532 +Group: +65532`, string(kept), "owners on the volume are the members' own")

	other := rentNode(t, ctx, c)
	_, complaint, code := appctlAs(t, ctx, key, "launch", notebook, "--name", "cells-elsewhere", "--allocation", other,
		"--volume", "work=cells")
	require.NotZero(t, code)
	require.Contains(t, complaint, "VOLUME_UNAVAILABLE")
	require.Contains(t, complaint, "is on the disk of one node")
	require.NotContains(t, appctl(t, ctx, "instances", "list", "-o", "json"), "cells-elsewhere")

	second := serve(t, ctx, c, notebook, "cells-second", room, "work", volume, greeting)
	require.Equal(t, home, nodeOf(t, membersOf(t, ctx, c, second.id)[0]).Name())
	require.JSONEq(t, `{"cell":2,"out":"42"}`, second.gets(key, http.MethodPost, "/notes", "rows * 7"))
	require.JSONEq(t, `{"cells":[{"cell":1,"code":"rows = 6","out":"6"},{"cell":2,"code":"rows * 7","out":"42"}]}`,
		second.gets(key, http.MethodGet, "/notes", ""))
	require.Equal(t, "65532\n", second.does(admin, 0, "stat -c %u /work/notebook.json"))
	decommission(t, ctx, c, second.id)
	deletesVolume(t, ctx, volume)
	for _, node := range shared.Nodes {
		left, err := filepath.Glob(filepath.Join(filepath.Dir(diskOf(node.Name(), volume)), "*"+volume+"*"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// fillsItsVolume fills the volume to its size, which the notebook then reports to the writer of a cell; nothing of what
// it has kept is lost.
func (s *served) fillsItsVolume(admin, key string) {
	t := s.t
	printed := s.does(admin, 0, "dd if=/dev/zero of=/work/fill bs=1M 2>&1 && echo it was not full; sync; "+
		"for i in 1 2 3 4 5; do dd if=/dev/zero of=/work/fill$i bs=4k 2>&1; sync; done; stat -c %s /work/fill")
	require.NotContains(t, printed, "it was not full")
	require.GreaterOrEqual(t, strings.Count(printed, "No space left on device"), 6, printed)
	var bytes int64
	_, err := fmt.Sscan(printed[strings.LastIndex(strings.TrimSpace(printed), "\n")+1:], &bytes)
	require.NoError(t, err, printed)
	require.Greater(t, bytes, int64(900<<20), "a GiB but for what the file system needs")
	require.LessOrEqual(t, bytes, int64(1<<30))
	status, said := s.ask(key, http.MethodPost, "/notes", "lost = 1")
	require.Equal(t, http.StatusInternalServerError, status)
	require.Contains(t, said, "this cell was not kept")
	require.Contains(t, said, "no space left on device")
	s.does(admin, 0, "rm /work/fill*")
	require.JSONEq(t, `{"cells":[{"cell":1,"code":"rows = 6","out":"6"}]}`, s.gets(key, http.MethodGet, "/notes", ""))
}

// weights are those of a small model.
const weights = `{"the":{"cat":3,"dog":2},"cat":{"sleeps":1}}`

// bringIn copies weights to a volume.
func bringIn(t *testing.T, ctx context.Context, admin, volume string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "small.json")
	require.NoError(t, os.WriteFile(file, []byte(weights), 0o644)) // #nosec G306 -- the image's user reads it
	_, complaint, code := appctlAs(t, ctx, admin, "volumes", "cp", file, volume+":")
	require.Zero(t, code, complaint)
}

// account makes a service account with permissions, and returns its id and a key.
func account(t *testing.T, ctx context.Context, admin, name string, permissions ...string) (id, key string) {
	t.Helper()
	tool := func(args ...string) string {
		said, complaint, code := appctlAs(t, ctx, admin, args...)
		require.Zero(t, code, "%v: %s", args, complaint)
		return strings.TrimSpace(said)
	}
	id = tool("admin", "service-account", "create", name, "--permission", strings.Join(permissions, ","), "-q")
	t.Cleanup(func() {
		ctx := bounded(t)
		_, complaint, code := appctlAs(t, ctx, tokenOf(t, ctx, shared.Demo.AdminID), "admin", "service-account",
			"delete", id, "--reason", "end-to-end test")
		require.Zero(t, code, complaint)
	})
	return id, tool("admin", "key", "create", id, "-q")
}

// TestAModelServerAnswersByWeightsThatWereBroughtIn serves a model from a volume that its members only read, on two
// nodes. Callers are let in by keys of their own, and counted by caller.
func TestAModelServerAnswersByWeightsThatWereBroughtIn(t *testing.T) {
	needsRoot(t)
	ctx, c := bounded(t), automation(t)
	admin := tokenOf(t, ctx, shared.Demo.AdminID)
	volume, rooms := makeVolume(t, ctx, "weights"), []string{rent(t, ctx, c), rentNode(t, ctx, c)}
	bringIn(t, ctx, admin, volume)

	model := serve(t, ctx, c, "model-server", "model", rooms[0], "weights", volume,
		map[string]string{"PLATFORM_KEYS": platformKeys(t, ctx)})
	added, err := gql.AddMembers(ctx, c, gql.AddMembersInput{InstanceId: model.id, ComponentKey: "replica", Count: 1,
		AllocationIds: []string{rooms[1]}, DeadlineSeconds: 120, IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	succeeds(t, ctx, c, added.AddMembers.Operation.Id)
	replicas := &containersUnderTest{t: t, ctx: ctx, c: c, instance: model.id}
	require.Len(t, replicas.servers("api"), 2)
	require.NotEqual(t, nodeOf(t, membersOf(t, ctx, c, model.id)[0]).Name(),
		nodeOf(t, membersOf(t, ctx, c, model.id)[1]).Name())

	callers := model.answersByKeys(admin)
	requests, words := map[string]int{}, map[string]int{}
	for _, at := range replicas.servers("api") { // each token has a replica of its own, so a caller may be with both
		said := replicas.read(at, "/metrics")
		sumBy(t, requests, `model_requests_total{caller="([^"]+)"} (\d+)`, said)
		sumBy(t, words, `model_tokens_total{caller="([^"]+)",kind="completion"} (\d+)`, said)
	}
	require.Equal(t, callers, requests, "each is counted by itself, and nobody else is")
	for id := range callers {
		require.Equal(t, 2*callers[id], words[id])
	}

	for replica := range 2 {
		require.Contains(t, model.does(admin, replica, "grep ' /srv/weights ' /proc/self/mountinfo"), " ro,")
		require.Equal(t, weights, model.does(admin, replica, "cat /srv/weights/small.json"))
		for _, script := range []string{"echo x > /srv/weights/more.json", "rm -f /srv/weights/small.json",
			"chmod 600 /srv/weights/small.json", "mount -o remount,rw /srv/weights && touch /srv/weights/x"} {
			printed, code := model.says(admin, replica, script)
			require.NotZero(t, code, "%s: %s", script, printed)
		}
	}
	left, err := filepath.Glob(filepath.Join(folderOf(volume), "[^.]*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(folderOf(volume), "small.json")}, left, "nothing was written")
	decommission(t, ctx, c, model.id)
	deletesVolume(t, ctx, volume)
	require.NoDirExists(t, folderOf(volume))
}

// sumBy adds up the counters that a pattern finds in metrics, by caller.
func sumBy(t *testing.T, sums map[string]int, pattern, metrics string) {
	t.Helper()
	for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(metrics, -1) {
		count, err := strconv.Atoi(found[2])
		require.NoError(t, err)
		sums[found[1]] += count
	}
}

// answersByKeys has two accounts ask by keys of their own, and others try. It returns how often each was served.
func (s *served) answersByKeys(admin string) (served map[string]int) {
	t := s.t
	one, oneKey := account(t, s.ctx, admin, "asks-first", "apps.queue.submit")
	two, twoKey := account(t, s.ctx, admin, "asks-second", "apps.queue.submit")
	_, looks := account(t, s.ctx, admin, "only-looks", "apps.instance.read")
	const question = `{"model":"small","prompt":"See the"}`
	for _, key := range []string{oneKey, twoKey, oneKey} {
		require.JSONEq(t, `{"object":"text_completion","model":"small","choices":[{"text":"cat sleeps"}],
			"usage":{"prompt_tokens":2,"completion_tokens":2,"total_tokens":4}}`,
			s.gets(key, http.MethodPost, "/v1/completions", question))
	}
	models := s.gets(twoKey, http.MethodGet, "/v1/models", "")
	require.Contains(t, models, `"name":"small"`)
	require.NotContains(t, models, "sample", "the volume is in place of what comes with the app")
	status, said := s.ask(looks, http.MethodPost, "/v1/completions", question)
	require.Equal(t, http.StatusForbidden, status, said)
	require.Contains(t, said, "apps.queue.submit")
	status, said = s.ask("", http.MethodPost, "/v1/completions", question)
	require.Equal(t, http.StatusUnauthorized, status, said)
	return map[string]int{one: 2, two: 1}
}

// get is what a container answers; an empty text when it does not.
func (k *containersUnderTest) get(address string) string { return k.read(address, "/") }

// read is get of a path.
func (k *containersUnderTest) read(address, path string) string {
	k.t.Helper()
	request, err := http.NewRequestWithContext(k.ctx, http.MethodGet, "http://"+address+path, nil)
	require.NoError(k.t, err)
	web := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: k.dial}}
	response, err := web.Do(request)
	if err != nil {
		k.t.Logf("no answer: %v", err)
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	require.NoError(k.t, err)
	return string(body)
}

// servesModels has a project that may launch the model server, and a model.
func (w *walker) servesModels() {
	w.t.Helper()
	w.writes("small.json", weights)
	_, err := gql.GrantEntitlement(w.ctx, shared.Operator, w.project, "model-server", nil, nil, "")
	require.NoError(w.t, err)
}
