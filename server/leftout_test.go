package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
)

// A client writes null where it has nothing to say, and an empty list where it has none: a verb must not see the
// difference, nor may the idempotency key, which is bound to the verb's input.
func TestNullAndAnEmptyListAreTheSameInputAsAFieldLeftOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.build()
	first := b.post(h.admin, launch, launching(h, nil))
	require.Empty(t, first.Errors, first.Raw)
	for name, same := range map[string]object{
		"nulls":       {"version": nil, "components": nil, "config": nil, "reason": nil},
		"empty list":  {"components": []any{}},
		"empty texts": {"version": "", "reason": ""},
		"SDL's default": {"deadlineSeconds": 900, "smoke": false, "operatingMode": "TENANT_DEDICATED",
			"controlPlaneScope": "PROJECT"},
	} {
		got := b.post(h.admin, launch, launching(h, same))
		require.Empty(t, got.Errors, "%s: %s", name, got.Raw)
		require.Equal(t, first.Data, got.Data, name)
	}
}

func TestANullIDIsTheSameInputAsAnIDLeftOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.build()
	plan := `query($input: PlanReplaceMemberInput!) { planReplaceMember(input: $input) { hash } }`
	for _, changes := range []object{{}, {"allocationId": nil, "intent": nil}} {
		changes["memberId"] = h.Member
		got := b.post(h.admin, plan, arguments{"input": changes})
		require.Empty(t, got.Errors, got.Raw)
	}
	replace := `mutation($input: ReplaceMemberInput!) { replaceMember(input: $input) { operation { id } } }`
	for _, changes := range []object{{}, {"allocationId": nil, "intent": nil, "planHash": nil}} {
		changes["memberId"], changes["idempotencyKey"], changes["reason"] = h.Member, "k", "new"
		got := b.post(h.admin, replace, arguments{"input": changes})
		require.Equal(t, string(fault.Conflict), got.code(), "another operation is under way: %s", got.Raw)
	}
	invoke := `mutation($input: InvokeActionInput!) { invokeAction(input: $input) { output } }`
	got := b.post(h.admin, invoke, arguments{"input": object{"instanceId": h.Instance, "action": "queue.burn",
		"projectId": nil, "idempotencyKey": "k"}})
	require.Equal(t, string(fault.NotFound), got.code(), got.Raw)
	require.Contains(t, got.paths(), "input.action", got.Raw)
}
