package server

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// The plan of a harmless drain is shown to somebody, and its hash is sent with force at the deadline: over the API,
// with the caller's own session, that is another change, which no one has seen.
func TestTheHashOfAHarmlessPlanDoesNotAuthoriseForce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.build()
	b.SQL(`UPDATE operation SET state = 'SUCCEEDED', ended_at = now() WHERE ended_at IS NULL`)
	plan := func(input object) (out struct {
		Hash, OnDeadline string
		DeadlineSeconds  int
	}) {
		input["memberId"] = h.Member
		got := b.post(h.admin,
			`query($input: PlanMemberInput!) { plan: planDrainMember(input: $input) { hash onDeadline deadlineSeconds } }`,
			arguments{"input": input})
		require.Empty(t, got.Errors, got.Raw)
		var data struct{ Plan json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(got.Data), &data))
		require.NoError(t, json.Unmarshal(data.Plan, &out))
		return out
	}
	drain := func(hash string, input object) answer {
		input["memberId"], input["planHash"], input["reason"], input["idempotencyKey"] = h.Member, hash, "r", "k"
		return b.post(h.admin,
			`mutation($input: DrainMemberInput!) { drainMember(input: $input) { operation { id onDeadline } } }`,
			arguments{"input": input})
	}
	harmless := plan(object{})
	require.Equal(t, []any{"FAIL", 3600}, []any{harmless.OnDeadline, harmless.DeadlineSeconds})
	before := b.Count("operation", "")
	for _, attack := range []object{
		{"onDeadline": "FORCE", "deadlineSeconds": 30}, {"onDeadline": "FORCE"}, {"deadlineSeconds": 30},
		{"force": true},
	} {
		got := drain(harmless.Hash, attack)
		require.Equal(t, string(fault.PlanStale), got.code(), got.Raw)
		require.Contains(t, got.paths(), "input.planHash")
	}
	require.Equal(t, before, b.Count("operation", ""), "nothing was written")

	seen := plan(object{"onDeadline": "FORCE", "deadlineSeconds": 30})
	require.NotEqual(t, harmless.Hash, seen.Hash)
	got := drain(seen.Hash, object{"onDeadline": "FORCE", "deadlineSeconds": 30})
	require.Empty(t, got.Errors, got.Raw)
	require.Equal(t, 1, b.Count("operation", "on_deadline = $1", lifecycle.DeadlineForce))
}
