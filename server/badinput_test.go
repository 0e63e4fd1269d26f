package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/authz/token"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
)

const (
	launch = `mutation($input: LaunchInstanceInput!) { launchInstance(input: $input) { instance { id } operation { id } } }`
	list   = `query($projectId: ID!, $after: String, $first: Int) { instances(projectId: $projectId, first: $first, after: $after) { edges { cursor } } }`
	events = `query($id: ID!, $after: String) { instance(id: $id) { events(after: $after) { edges { cursor } } } }`
)

// bad is a call that must be refused, with the code and, when there is one, the field it must name.
type bad struct {
	name       string
	document   string
	variables  arguments
	code, path fault.Code
}

// launching is the input of a launch that would be accepted, with some fields changed.
func launching(h *house, changes object) arguments {
	in := object{"projectId": h.Project, "appSlug": h.Slug, "name": "bad-input", "allocationIds": []any{h.Free},
		"idempotencyKey": "bad"}
	for name, value := range changes {
		in[name] = value
	}
	return arguments{"input": in}
}

// exclusive is the slug of an app that fits no slice of a node.
func (b *bench) exclusive(h *house) string {
	app := b.App("apps")
	document := platformtest.Document(app, "1.0.0", b.Adapter("http://adapter.test", nil),
		b.Kit.Artifact(lifecycle.StageActive))
	document["compatibility"] = object{"requires_capacity_shape": []string{"gpu_slice"}, "min_gpu_count": 8,
		"requires_exclusive_node": false, "network_span": "allocation"}
	b.Manifest(lifecycle.StageActive, document)
	b.Entitle(h.project, app)
	return app.Slug
}

// unentitled is the slug of an app that the house may not launch.
func (b *bench) unentitled() string {
	app := b.App("apps")
	b.Manifest(lifecycle.StageActive, platformtest.Document(app, "1.0.0", b.Adapter("http://adapter.test", nil),
		b.Kit.Artifact(lifecycle.StageActive)))
	return app.Slug
}

// badCalls is the table of what bad input gets.
func (b *bench) badCalls(h, other *house) []bad {
	members := func(count int, key string) object {
		return object{"components": []object{{"key": key, "count": count}}}
	}
	foreign := b.cursorOf(other)
	return []bad{
		{"unknown app", launch, launching(h, object{"appSlug": "nothing"}), fault.NotFound, "input.appSlug"},
		{"unknown version", launch, launching(h, object{"version": "9.9.9"}), fault.NotFound, "input.version"},
		{"no such project", launch, launching(h, object{"projectId": "prj_00000000000000000000000000"}),
			fault.NotFound, ""},
		{"project id of another kind", launch, launching(h, object{"projectId": h.Instance}), fault.NotFound, ""},
		{"allocation of another project", launch, launching(h, object{"allocationIds": []any{other.Free}}),
			fault.NotFound, "input.allocationIds.0"},
		{"allocation in use", launch, launching(h, object{"allocationIds": []any{h.Used}}), fault.Conflict,
			"input.allocationIds.0"},
		{"no allocation", launch, launching(h, object{"allocationIds": []any{}}), fault.InvalidArgument,
			"input.allocationIds"},
		{"allocation named twice", launch, launching(h, object{"allocationIds": []any{h.Free, h.Free}}),
			fault.InvalidArgument, "input.allocationIds.1"},
		{"incompatible shape", launch, launching(h, object{"appSlug": b.exclusive(h)}), fault.Incompatible,
			"input.allocationIds.0"},
		{"not entitled", launch, launching(h, object{"appSlug": b.unentitled()}), fault.NotEntitled, ""},
		{"config breaks the schema", launch, launching(h, object{"config": object{"size": 0}}), fault.ConfigInvalid,
			"input.config.size"},
		{"config has an unknown member", launch, launching(h, object{"config": object{"colour": "red"}}),
			fault.ConfigInvalid, "input.config.colour"},
		{"config is no object", launch, launching(h, object{"config": []any{1}}), fault.ConfigInvalid, "input.config"},
		{"count above the bounds", launch, launching(h, members(9, "worker")), fault.InvalidArgument,
			"input.components.0.count"},
		{"count below the bounds", launch, launching(h, members(0, "worker")), fault.InvalidArgument,
			"input.components.0.count"},
		{"unknown component", launch, launching(h, members(1, "queen")), fault.InvalidArgument,
			"input.components.0.key"},
		{"bad name", launch, launching(h, object{"name": "No Name"}), fault.InvalidArgument, "input.name"},
		{"deadline too short", launch, launching(h, object{"deadlineSeconds": 1}), fault.InvalidArgument,
			"input.deadlineSeconds"},
		{"empty idempotency key", launch, launching(h, object{"idempotencyKey": ""}), fault.InvalidArgument,
			"input.idempotencyKey"},
		{"required field left out", launch, arguments{"input": object{"projectId": h.Project}},
			fault.InvalidArgument, ""},
		{"unknown input field", launch, launching(h, object{"colour": "red"}), fault.InvalidArgument, "input.colour"},
		{"wrong type", launch, launching(h, object{"deadlineSeconds": "soon"}), fault.InvalidArgument,
			"input.deadlineSeconds"},

		{"garbage cursor", list, arguments{"projectId": h.Project, "after": "garbage"}, fault.CursorInvalid, "after"},
		{"cursor of another list", list, arguments{"projectId": h.Project, "after": foreign},
			fault.CursorInvalid, "after"},
		{"garbage cursor of a timeline", events, arguments{"id": h.Instance, "after": "garbage"}, fault.CursorInvalid,
			"after"},
		{"page too large", list, arguments{"projectId": h.Project, "first": 101}, fault.InvalidArgument, "first"},
		{"page of nothing", list, arguments{"projectId": h.Project, "first": 0}, fault.InvalidArgument, "first"},

		{"unknown enum value",
			`query($projectId: ID!, $s: [InstanceStatus!]) { instances(projectId: $projectId, filter: {statuses: $s}) { edges { cursor } } }`,
			arguments{"projectId": h.Project, "s": []string{"ASLEEP"}}, fault.InvalidArgument, "s[0]"},
		{"unknown enum value in the document",
			`query { instances(projectId: "x", filter: {statuses: [ASLEEP]}) { edges { cursor } } }`, nil,
			fault.DocumentInvalid,
			""},
		{"unknown field", `query { viewer { shoeSize } }`, nil, fault.DocumentInvalid, ""},
		{"no document", ``, nil, fault.DocumentInvalid, ""},
		{"a document that does not parse", `query {`, nil, fault.DocumentInvalid, ""},
		{"document of too many bytes", `query { viewer { actor { id } } } #` + strings.Repeat("x", 65<<10), nil,
			fault.DocumentTooLarge, ""},
		{"document too deep", `query { viewer ` + strings.Repeat("{ tenant ", 40) + strings.Repeat("}", 41), nil,
			fault.DocumentTooLarge, ""},
		{"document of too many aliases", `query { ` + aliases(60) + ` }`, nil, fault.DocumentTooLarge, ""},
		{"document that costs too much",
			`query($p: ID!) { instances(projectId: $p, first: 100) { edges { node { members(first: 100) { edges { node { id node { id name sku } } } } } } } }`,
			arguments{"p": h.Project}, fault.DocumentTooLarge, ""},
		{"introspection in production", `query { __schema { types { name } } }`, nil, fault.DocumentInvalid, ""},
	}
}

