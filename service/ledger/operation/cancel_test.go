package operation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

func TestACancelDoesWhatTheStateAllows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind       lifecycle.OperationKind
		state      lifecycle.OperationState
		dispatched int
		want       lifecycle.OperationState
	}{
		"a drain that never began": {lifecycle.MemberDrain, lifecycle.OperationPending, 0,
			lifecycle.OperationCanceled},
		"an upgrade that never began": {lifecycle.InstanceUpgrade, lifecycle.OperationPending, 0,
			lifecycle.OperationCanceled},
		"an addition that has made members": {lifecycle.MembersAdd, lifecycle.OperationPending, 0,
			lifecycle.OperationCanceling},
		"a replacement that has made one": {lifecycle.MemberReplace, lifecycle.OperationPending, 0,
			lifecycle.OperationCanceling},
		"a removal that has lowered a count": {lifecycle.MemberRemove, lifecycle.OperationPending, 0,
			lifecycle.OperationCanceling},
		"a launch": {lifecycle.InstanceCreate, lifecycle.OperationPending, 0,
			lifecycle.OperationCanceling},
		"a drain under way": {lifecycle.MemberDrain, lifecycle.OperationRunning, 1,
			lifecycle.OperationCanceling},
		"one that was claimed only": {lifecycle.MemberCordon, lifecycle.OperationRunning, 0,
			lifecycle.OperationCanceling},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			op := b.Operation(b.made, c.kind, c.state)
			b.SQL(`UPDATE operation SET dispatch_attempt = $2, next_run_at = now() + interval '1 hour'
				WHERE id = $1`, op.ID,
				c.dispatched)
			stopped, err := operation.Cancel(b.admin, b.DB, op.ID, "not needed")
			require.NoError(t, err)
			stored := b.Ent.Operation.GetX(t.Context(), op.ID)
			require.Equal(t, []any{c.want, c.want, "not needed"},
				[]any{stopped.State, stored.State, stored.CancelReason})
			require.NotNil(t, stored.CancelRequestedAt)
			require.NotEmpty(t, stored.CancelRequester)
			event := lifecycle.EventOperationCanceling
			if c.want == lifecycle.OperationCanceled {
				event = lifecycle.EventOperationCanceled
				require.Equal(t, []any{"CANCELED", op.ClaimEpoch + 1, true},
					[]any{stored.ErrorCode, stored.ClaimEpoch, stored.EndedAt != nil})
			} else {
				require.Nil(t, stored.EndedAt)
				require.Equal(t, 1, b.Count("operation", "next_run_at <= now()"), "a worker looks at it now")
			}
			require.Equal(t, 1, b.Count("app_instance_event", "type = $1 AND operation_id = $2", event, op.ID))
			require.Equal(t, 1, b.Count("audit_entry",
				"allowed AND action = 'cancelOperation' AND permission_key = 'operation.cancel' AND object_id = $1 "+
					"AND reason = 'not needed'", op.ID))
		})
	}
}

func TestACancelUnderWayIsAnsweredAsItStands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, state := range []lifecycle.OperationState{lifecycle.OperationCanceling, lifecycle.OperationCompensating} {
		op := b.Operation(b.made, lifecycle.MembersAdd, state)
		stopped, err := operation.Cancel(b.admin, b.DB, op.ID, "again")
		require.NoError(t, err)
		require.Equal(t, state, stopped.State)
		require.Empty(t, b.Ent.Operation.GetX(t.Context(), op.ID).CancelReason)
	}
	require.Zero(t, b.Count("audit_entry", ""))
	require.Zero(t, b.Count("app_instance_event", ""))
}

