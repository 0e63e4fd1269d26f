package adapter

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/nacl/box"

	"github.com/gpuaas/app-platform/sdk/adapter/internal/wire"
)

func (l *lab) actionOf(input, key string) ActionRequest {
	d := l.dispatchOf("op_1", InstanceCreate)
	return ActionRequest{
		Input: json.RawMessage(input), IdempotencyKey: key, Requester: Requester{ID: "usr_1", Kind: "user"},
		Instance: d.Instance, Members: d.Members, Platform: d.Platform,
	}
}

func TestActionRunsOnceForOneKey(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	target := ActionPath("ins_1", "say")
	for range 2 {
		code, body := l.call(base, http.MethodPost, target, l.actionOf(`{"text":"hi"}`, "k1"))
		require.Equal(t, http.StatusOK, code, "body: %s", body)
		var result struct{ Output struct{ Heard string } }
		require.NoError(t, json.Unmarshal(body, &result))
		require.Contains(t, result.Output.Heard, "hi")
	}
	require.Len(t, l.steps(), 1)
	code, body := l.call(base, http.MethodPost, target, l.actionOf(`{"text":"other"}`, "k1"))
	require.Equal(t, http.StatusConflict, code)
	require.Equal(t, CodeKeyReused, errorOf(t, body).Code)
	code, _ = l.call(base, http.MethodPost, target, l.actionOf(`{"text":"hi"}`, "k2"))
	require.Equal(t, http.StatusOK, code)
	require.Len(t, l.steps(), 2)
}

func TestActionKeyReusedAcrossARestartIsRefusedByThePlatform(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	one, _ := startKit(t, l, l.config(t.TempDir(), demoApp()))
	two, _ := startKit(t, l, l.config(t.TempDir(), demoApp()))
	code, _ := l.call(one, http.MethodPost, ActionPath("ins_1", "say"), l.actionOf(`{"text":"hi"}`, "k1"))
	require.Equal(t, http.StatusOK, code)
	code, body := l.call(two, http.MethodPost, ActionPath("ins_1", "say"), l.actionOf(`{"text":"other"}`, "k1"))
	require.Equal(t, http.StatusConflict, code)
	require.Equal(t, CodeKeyReused, errorOf(t, body).Code)
}

func TestActionIsRefusedWithReason(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	bad := l.actionOf(`{"text":"hi"}`, "k")
	bad.Platform.Token = "bad"
	nokey := l.actionOf(`{"text":"hi"}`, "")
	cases := map[string]struct {
		name   string
		body   ActionRequest
		status int
		code   string
		path   string
	}{
		"unknown action":   {"shout", l.actionOf(`{}`, "a"), 404, CodeNotFound, ""},
		"missing field":    {"say", l.actionOf(`{}`, "b"), 422, CodeInvalid, "input"},
		"wrong type":       {"say", l.actionOf(`{"text":7}`, "c"), 422, CodeInvalid, "input.text"},
		"author's refusal": {"say", l.actionOf(`{"text":"rude"}`, "d"), 422, "RUDE", "input.text"},
		"platform refuses": {"say", bad, 422, CodePlatform, ""},
		"broken output":    {"say", l.actionOf(`{"text":"broken"}`, "e"), 500, CodeInternal, ""},
		"failed task":      {"say", l.actionOf(`{"text":"must-fail"}`, "f"), 422, CodeNodeTask, ""},
		"no key":           {"say", nokey, 400, CodeInvalid, "idempotencyKey"},
	}
	for name, c := range cases {
		code, body := l.call(base, http.MethodPost, ActionPath("ins_1", c.name), c.body)
		require.Equal(t, c.status, code, "%s: %s", name, body)
		require.Equal(t, c.code, errorOf(t, body).Code, name)
		require.Equal(t, c.path, errorOf(t, body).Path, name)
	}
	code, body := l.call(base, http.MethodPost, ActionPath("ins_2", "say"), l.actionOf(`{"text":"hi"}`, "g"))
	require.Equal(t, http.StatusBadRequest, code)
	require.Equal(t, "instance.id", errorOf(t, body).Path)
}

