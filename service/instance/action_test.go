package instance_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
)

// running is an instance that takes actions, and an adapter that answers with job 7.
func (b *bundle) running() *instance.Started {
	b.t.Helper()
	started := b.launched()
	b.status(started, lifecycle.InstanceStarting, lifecycle.InstanceRunning)
	b.standIn.Act = platformtest.Outputs(`{"id":7}`)
	return started
}

func submit(of *instance.Started) instance.ActionInput {
	return instance.ActionInput{InstanceID: of.Instance.ID, Action: "queue.submit", Input: json.RawMessage(`{"n":1}`),
		IdempotencyKey: "k"}
}

func TestTheReasonOfAnActionIsInTheAuditAndABadOneIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := submit(b.running())
	in.Reason = "the nightly run"
	_, err := b.service.InvokeAction(b.ctx, in)
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("audit_entry",
		"allowed AND action = 'invokeAction queue.submit' AND reason = 'the nightly run'"))

	before, asked := b.written(), len(b.standIn.Actions)
	in.IdempotencyKey, in.Reason = "another", strings.Repeat("x", 2_000)
	_, err = b.service.InvokeAction(b.ctx, in)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.reason")
	require.Equal(t, []any{before, asked}, []any{b.written(), len(b.standIn.Actions)}, "neither written nor sent")
}

func TestAnActionReachesTheAdapterAndItsAnswerTheCaller(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.running()
	member := b.User(b.tenant, platformtest.In(authz.ProjectMember, b.project))
	out, err := b.service.InvokeAction(b.As(member), submit(started))
	require.NoError(t, err)
	require.JSONEq(t, `{"id":7}`, string(out.Output))
	require.NotEmpty(t, out.CorrelationID)
	require.Len(t, b.standIn.Actions, 1)
	call := b.standIn.Actions[0]
	require.Equal(t, []any{"queue.submit", "k", string(member.ID), string(b.project.ID), out.CorrelationID,
		string(started.Instance.ID)},
		[]any{call.Name, call.IdempotencyKey, call.Requester.ID, call.Requester.ProjectID, call.CorrelationID,
			call.Instance.ID})
	require.JSONEq(t, `{"n":1}`, string(call.Input))
	require.Len(t, call.Members, 3)
	nodes, allocations := map[string]bool{}, map[string]bool{}
	for _, one := range call.Members {
		nodes[one.Node.ID], allocations[one.Node.AllocationID] = true, true
	}
	require.Equal(t, map[string]bool{string(*b.one.NodeID): true, string(*b.two.NodeID): true}, nodes)
	require.Equal(t, map[string]bool{string(b.one.ID): true, string(b.two.ID): true}, allocations)
	require.Equal(t, 1, b.Count("app_instance_event", "type = $1 AND payload ->> 'action' = 'queue.submit'",
		lifecycle.EventActionInvoked))
	require.Equal(t, 1, b.Count("audit_entry", "allowed AND permission_key = 'apps.queue.submit' AND object_id = $1",
		started.Instance.ID))

	_, err = b.service.InvokeAction(b.ctx, instance.ActionInput{InstanceID: started.Instance.ID, Action: "queue.read",
		IdempotencyKey: "r"})
	require.NoError(t, err)
	require.JSONEq(t, `{}`, string(b.standIn.Actions[1].Input), "no input is the empty object")
	require.Equal(t, 1, b.Count("app_instance_event", "type = $1", lifecycle.EventActionInvoked),
		"reading is not told on the timeline")
}

