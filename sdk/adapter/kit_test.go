package adapter

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDispatchRunsTheOperationOnceAndSucceeds(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	d := l.dispatchOf("op_1", InstanceCreate)
	l.dispatch(base, d, http.StatusAccepted)
	status := l.ends(base, "op_1", StateSucceeded)
	require.Equal(t, 100, status.Percent)
	require.Len(t, status.Members, 2)
	require.Equal(t, MemberActive, status.Members[0].Status)
	require.JSONEq(t, "2", string(status.Evidence["peers"]))
	require.Equal(t, []string{"first", "first", "second", "second", "third", "third", "committed"}, l.steps())

	// A repeat with another token, deadline, member status and spelling of the config is the same.
	d.Deadline, d.Platform.Token, d.Members[0].Status = d.Deadline.Add(time.Hour), "tok-2", "joining"
	d.Instance.Config = json.RawMessage(`{ "name" : "a" }`)
	l.dispatch(base, d, http.StatusOK)
	require.Len(t, l.steps(), 7, "a repeat must run nothing")
}

func TestAnAdapterOfAnyAppRunsWhatTheManifestSays(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	any, named := demoApp(), demoApp()
	any.Slug, named.Slug = AnyApp, "named"
	var heard Instance
	any.Operations = map[Kind]OperationFunc{InstanceCreate: func(_ context.Context, run *Run) error {
		heard = run.Instance()
		return nil
	}}
	any.Observe = func(_ context.Context, call *Call) (Observation, error) {
		pinned, ok := call.Instance.Artifact("weights")
		return Observation{Health: Healthy, Message: pinned.Digest + string(call.Instance.RuntimeProfile)},
			map[bool]error{false: ErrCanceled}[ok]
	}
	config := l.config(t.TempDir(), any)
	config.Apps = append(config.Apps, named)
	base, _ := startKit(t, l, config)
	d := l.dispatchOf("op_1", InstanceCreate)
	d.Instance.App, d.Instance.RuntimeProfile = "nobody-named-it", json.RawMessage(`{"image":"web"}`)
	d.Instance.Artifacts = []Artifact{{Name: "weights", Digest: "sha256:" + strings.Repeat("a", 64), MediaType: "m"}}
	l.dispatch(base, d, http.StatusAccepted)
	l.ends(base, "op_1", StateSucceeded)
	require.JSONEq(t, `{"image":"web"}`, string(heard.RuntimeProfile))
	require.Equal(t, d.Instance.Artifacts, heard.Artifacts)
	code, body := l.call(base, http.MethodGet, InstancePath("ins_1"), nil, HeaderPlatformToken, "tok-9")
	require.Equal(t, http.StatusOK, code, "%s", body)
	require.Contains(t, string(body), "sha256:aaaa")

	d = l.dispatchOf("op_2", MemberDrain)
	d.Instance.App = "nobody-named-it"
	code, body = l.call(base, http.MethodPut, OperationPath("op_2"), d)
	require.Equal(t, http.StatusUnprocessableEntity, code, "%s", body)
	require.Equal(t, "kind", errorOf(t, body).Path, "what any app can do is what the entry for any says")
}

func TestDispatchOfAnotherSpecificationIsBodyMismatch(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusAccepted)
	change := map[string]func(*Dispatch){
		"kind":    func(d *Dispatch) { d.Kind = InstanceDecommission },
		"config":  func(d *Dispatch) { d.Instance.Config = json.RawMessage(`{"name":"b"}`) },
		"members": func(d *Dispatch) { d.Members = d.Members[:1] },
		"node":    func(d *Dispatch) { d.Members[0].Node.Address = "10.0.0.9" },
		"targets": func(d *Dispatch) { d.Targets = []string{"mem_a"} },
		"change":  func(d *Dispatch) { d.Change = json.RawMessage(`{"x":1}`) },
	}
	for name, apply := range change {
		d := l.dispatchOf("op_1", InstanceCreate)
		apply(&d)
		require.Equal(t, CodeBodyMismatch, errorOf(t, l.dispatch(base, d, http.StatusConflict)).Code, name)
	}
}