func TestInstanceIsObservedFromItsDispatchToItsEnd(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	token := []string{HeaderPlatformToken, "tok-9"}
	code, _ := l.call(base, http.MethodGet, InstancePath("ins_1"), nil, token...)
	require.Equal(t, http.StatusNotFound, code)
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusAccepted)
	l.ends(base, "op_1", StateSucceeded)

	code, body := l.call(base, http.MethodGet, InstancePath("ins_1"), nil)
	require.Equal(t, http.StatusBadRequest, code)
	require.Equal(t, HeaderPlatformToken, errorOf(t, body).Path)
	code, body = l.call(base, http.MethodGet, InstancePath("ins_1"), nil, token...)
	require.Equal(t, http.StatusOK, code)
	var seen Observation
	require.NoError(t, json.Unmarshal(body, &seen))
	require.Equal(t, "ins_1", seen.InstanceID)
	require.Equal(t, Healthy, seen.Health)
	require.Len(t, seen.Members, 2)
	require.False(t, seen.ObservedAt.IsZero())

	l.dispatch(base, l.dispatchOf("op_2", InstanceDecommission), http.StatusAccepted)
	l.ends(base, "op_2", StateSucceeded)
	code, _ = l.call(base, http.MethodGet, InstancePath("ins_1"), nil, token...)
	require.Equal(t, http.StatusNotFound, code)
}

func TestUsageContinuesAfterItsCursor(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusAccepted)
	l.ends(base, "op_1", StateSucceeded)
	var page UsagePage
	code, body := l.call(base, http.MethodGet, UsagePath("ins_1", ""), nil, HeaderPlatformToken, "tok-9")
	require.Equal(t, http.StatusOK, code)
	require.NoError(t, json.Unmarshal(body, &page))
	require.Equal(t, "1.5", page.Records[0].Quantity)
	code, body = l.call(base, http.MethodGet, UsagePath("ins_1", page.Cursor), nil, HeaderPlatformToken, "tok-9")
	require.Equal(t, http.StatusOK, code)
	require.NoError(t, json.Unmarshal(body, &page))
	require.Empty(t, page.Records)

	l.dispatch(base, l.dispatchOf("op_2", InstanceDecommission), http.StatusAccepted)
	l.ends(base, "op_2", StateSucceeded)
	code, body = l.call(base, http.MethodGet, UsagePath("ins_1", ""), nil, HeaderPlatformToken, "tok-9")
	require.Equal(t, http.StatusOK, code, "what was counted before the end is read after it")
	require.NoError(t, json.Unmarshal(body, &page))
	require.Len(t, page.Records, 1)
	code, _ = l.call(base, http.MethodGet, UsagePath("ins_2", ""), nil, HeaderPlatformToken, "tok-9")
	require.Equal(t, http.StatusNotFound, code)
}

func TestDescriptionIsDerivedFromTheFunctions(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	code, body := l.call(base, http.MethodGet, AdapterPath, nil)
	require.Equal(t, http.StatusOK, code)
	var d Description
	require.NoError(t, json.Unmarshal(body, &d))
	require.Equal(t, []string{"1.1", "1.0"}, d.ContractVersions)
	require.Equal(t, l.name, d.Name)
	require.Equal(t, []Kind{InstanceCreate, InstanceDecommission, MemberDrain, MemberLabel, MemberRemove, MembersAdd},
		d.Apps[0].Operations)
	require.Equal(t, "say", d.Apps[0].Actions[0].Name)
}

func TestSealedValueOpensOnlyWithTheNodesKey(t *testing.T) {
	t.Parallel()
	public, private, err := box.GenerateKey(rand.Reader)
	require.NoError(t, err)
	key := base64.StdEncoding.EncodeToString(public[:])
	sealed, err := Seal(key, "ins_1", []byte("secret"))
	require.NoError(t, err)
	raw, err := base64.StdEncoding.DecodeString(sealed)
	require.NoError(t, err)
	opened, ok := box.OpenAnonymous(nil, raw, public, private)
	require.True(t, ok)
	require.JSONEq(t, `{"instanceId":"ins_1","value":"c2VjcmV0"}`, string(opened))
	again, err := Seal(key, "ins_1", []byte("secret"))
	require.NoError(t, err)
	require.NotEqual(t, sealed, again)

	_, err = Seal("short", "ins_1", nil)
	require.ErrorContains(t, err, "sealing key")
	_, err = Seal(key, "", nil)
	require.ErrorContains(t, err, "instance id")
	_, err = Seal(key, "ins_1", make([]byte, MaxSealed+1))
	require.ErrorContains(t, err, "larger")
}

func TestTaskResultsAreReadFromTheAgentsObject(t *testing.T) {
	t.Parallel()
	result := TaskResult{Raw: json.RawMessage(
		`{"process":{"name":"p","state":"running","pid":7},"residue":{"files":1,"names":["/x"]}}`)}
	process, ok := result.Process()
	require.True(t, ok)
	require.Equal(t, 7, process.PID)
	residue, ok := result.Residue()
	require.True(t, ok)
	require.False(t, residue.Empty())
	require.True(t, Residue{}.Empty())
	_, ok = TaskResult{}.Process()
	require.False(t, ok)
	require.Equal(t, "a", wire.Clip("aé", 2), "text is cut between characters")
	require.Equal(t, strings.Repeat("b", 3), wire.Clip("bbb", 3))
}