// A console reads a queue every few seconds for hours: neither audit nor stored answers may grow with that.
func TestWhoeverWatchesIsInTheAuditOnceInTenMinutes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.running()
	b.standIn.Act = platformtest.Outputs(`{}`)
	reads := 0
	read := func(ctx context.Context, reason string) int {
		t.Helper()
		reads++
		_, err := b.service.InvokeAction(ctx, instance.ActionInput{InstanceID: started.Instance.ID,
			Action: "queue.read", Reason: reason, IdempotencyKey: "r" + strconv.Itoa(reads)})
		require.NoError(t, err)
		require.Len(t, b.standIn.Actions, reads, "each read is one")
		return b.Count("audit_entry", "allowed AND action = 'invokeAction queue.read'")
	}
	require.Equal(t, 1, read(b.ctx, ""))
	for range 3 {
		read(b.ctx, "")
	}
	noted := read(b.ctx, "")
	require.LessOrEqual(t, noted, 2, "two, where ten minutes end meanwhile")
	require.Greater(t, read(b.As(b.User(b.tenant, platformtest.In(authz.ProjectMember, b.project))), ""), noted,
		"somebody else is somebody else")
	noted = read(b.ctx, "")
	require.Equal(t, noted+1, read(b.ctx, "an inquiry"), "a reason is kept")
	require.Zero(t, b.Count("idempotency", "result ? 'output'"), "what was read is not kept")

	b.standIn.Act = func() (int, string) { return http.StatusServiceUnavailable, `{"code":"BUSY","message":"not now"}` }
	for i := range 4 {
		_, err := b.service.InvokeAction(b.ctx, instance.ActionInput{InstanceID: started.Instance.ID,
			Action: "queue.read", IdempotencyKey: "failing" + strconv.Itoa(i)})
		platformtest.Refused(t, err, fault.AdapterUnavailable, "")
	}
	failed := b.Count("audit_entry", "allowed AND code = $1 AND action = 'invokeAction queue.read'",
		fault.AdapterUnavailable)
	require.GreaterOrEqual(t, failed, 1)
	require.LessOrEqual(t, failed, 2, "two, where a minute ends meanwhile")
}

func TestARepeatedActionGetsTheStoredAnswerWhateverHasHappenedSince(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.running()
	_, err := b.service.InvokeAction(b.ctx, submit(started))
	require.NoError(t, err)
	b.standIn.Act = func() (int, string) {
		return http.StatusInternalServerError, `{"code":"TWICE","message":"asked twice"}`
	}
	before := b.written()
	again, err := b.service.InvokeAction(b.ctx, submit(started))
	require.NoError(t, err)
	require.JSONEq(t, `{"id":7}`, string(again.Output))
	b.SQL(`UPDATE instance SET status = 'STOPPING'`)
	again, err = b.service.InvokeAction(b.ctx, submit(started))
	require.NoError(t, err, "although the instance does not run any more")
	require.JSONEq(t, `{"id":7}`, string(again.Output))
	other := submit(started)
	other.Input = json.RawMessage(`{"n":2}`)
	_, err = b.service.InvokeAction(b.ctx, other)
	platformtest.Refused(t, err, fault.IdempotencyKeyReused, "input.idempotencyKey")
	require.Equal(t, before, b.written())
	require.Len(t, b.standIn.Actions, 1)
}

func TestWhenTheAdapterFailsTheCallerLearnsHowAndMayAskAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.running()
	for _, failure := range []struct {
		status        int
		body          string
		code          fault.Code
		message, path string
	}{
		{http.StatusUnprocessableEntity, `{"code":"CLOSED","message":"the queue is closed","path":"input.n"}`,
			fault.AdapterRejected, "the queue is closed", "input.n"},
		{http.StatusUnprocessableEntity, `{"code":"INVALID_ARGUMENT","message":"n must be even","path":"input.n"}`,
			fault.InvalidArgument, "n must be even", "input.n"},
		{http.StatusServiceUnavailable, `{"code":"BUSY","message":"nobody answers"}`, fault.AdapterUnavailable,
			"nobody answers", ""},
		{http.StatusOK, `no JSON`, fault.AdapterInvalid, "", ""},
	} {
		b.standIn.Act = func() (int, string) { return failure.status, failure.body }
		_, err := b.service.InvokeAction(b.ctx, submit(started))
		platformtest.Refused(t, err, failure.code, failure.path)
		require.Contains(t, fault.From(err).Message, failure.message)
	}
	for _, answer := range []string{`{"id":"seven"}`, `{}`, `[]`, `null`, ``, `{`} {
		b.standIn.Act = platformtest.Outputs(answer)
		_, err := b.service.InvokeAction(b.ctx, submit(started))
		platformtest.Refused(t, err, fault.AdapterInvalid, "")
	}
	require.Zero(t, b.Count("app_instance_event", "type = $1", lifecycle.EventActionInvoked))
	require.Equal(t, 1, b.Count("audit_entry", "allowed AND code = '' AND permission_key = 'apps.queue.submit'"),
		"one accepted attempt, however often it is asked again")
	for code, times := range map[fault.Code]int{fault.AdapterRejected: 1, fault.InvalidArgument: 1,
		fault.AdapterUnavailable: 1, fault.AdapterInvalid: 7} {
		require.Equal(t, times, b.Count("audit_entry",
			"allowed AND code = $1 AND action = 'invokeAction queue.submit'", code),
			"each failure has its entry: %s", code)
	}
	b.standIn.Act = platformtest.Outputs(`{"id":8}`)
	out, err := b.service.InvokeAction(b.ctx, submit(started))
	require.NoError(t, err)
	require.JSONEq(t, `{"id":8}`, string(out.Output))
	for _, call := range b.standIn.Actions {
		require.Equal(t, "k", call.IdempotencyKey)
	}
}