func TestStaleAttemptIsRefusedAndAHigherOneTakesOver(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	l.hold("second")
	d := l.dispatchOf("op_1", InstanceCreate)
	d.Attempt = 2
	l.dispatch(base, d, http.StatusAccepted)
	l.eventually(base, "op_1", "in second", func(s Status) bool { return s.Phase == "second" })

	d.Attempt = 1
	require.Equal(t, CodeStaleFence, errorOf(t, l.dispatch(base, d, http.StatusConflict)).Code)
	code, body := l.call(base, http.MethodPost, CancelPath("op_1"), CancelRequest{Attempt: 1})
	require.Equal(t, http.StatusConflict, code)
	require.Equal(t, CodeStaleFence, errorOf(t, body).Code)

	d.Attempt = 3
	l.dispatch(base, d, http.StatusAccepted)
	l.release("second")
	status := l.ends(base, "op_1", StateSucceeded)
	require.Equal(t, 3, status.Attempt)
	require.Len(t, l.steps(), 7, "the run under way goes on; nothing is repeated")
}

func TestFailedOperationRunsAgainOnAHigherAttemptOnly(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	d := l.dispatchOf("op_1", InstanceCreate)
	d.Instance.Config = json.RawMessage(`{"mode":"fail"}`)
	l.dispatch(base, d, http.StatusAccepted)
	status := l.ends(base, "op_1", StateFailed)
	require.Equal(t, CodeNodeTask, status.Error.Code)
	require.Equal(t, OwnerNode, status.Error.Owner)
	require.Contains(t, status.Error.Message, "said so")
	require.Equal(t, []string{"first", "first", "second", "undo"}, l.steps())

	l.dispatch(base, d, http.StatusOK)
	d.Attempt = 2
	l.dispatch(base, d, http.StatusAccepted)
	l.ends(base, "op_1", StateFailed)
	require.Len(t, l.steps(), 8, "a deliberate new attempt has tasks of its own")
}

func TestDispatchIsRefusedWithReason(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	cases := map[string]struct {
		change func(*Dispatch)
		status int
		code   string
		path   string
	}{
		"unknown app":      {func(d *Dispatch) { d.Instance.App = "other" }, 422, CodeUnsupported, "instance.app"},
		"unsupported kind": {func(d *Dispatch) { d.Kind = MemberReplace }, 422, CodeUnsupported, "kind"},
		"broken config": {func(d *Dispatch) { d.Instance.Config = json.RawMessage(`{"name":"much too long"}`) }, 422,
			CodeConfigInvalid, "instance.config.name"},
		"author's refusal": {func(d *Dispatch) { d.Instance.Version = "0.0.1" }, 422, "UNSAFE_VERSION",
			"instance.version"},
		"invented kind":     {func(d *Dispatch) { d.Kind = "instance.explode" }, 400, CodeInvalid, "kind"},
		"attempt 0":         {func(d *Dispatch) { d.Attempt = 0 }, 400, CodeInvalid, "attempt"},
		"no deadline":       {func(d *Dispatch) { d.Deadline = time.Time{} }, 400, CodeInvalid, "deadline"},
		"no token":          {func(d *Dispatch) { d.Platform.Token = "" }, 400, CodeInvalid, "platform.token"},
		"target not member": {func(d *Dispatch) { d.Targets = []string{"mem_x"} }, 400, CodeInvalid, "targets[0]"},
		"member twice":      {func(d *Dispatch) { d.Members[1].ID = "mem_a" }, 400, CodeInvalid, "members[1].id"},
		"too many members": {func(d *Dispatch) { d.Members = manyMembers(MaxMembers + 1) }, 400, CodeInvalid,
			"members"},
		"instance no id": {func(d *Dispatch) { d.Instance.ID = "../x" }, 400, CodeInvalid, "instance.id"},
	}
	for name, c := range cases {
		d := l.dispatchOf("op_"+strings.ReplaceAll(strings.ReplaceAll(name, " ", "_"), "'", ""), InstanceCreate)
		c.change(&d)
		refused := errorOf(t, l.dispatch(base, d, c.status))
		require.Equal(t, c.code, refused.Code, name)
		require.Equal(t, c.path, refused.Path, name)
		code, _ := l.call(base, http.MethodGet, OperationPath(d.OperationID), nil)
		require.Equal(t, http.StatusNotFound, code, "%s: a refused dispatch must leave nothing", name)
	}
	require.Empty(t, l.steps())
}

