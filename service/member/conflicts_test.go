package member_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

func TestConflictsNameTheOperationInTheWayBothWays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	drain := b.open(lifecycle.MemberDrain, 0)
	before := b.written()
	_, err := b.service.Cordon(b.admin, b.on(0, "a"))
	platformtest.Refused(t, err, fault.Conflict, "")
	require.Contains(t, fault.From(err).Message, string(drain.ID))
	require.Equal(t, fault.OperationInTheWay, fault.From(err).Reasons[0].Code)
	require.Equal(t, before, b.written())
	_, err = b.service.Cordon(b.admin, b.on(1, "b"))
	require.NoError(t, err, "another member is free")
	_, err = b.service.Add(b.admin, b.add("c", 1, b.one))
	require.NoError(t, err, "new members are free")

	b.SQL(`UPDATE operation SET state = 'CANCELED', ended_at = now() WHERE state = 'PENDING'`)
	b.SQL(`UPDATE operation SET state = 'FAILED', ended_at = now() WHERE ended_at IS NULL`)
	upgrade := b.open(lifecycle.InstanceUpgrade)
	before = b.written()
	for _, v := range verbs {
		v.ready(b)
		_, err := v.call(b, b.admin, b.on(1, "d"))
		platformtest.Refused(t, err, fault.Conflict, "")
		require.Contains(t, fault.From(err).Message, string(upgrade.ID))
		if len(v.status) > 0 {
			b.stands(0, lifecycle.MemberJoining, lifecycle.MemberActive)
		}
	}
	_, err = b.service.Add(b.admin, b.add("e", 1, b.one))
	platformtest.Refused(t, err, fault.Conflict, "")
	require.Equal(t, before, b.written())
}

func TestARemovalSupersedesADrainOfTheSameMember(t *testing.T) {
	t.Parallel()
	b := setup(t)
	mine, other := b.open(lifecycle.MemberDrain, 0), b.open(lifecycle.MemberDrain, 1)
	b.stands(0, lifecycle.MemberDraining)
	plan, err := b.service.PlanRemove(b.admin, b.on(0, ""))
	require.NoError(t, err)
	require.Equal(t, []ids.ID{mine.ID}, plan.SupersedesIDs)
	changed, err := b.service.Remove(b.admin, b.on(0, "k"))
	require.NoError(t, err)
	ended := b.operation(mine.ID)
	require.Equal(t, []any{lifecycle.OperationCanceled, operation.Superseded, true},
		[]any{ended.State, ended.ErrorCode, ended.EndedAt != nil})
	require.Equal(t, lifecycle.OperationRunning, b.operation(other.ID).State)
	require.Equal(t, []ids.ID{mine.ID}, operation.PrivateOf(b.operation(changed.Operation.ID)).Supersedes)
	require.Equal(t, lifecycle.MemberDraining, b.Ent.Member.GetX(t.Context(), b.members[0].ID).Status)
	require.Equal(t, 1, b.Count("app_instance_event", "type = $1 AND operation_id = $2",
		lifecycle.EventOperationCanceled, mine.ID))
}