func aliases(n int) (text string) {
	for i := range n {
		text += fmt.Sprintf("a%d: viewer { __typename } ", i)
	}
	return text
}

// cursorOf is a cursor that a list of the house gave, of another list than instances.
func (b *bench) cursorOf(h *house) string {
	got := b.post(h.admin, `query($p: ID!) { operations(projectId: $p) { edges { cursor } } }`,
		arguments{"p": h.Project})
	_, rest, found := strings.Cut(got.Data, `"cursor":"`)
	require.True(b.t, found, got.Raw)
	cursor, _, _ := strings.Cut(rest, `"`)
	return cursor
}

// leaks is what an answer to bad input never holds: SQL, stacks, paths of source files, Go's and the
// database's own words.
var leaks = []string{"SQLSTATE", "SELECT ", "INSERT ", "goroutine ", ".go:", "pgx", "pq:", "ent:", "panic", "/home/",
	"json: ", "strconv."}

func TestBadInputIsRefusedByCodeAndFieldAndWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h, other := b.build(), b.build()
	for _, call := range b.badCalls(h, other) {
		before, keys := b.fingerprint(), b.Count("idempotency", "")
		got := b.post(h.admin, call.document, call.variables)
		require.Equal(t, string(call.code), got.code(), "%s: %s", call.name, got.Raw)
		require.Empty(t, got.Data, call.name)
		if call.path != "" {
			require.Contains(t, got.paths(), string(call.path), "%s: %s", call.name, got.Raw)
		}
		require.True(t, fault.Code(got.code()).Known(), call.name)
		require.NotEmpty(t, got.Errors[0].Extensions.CorrelationID, call.name)
		for _, word := range leaks {
			require.NotContains(t, got.Raw, word, call.name)
		}
		require.Equal(t, before, b.fingerprint(), "%s: something was written", call.name)
		require.Equal(t, keys, b.Count("idempotency", ""), "%s: the idempotency key was spent on a refusal", call.name)
	}
}

func TestAGoodLaunchIsAcceptedAndItsKeyTakesNoOtherInput(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.build()
	first := b.post(h.admin, launch, launching(h, nil))
	require.Empty(t, first.Errors, "the table of bad input changes one thing of a launch that works")
	before := b.fingerprint()
	again := b.post(h.admin, launch, launching(h, nil))
	require.Equal(t, first.Data, again.Data)
	other := b.post(h.admin, launch, launching(h, object{"name": "another"}))
	require.Equal(t, string(fault.IdempotencyKeyReused), other.code(), other.Raw)
	require.Contains(t, other.paths(), "input.idempotencyKey")
	require.Equal(t, before, b.fingerprint())
}

