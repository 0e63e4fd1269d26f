package reconcile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dboperation "github.com/gpuaas/app-platform/ent/generated/db/operation"
)

// drained puts the lab's node under drain.
func (l *lab) drained() {
	l.SQL(`UPDATE compute_node SET cordoned = true, drain = jsonb_build_object('since', now(), 'by', 'Olga', 'reason',
		'firmware', 'deadlineSeconds', 600,
		'force', false, 'ending', false) WHERE id = $1`, l.node.ID)
}

func (l *lab) newest(of *db.Instance, kind lifecycle.OperationKind) *db.Operation {
	found := l.Ent.Operation.Query().Where(dboperation.InstanceID(of.ID), dboperation.KindEQ(kind)).AllX(l.Context())
	if len(found) == 0 {
		return nil
	}
	return found[len(found)-1]
}

func TestADrainOfANodeIsADrainOfEachMemberAndIsTakenBack(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	instance := l.running()
	member := l.member(instance)
	busy := l.running()
	l.SQL(`UPDATE instance SET status = 'STOPPING' WHERE id = $1`, busy.ID)
	l.drained()
	l.reconcile()
	var op *db.Operation
	l.until("the member is drained", func() bool { op = l.newest(instance, lifecycle.MemberDrain); return op != nil })
	require.Equal(t, []any{"SYSTEM", "drain of a node", "node " + l.node.Name + " is drained by Olga: firmware"},
		[]any{op.RequesterKind, op.RequesterName, op.Reason})
	require.Equal(t, member.ID, op.Targets[0])
	require.NotEmpty(t, op.CorrelationID)
	require.Equal(t, 1, l.Count("audit_entry", "action = 'drainMember' AND object_id = $1", member.ID))
	require.Nil(t, l.newest(busy, lifecycle.MemberDrain), "what is torn down anyway is let be")
	l.until("the drain remembers it", func() bool {
		return l.Count("compute_node", "id = $1 AND drain -> 'drained' ? $2", l.node.ID, member.ID) == 1
	})
	l.SQL(`UPDATE operation SET state = 'RUNNING' WHERE id = $1`, op.ID)
	l.SQL(`UPDATE operation SET state = 'SUCCEEDED', ended_at = now() WHERE id = $1`, op.ID)
	l.SQL(`UPDATE member SET status = 'DRAINING' WHERE id = $1`, member.ID)
	l.SQL(`UPDATE member SET status = 'DRAINED' WHERE id = $1`, member.ID)
	l.SQL(`UPDATE compute_node SET cordoned = false, drain = drain || '{"ending": true}' WHERE id = $1`, l.node.ID)
	var back *db.Operation
	l.until("the member takes work again", func() bool {
		back = l.newest(instance,
			lifecycle.MemberUncordon)
		return back != nil
	})
	require.Equal(t, member.ID, back.Targets[0])
	l.until("the drain is over", func() bool {
		return l.Count("compute_node", "id = $1 AND drain IS NULL",
			l.node.ID) == 1
	})
	require.Equal(t, 1, l.Count("operation", "instance_id = $1 AND kind = 'MEMBER_DRAIN'", instance.ID), "once")
}

func TestWhatCannotBeDrainedIsKeptWithItsReason(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	instance := l.running()
	member := l.member(instance)
	l.SQL(`UPDATE adapter SET description = jsonb_build_object('apps', jsonb_build_array(jsonb_build_object('slug',
		$1::text, 'operations',
		'["instance.create"]'::jsonb)))`, l.app.Slug)
	l.drained()
	l.reconcile()
	l.until("the refusal is kept", func() bool {
		return l.Count("compute_node", "id = $1 AND drain -> 'refused' -> $2 ->> 'code' = 'INCOMPATIBLE'", l.node.ID,
			member.ID) == 1
	})
	require.Nil(t, l.newest(instance, lifecycle.MemberDrain))
}

func TestAMachineThatIsLostForGoodFailsWhatWasOnIt(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	instance := l.running()
	member, free := l.member(instance), l.Allocation(l.project, l.node)
	l.silence(l.node.ID, 0)
	l.SQL(`UPDATE compute_node SET status = 'OFFLINE' WHERE id = $1 AND status = 'ONLINE'`, l.node.ID)
	l.SQL(`UPDATE compute_node SET status = 'RETIRED', lost = true WHERE id = $1`, l.node.ID)
	l.reconcile()
	l.until("the member is lost", func() bool { return l.member(instance).Status == lifecycle.MemberFailed })
	require.Equal(t, 1, l.Count("app_instance_event", "type = 'apps.instance.member_failed' AND member_id = $1",
		member.ID))
	l.until("so is what was rented there", func() bool {
		return l.Count("allocation", "id = ANY ($1) AND status = 'FAILED'",
			[]ids.ID{*member.AllocationID, free.ID}) == 2
	})
	const told = "type = 'apps.allocation.failed' AND message LIKE '%is lost for good'"
	require.Equal(t, 1, l.Count("app_instance_event", told+" AND instance_id = $1 AND allocation_id IS NULL",
		instance.ID))
	require.Equal(t, 1, l.Count("app_instance_event",
		told+" AND instance_id IS NULL AND allocation_id = $1 AND seq = 1 "+
			"AND permission_family = 'allocation'", free.ID), "what nobody used is told in the project's feed")
}