func manyMembers(n int) []Member {
	members := make([]Member, n)
	for i := range members {
		members[i] = Member{ID: fmt.Sprintf("mem_%d", i), ComponentKey: "peer"}
	}
	return members
}

// TestWhatAnOperationCallsForBelongsToTheTraceThatItWasDispatchedIn: by its header, and so do observations by theirs.
func TestWhatAnOperationCallsForBelongsToTheTraceThatItWasDispatchedIn(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	const at = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	code, body := l.call(base, http.MethodPut, OperationPath("op_1"), l.dispatchOf("op_1", InstanceCreate),
		HeaderTraceparent, at)
	require.Equal(t, http.StatusAccepted, code, "%s", body)
	require.Eventually(t, func() bool {
		_, body := l.call(base, http.MethodGet, OperationPath("op_1"), nil)
		return strings.Contains(string(body), `"succeeded"`)
	}, patience, time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	require.NotEmpty(t, l.carried)
	for _, carried := range l.carried {
		require.Equal(t, at, carried)
	}
}

func TestBadBodiesAreRefused(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	target := OperationPath("op_1")
	code, body := l.send(base, http.MethodPut, target, []byte(`{"operationId":7}`))
	require.Equal(t, http.StatusBadRequest, code)
	require.Equal(t, "operationId", errorOf(t, body).Path)
	code, body = l.send(base, http.MethodPut, target, []byte(`{`))
	require.Equal(t, http.StatusBadRequest, code)
	require.Equal(t, CodeInvalid, errorOf(t, body).Code)
	code, body = l.send(base, http.MethodPut, target, []byte(`{}`), "Content-Type", "text/plain")
	require.Equal(t, http.StatusBadRequest, code)
	require.Equal(t, "Content-Type", errorOf(t, body).Path)
	code, body = l.call(base, http.MethodPut, target, l.dispatchOf("op_2", InstanceCreate))
	require.Equal(t, http.StatusBadRequest, code)
	require.Equal(t, "operationId", errorOf(t, body).Path)
	code, body = l.send(base, http.MethodPut, target, make([]byte, MaxBody+1))
	require.Equal(t, http.StatusRequestEntityTooLarge, code)
	require.Equal(t, CodeTooLarge, errorOf(t, body).Code)
	code, body = l.call(base, http.MethodGet, "/v2/adapter", nil)
	require.Equal(t, http.StatusNotFound, code)
	require.Equal(t, CodeNotFound, errorOf(t, body).Code)
}

func TestDeadlineEndsTheOperationAsFailed(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	l.hold("second")
	d := l.dispatchOf("op_1", InstanceCreate)
	d.Deadline = time.Now().Add(300 * time.Millisecond)
	l.dispatch(base, d, http.StatusAccepted)
	status := l.ends(base, "op_1", StateFailed)
	require.Equal(t, CodeDeadline, status.Error.Code)
	require.True(t, status.Error.Retryable)
	require.Contains(t, l.steps(), "undo")
}

func TestOperationWhoseDeadlineHasPassedDoesNothing(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	for _, id := range []string{"op_1", "op_2", "op_3", "op_4"} {
		d := l.dispatchOf(id, InstanceCreate)
		d.Deadline = time.Now().Add(-time.Minute)
		l.dispatch(base, d, http.StatusAccepted)
		require.Equal(t, CodeDeadline, l.ends(base, id, StateFailed).Error.Code)
	}
	require.Empty(t, l.steps())
}

func TestAuthorsPanicFailsTheOperationAndNothingElse(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	l.dispatch(base, l.dispatchOf("op_1", MemberLabel), http.StatusAccepted)
	status := l.ends(base, "op_1", StateFailed)
	require.Equal(t, CodeInternal, status.Error.Code)
	require.NotContains(t, status.Error.Message, "mistake")
	l.dispatch(base, l.dispatchOf("op_2", InstanceCreate), http.StatusAccepted)
	l.ends(base, "op_2", StateSucceeded)
}

func TestPlatformOutageIsWaitedOut(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	l.hold("second")
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusAccepted)
	l.eventually(base, "op_1", "in second", func(s Status) bool { return s.Phase == "second" })
	l.setDown(true)
	l.release("second")
	status := l.eventually(base, "op_1", "still running", func(s Status) bool { return s.State == StateRunning })
	require.Equal(t, "second", status.Phase)
	l.setDown(false)
	l.ends(base, "op_1", StateSucceeded)
}