func TestExpiredCredentialsSayThatTheyWereGoodOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.build()
	claims := token.Claims{Operation: h.Operation, Instance: h.Instance, Keys: authz.OperationKeys(authz.OperationRead),
		ID: "old", ExpiresAt: time.Now().Add(-time.Minute)}
	old, err := b.Ring.Sign(claims, time.Now().Add(-time.Hour))
	require.NoError(t, err)
	b.SQL(`UPDATE session SET expires_at = now() - interval '1 minute' WHERE user_id = $1`, h.User)
	for name, credential := range map[string]string{"token": old, "session": h.admin} {
		got := b.post(credential, `query { viewer { actor { id } } }`, nil)
		require.Contains(t, []string{string(fault.TokenExpired), string(fault.Unauthenticated)}, got.code(),
			"%s: %s", name, got.Raw)
		require.Empty(t, got.Data)
	}
	require.Equal(t, string(fault.TokenExpired), b.post(old, `query { viewer { actor { id } } }`, nil).code())
}

func TestOversizedAndMalformedBodiesAreRefusedBeforeTheyAreRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.build()
	for _, body := range []struct {
		name, text string
		status     int
		code       fault.Code
	}{
		{"too large", `{"query":"` + strings.Repeat("x", maxBody+1) + `"}`, http.StatusRequestEntityTooLarge,
			fault.MessageTooLarge},
		{"no JSON", `query { viewer { actor { id } } }`, http.StatusBadRequest, fault.RequestInvalid},
		{"no object", `"query"`, http.StatusBadRequest, fault.RequestInvalid},
		{"a batch", `[{"query":"{ viewer { actor { id } } }"}]`, http.StatusBadRequest, fault.RequestInvalid},
		{"no UTF-8", "{\"query\":\"\xff\"}", http.StatusBadRequest, fault.RequestInvalid},
	} {
		got := b.send(h.admin, []byte(body.text))
		require.Equal(t, body.status, got.Status, "%s: %s", body.name, got.Raw)
		require.Equal(t, string(body.code), got.code(), "%s: %s", body.name, got.Raw)
	}
}

func TestACursorOfAnotherHouseReachesNothingOfIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h, other := b.build(), b.build()
	theirs := b.post(other.admin, list, arguments{"projectId": other.Project})
	_, rest, _ := strings.Cut(theirs.Data, `"cursor":"`)
	cursor, _, _ := strings.Cut(rest, `"`)
	require.NotEmpty(t, cursor, theirs.Raw)
	got := b.post(h.admin, list, arguments{"projectId": h.Project, "after": cursor})
	require.NotContains(t, got.Raw, string(other.Instance))
	got = b.post(h.admin, list, arguments{"projectId": other.Project, "after": cursor})
	require.Equal(t, string(fault.NotFound), got.code(), got.Raw)
	require.Empty(t, got.Data)
}

func TestAFeedRefusesCursorsThatItDidNotGive(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.build()
	activity := `subscription($p: ID!, $after: String) { projectActivity(projectId: $p, after: $after) { id } }`
	timeline := `subscription($i: ID!, $after: String) { instanceTimeline(instanceId: $i, after: $after) { id } }`
	for _, call := range []struct {
		name, document string
		variables      arguments
		code           fault.Code
	}{
		{"garbage for a project", activity, arguments{"p": h.Project, "after": "garbage"}, fault.CursorInvalid},
		{"one of another database", activity, arguments{"p": h.Project, "after": "pelsewhere.1.1"},
			fault.CursorExpired},
		{"garbage for a timeline", timeline, arguments{"i": h.Instance, "after": "garbage"}, fault.CursorInvalid},
		{"a project's for a timeline", timeline, arguments{"i": h.Instance, "after": "pelsewhere.1.1"},
			fault.CursorInvalid},
	} {
		got := b.watch(h.admin, call.document, call.variables)
		require.Equal(t, string(call.code), got.code(), "%s: %+v", call.name, got)
		require.Contains(t, got.paths(), "after", call.name)
		require.Empty(t, got.Data, call.name)
	}
}

func TestAnUnknownActionAndABadActionInputAreRefusedBeforeTheAdapterIsCalled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.build()
	invoke := `mutation($input: InvokeActionInput!) { invokeAction(input: $input) { output } }`
	for _, call := range []struct {
		name  string
		input object
		code  fault.Code
		path  string
	}{
		{"unknown action", object{"action": "queue.burn"}, fault.NotFound, "input.action"},
		{"input of another type", object{"action": "queue.read", "input": "text"}, fault.InvalidArgument, "input"},
	} {
		call.input["instanceId"], call.input["idempotencyKey"] = h.Instance, "bad"
		before := b.fingerprint()
		got := b.post(h.admin, invoke, arguments{"input": call.input})
		require.Equal(t, string(call.code), got.code(), "%s: %s", call.name, got.Raw)
		require.Contains(t, got.paths(), call.path, "%s: %s", call.name, got.Raw)
		require.Equal(t, before, b.fingerprint(), call.name)
	}
}
