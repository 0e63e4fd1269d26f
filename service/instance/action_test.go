package instance_test

import (
	"context"
	"encoding/json"
	"errors"
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
	b.actions.answer = func(instance.ActionCall) (json.RawMessage, error) { return json.RawMessage(`{"id":7}`), nil }
	return started
}

func submit(of *instance.Started) instance.ActionInput {
	return instance.ActionInput{InstanceID: of.Instance.ID, Action: "queue.submit", Input: json.RawMessage(`{"n":1}`), IdempotencyKey: "k"}
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
	require.Len(t, b.actions.calls, 1)
	call := b.actions.calls[0]
	require.Equal(t, []any{b.adapter.Name, b.adapter.URL, "queue.submit", "k", string(member.ID), out.CorrelationID},
		[]any{call.AdapterName, call.AdapterURL, call.Action, call.IdempotencyKey, call.Requester.ID, call.CorrelationID})
	require.JSONEq(t, `{"n":1}`, string(call.Input))
	require.Len(t, call.Members, 3)
	require.Len(t, call.Nodes, 2)
	require.Len(t, call.Allocations, 2)
	require.Equal(t, 1, b.Count("app_instance_event", "type = $1 AND payload ->> 'action' = 'queue.submit'", lifecycle.EventActionInvoked))
	require.Equal(t, 1, b.Count("audit_entry", "allowed AND permission_key = 'apps.queue.submit' AND object_id = $1", started.Instance.ID))

	_, err = b.service.InvokeAction(b.ctx, instance.ActionInput{InstanceID: started.Instance.ID, Action: "queue.read", IdempotencyKey: "r"})
	require.NoError(t, err)
	require.JSONEq(t, `{}`, string(b.actions.calls[1].Input), "no input is the empty object")
	require.Equal(t, 1, b.Count("app_instance_event", "type = $1", lifecycle.EventActionInvoked), "reading is not told on the timeline")
}

func TestARepeatedActionGetsTheStoredAnswerWhateverHasHappenedSince(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.running()
	_, err := b.service.InvokeAction(b.ctx, submit(started))
	require.NoError(t, err)
	b.actions.answer = func(instance.ActionCall) (json.RawMessage, error) { return nil, errors.New("asked twice") }
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
	refused(t, err, fault.IdempotencyKeyReused, "input.idempotencyKey")
	require.Equal(t, before, b.written())
	require.Len(t, b.actions.calls, 1)
}

func TestWhenTheAdapterFailsTheCallerLearnsHowAndMayAskAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.running()
	for _, failure := range []error{
		fault.New(fault.AdapterRejected, "the queue is closed").At("input.n"), fault.New(fault.AdapterUnavailable, "nobody answers"),
		fault.New(fault.AdapterInvalid, "no JSON"),
	} {
		b.actions.answer = func(instance.ActionCall) (json.RawMessage, error) { return nil, failure }
		_, err := b.service.InvokeAction(b.ctx, submit(started))
		require.ErrorIs(t, err, failure)
	}
	for _, answer := range []string{`{"id":"seven"}`, `{}`, `[]`, `null`, ``, `{`} {
		b.actions.answer = func(instance.ActionCall) (json.RawMessage, error) { return json.RawMessage(answer), nil }
		_, err := b.service.InvokeAction(b.ctx, submit(started))
		refused(t, err, fault.AdapterInvalid, "")
	}
	require.Zero(t, b.Count("app_instance_event", "type = $1", lifecycle.EventActionInvoked))
	require.Equal(t, 1, b.Count("audit_entry", "allowed AND permission_key = 'apps.queue.submit'"), "one accepted attempt, however often it is asked again")
	b.actions.answer = func(instance.ActionCall) (json.RawMessage, error) { return json.RawMessage(`{"id":8}`), nil }
	out, err := b.service.InvokeAction(b.ctx, submit(started))
	require.NoError(t, err)
	require.JSONEq(t, `{"id":8}`, string(out.Output))
	for _, call := range b.actions.calls {
		require.Equal(t, "k", call.IdempotencyKey)
	}
}

func TestAnAnswerIsKeptThoughItsCallerHasGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.running()
	ctx, cancel := context.WithCancel(b.ctx)
	b.actions.answer = func(instance.ActionCall) (json.RawMessage, error) {
		cancel()
		return json.RawMessage(`{"id":7}`), nil
	}
	_, err := b.service.InvokeAction(ctx, submit(started))
	require.NoError(t, err)
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
		"unknown instance":         {b.ctx, with(func(in *instance.ActionInput) { in.InstanceID = ids.New(ids.Instance) }), fault.NotFound, ""},
		"unknown action":           {b.ctx, unknown, fault.NotFound, "input.action"},
		"unknown action, unseen":   {b.With(blind), unknown, fault.Forbidden, ""},
		"input: missing":           {b.ctx, input(`{}`), fault.InvalidArgument, "input.input.n"},
		"input: wrong type":        {b.ctx, input(`{"n":"x"}`), fault.InvalidArgument, "input.input.n"},
		"input: no object":         {b.ctx, input(`[]`), fault.InvalidArgument, "input.input"},
		"input: too big":           {b.ctx, input(`{"n":1,"x":"` + long(256<<10) + `"}`), fault.InvalidArgument, "input.input"},
		"no key":                   {b.ctx, with(func(in *instance.ActionInput) { in.IdempotencyKey = "" }), fault.InvalidArgument, "input.idempotencyKey"},
	} {
		_, err := b.service.InvokeAction(c.ctx, c.in)
		require.True(t, fault.Is(err, c.code), "%s: %v", name, err)
		refused(t, err, c.code, c.path)
	}
	b.SQL(`UPDATE instance SET status = 'STOPPING'`)
	_, err := b.service.InvokeAction(b.ctx, submit(started))
	refused(t, err, fault.FailedPrecondition, "input.instanceId")
	require.Equal(t, before, b.written())
	require.Empty(t, b.actions.calls)
	require.NotEmpty(t, b.denials("apps.queue.submit"))
}