func TestAnAnswerIsKeptThoughItsCallerHasGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.running()
	ctx, cancel := context.WithCancel(b.ctx)
	// The caller goes once the whole answer is here: its connection is given back before the client returns it.
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{PutIdleConn: func(error) { cancel() }})
	_, err := b.service.InvokeAction(traced, submit(started))
	require.NoError(t, err)
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	require.Equal(t, 1, b.Count("idempotency", "result -> 'output' ->> 'id' = '7'"))
}

func TestRefusedActionsNeverReachTheAdapter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.running()
	viewer := b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project)))
	stranger := b.As(b.User(b.Tenant()))
	_, blind := b.ServiceAccount(b.project, authz.AllocationRead)
	with := func(change func(*instance.ActionInput)) instance.ActionInput {
		in := submit(started)
		change(&in)
		return in
	}
	input := func(text string) instance.ActionInput {
		return with(func(in *instance.ActionInput) { in.Input = json.RawMessage(text) })
	}
	unknown := with(func(in *instance.ActionInput) { in.Action = "queue.burn" })
	before := b.written()
	for name, c := range map[string]struct {
		ctx  context.Context
		in   instance.ActionInput
		code fault.Code
		path string
	}{
		"without the action's key": {viewer, submit(started), fault.Forbidden, ""},
		"another tenant":           {stranger, submit(started), fault.NotFound, ""},
		"unknown instance": {b.ctx, with(func(in *instance.ActionInput) { in.InstanceID = ids.New(ids.Instance) }),
			fault.NotFound, ""},
		"unknown action":         {b.ctx, unknown, fault.NotFound, "input.action"},
		"unknown action, unseen": {b.With(blind), unknown, fault.Forbidden, ""},
		"input: missing":         {b.ctx, input(`{}`), fault.InvalidArgument, "input.n"},
		"input: wrong type":      {b.ctx, input(`{"n":"x"}`), fault.InvalidArgument, "input.n"},
		"input: no object":       {b.ctx, input(`[]`), fault.InvalidArgument, "input"},
		"input: too big": {b.ctx, input(`{"n":1,"x":"` + long(256<<10) + `"}`), fault.InvalidArgument,
			"input"},
		"no key": {b.ctx, with(func(in *instance.ActionInput) { in.IdempotencyKey = "" }),
			fault.InvalidArgument, "input.idempotencyKey"},
	} {
		_, err := b.service.InvokeAction(c.ctx, c.in)
		require.True(t, fault.Is(err, c.code), "%s: %v", name, err)
		platformtest.Refused(t, err, c.code, c.path)
	}
	b.SQL(`UPDATE instance SET status = 'STOPPING'`)
	_, err := b.service.InvokeAction(b.ctx, submit(started))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.instanceId")
	require.Equal(t, before, b.written())
	require.Empty(t, b.standIn.Actions)
	require.NotEmpty(t, b.denials("apps.queue.submit"))
}