func TestCancelsThatCannotBeAreRefusedWithWhatToDoInstead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, state := range []lifecycle.OperationState{lifecycle.OperationSucceeded, lifecycle.OperationFailed,
		lifecycle.OperationCanceled} {
		op := b.Operation(b.made, lifecycle.MemberDrain, state)
		_, err := operation.Cancel(b.admin, b.DB, op.ID, "")
		platformtest.Refused(t, err, fault.FailedPrecondition, "input.operationId")
		require.Contains(t, fault.From(err).Message, string(state))
	}
	for kind, word := range map[lifecycle.OperationKind]string{lifecycle.InstanceDecommission: "launch again",
		lifecycle.AllocationRelease: "capacity again"} {
		op := b.Operation(b.made, kind, lifecycle.OperationRunning)
		_, err := operation.Cancel(b.admin, b.DB, op.ID, "")
		platformtest.Refused(t, err, fault.FailedPrecondition, "input.operationId")
		require.Contains(t, fault.From(err).Message, word)
	}
	open := b.Operation(b.made, lifecycle.MemberDrain, lifecycle.OperationRunning)
	viewer := b.As(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project)))
	_, err := operation.Cancel(viewer, b.DB, open.ID, "")
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, err = operation.Cancel(b.stranger, b.DB, open.ID, "")
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = operation.Cancel(b.admin, b.DB, ids.New(ids.Operation), "")
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = operation.Cancel(b.admin, b.DB, open.ID, string(make([]byte, 1_001)))
	platformtest.Refused(t, err, fault.InvalidArgument, "input.reason")
	require.Equal(t, lifecycle.OperationRunning, b.Ent.Operation.GetX(t.Context(), open.ID).State)
	require.Zero(t, b.Count("app_instance_event", ""))
	require.Zero(t, b.Count("audit_entry", "allowed"))
	require.NotEmpty(t, b.Audit(), "refusals for want of a key are audited")
}

func TestAnOpenOperationShowsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	op := b.Operation(b.made, lifecycle.MemberDrain, lifecycle.OperationRunning)
	read := func() []*operation.Work {
		view, err := operation.Get(b.admin, b.DB, op.ID)
		require.NoError(t, err)
		latest, err := operation.Latest(t.Context(), b.DB, op.ID)
		require.NoError(t, err)
		require.Equal(t, view.WaitsFor(), latest.WaitsFor())
		return view.WaitsFor()
	}
	require.Empty(t, read())
	before, err := operation.Latest(t.Context(), b.DB, op.ID)
	require.NoError(t, err)
	b.SQL(
		`UPDATE operation SET adapter_status = '{"state": "running", "waitsFor": [{"kind": "job", "id": "7", "name": "train", "owner": "ada", "memberId": "mem_1"}]}' WHERE id = $1`, op.ID)
	id := string(b.made.ID) + "/job/mem_1/7"
	require.Equal(t, []*operation.Work{{ID: id, Kind: "job", WorkID: "7", Name: "train", Owner: "ada",
		MemberID: "mem_1"}},
		read())
	after, err := operation.Latest(t.Context(), b.DB, op.ID)
	require.NoError(t, err)
	require.True(t, after.Differs(before), "a watcher is told")
	b.SQL(`UPDATE operation SET adapter_status = '{"waitsFor": "nonsense"}' WHERE id = $1`, op.ID)
	require.Empty(t, read())
	b.SQL(`UPDATE operation SET adapter_status = '{"waitsFor": [{"id": "7"}]}', state = 'SUCCEEDED', ended_at = now()
		WHERE id = $1`, op.ID)
	require.Empty(t, read(), "what has ended waits for nothing")
}

func TestClashesAreByInstanceAndByMember(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two, three := ids.New(ids.Member), ids.New(ids.Member), ids.New(ids.Member)
	replace := b.Operation(b.made, lifecycle.MemberReplace, lifecycle.OperationRunning)
	b.Ent.Operation.UpdateOneID(replace.ID).SetTargets([]ids.ID{one}).SetDesiredChange([]byte(`{"replacementId": "` +
		string(two) + `"}`)).ExecX(t.Context())
	open := b.Ent.Operation.Query().AllX(t.Context())
	for member, blocked := range map[ids.ID]bool{one: true, two: true, three: false} {
		inTheWay, superseded := operation.Clash(lifecycle.MemberRemove, []ids.ID{member}, open)
		require.Equal(t, blocked, inTheWay != nil)
		require.Empty(t, superseded)
	}
	inTheWay, _ := operation.Clash(lifecycle.InstanceUpgrade, nil, open)
	require.Equal(t, replace.ID, inTheWay.ID)
	_, superseded := operation.Clash(lifecycle.InstanceDecommission, nil, open)
	require.Len(t, superseded, 1)
	require.ErrorContains(t, operation.InTheWay(inTheWay), string(replace.ID))
}