func TestRefusedTokenFailsTheOperationAsThePlatforms(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	d := l.dispatchOf("op_1", InstanceCreate)
	d.Platform.Token = "bad"
	l.dispatch(base, d, http.StatusAccepted)
	status := l.ends(base, "op_1", StateFailed)
	require.Equal(t, OwnerPlatform, status.Error.Owner)
	require.Contains(t, status.Error.Message, "UNAUTHENTICATED")
}

func TestProgressIsPushedAndTokensAreRenewed(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	l.hold("third")
	d := l.dispatchOf("op_1", InstanceCreate)
	d.Platform.TokenExpiresAt = time.Now().Add(time.Minute)
	l.dispatch(base, d, http.StatusAccepted)
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, report := range l.reports {
			if report["phase"] == "third" && report["operationId"] == "op_1" && report["attempt"] == 1.0 {
				return l.renewed == 1
			}
		}
		return false
	}, patience, 10*time.Millisecond)
	l.release("third")
	l.ends(base, "op_1", StateSucceeded)
}

func TestKitRefusesWhatItCannotServe(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	good := l.config(t.TempDir(), demoApp())
	cases := map[string]func(*Config){
		"no name":        func(c *Config) { c.Name = "" },
		"no directory":   func(c *Config) { c.StateDir = "" },
		"no keys":        func(c *Config) { c.Keys = nil },
		"no app":         func(c *Config) { c.Apps = nil },
		"app twice":      func(c *Config) { c.Apps = []App{demoApp(), demoApp()} },
		"invented kind":  func(c *Config) { c.Apps[0].Operations = map[Kind]OperationFunc{"x": demoCreate} },
		"broken schema":  func(c *Config) { c.Apps[0].ConfigSchema = json.RawMessage(`{"type":"nonsense"}`) },
		"foreign schema": func(c *Config) { c.Apps[0].ConfigSchema = json.RawMessage(`{"$ref":"file:///etc/passwd"}`) },
		"bad bounds":     func(c *Config) { c.Apps[0].Components[0].Max = 0 },
		"no function":    func(c *Config) { c.Apps[0].Actions[0].Do = nil },
	}
	for name, change := range cases {
		config := good
		config.Apps = []App{demoApp()}
		change(&config)
		_, err := New(config)
		require.Error(t, err, name)
	}
	kit, err := New(good)
	require.NoError(t, err)
	require.NoError(t, kit.Start(context.Background()))
	t.Cleanup(kit.Stop)
	second, err := New(good)
	require.NoError(t, err)
	require.ErrorContains(t, second.Start(context.Background()), "in use by another process")
	second.Stop()
	require.Error(t, kit.Start(context.Background()))
	kit.Stop()
	kit.Stop()
}
