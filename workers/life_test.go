package workers_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	dbevent "github.com/gpuaas/app-platform/ent/generated/db/event"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	dbstep "github.com/gpuaas/app-platform/ent/generated/db/operationstep"
)

func TestInstanceComesUpAndLeavesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	it := l.launch(l.world("kit", l.kit("kit", joins)), time.Minute)
	op := l.ended(it.create)
	require.Equal(t, lifecycle.OperationSucceeded, op.State, "%s %s", op.ErrorCode, op.ErrorMessage)
	require.Equal(t, 100, op.Percent)
	require.Equal(t, 1, op.DispatchAttempt)

	instance := l.own.Instance.GetX(t.Context(), it.instance)
	require.Equal(t, lifecycle.InstanceRunning, instance.Status)
	require.Equal(t, lifecycle.HealthHealthy, instance.Health, "the adapter's word on its members")
	require.JSONEq(t,
		`[{"componentKey":"peer","displayName":"Peer","desired":2,"current":2,"healthy":2,"summary":"2 of 2 active"}]`,
		string(instance.Roles))
	var evidence struct {
		Probes  []struct{ Task, Member, Probe string }
		Adapter map[string]any
	}
	require.NoError(t, json.Unmarshal(op.Evidence, &evidence))
	require.Len(t, evidence.Probes, 2, "one probe on each member")
	require.EqualValues(t, 2, evidence.Adapter["peers"])
	require.Equal(t, []string{"apps.operation.started", "apps.instance.starting"}, l.told(it)[:2])
	require.Subset(t, l.told(it), []string{"apps.instance.start_completed", "apps.instance.running",
		"apps.operation.succeeded"})
	for _, step := range l.own.OperationStep.Query().Where(dbstep.OperationID(op.ID)).AllX(t.Context()) {
		require.Equal(t, lifecycle.StepSucceeded, step.State, step.Name)
	}

	gone := l.ended(l.decommission(it, time.Minute))
	require.Equal(t, lifecycle.OperationSucceeded, gone.State, "%s %s", gone.ErrorCode, gone.ErrorMessage)
	instance = l.own.Instance.GetX(t.Context(), it.instance)
	require.Equal(t, lifecycle.InstanceStopped, instance.Status)
	require.NotNil(t, instance.ReleasedAt)
	require.Nil(t, l.own.Allocation.GetX(t.Context(), it.allocation).InstanceID)
	require.Equal(t, 2, l.own.Member.Query().Where(dbmember.InstanceID(it.instance),
		dbmember.StatusEQ(lifecycle.MemberRemoved)).CountX(t.Context()))
	var proof struct {
		Residue []struct{ Member, Task string }
	}
	require.NoError(t, json.Unmarshal(gone.Evidence, &proof))
	require.Len(t, proof.Residue, 2, "the agents' word on each member")
	require.Contains(t, l.told(it), "apps.instance.deleted")
}

// told lists the types of the instance's events, in order, without mere progress.
func (l *lab) told(it launched) []string {
	var types []string
	for i, one := range l.own.Event.Query().Where(dbevent.InstanceID(it.instance)).Order(dbevent.BySeq()).
		AllX(l.Context()) {
		require.Equal(l.TB, i+1, one.Seq, "no gaps")
		if one.Type != string(lifecycle.EventOperationProgress) {
			types = append(types, one.Type)
		}
	}
	return types
}
