package workers_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbevent "github.com/gpuaas/app-platform/ent/generated/db/event"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/ent/generated/db/nodetask"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

const dirty = `{"residue":{"sandbox":true,"processes":[{"pid":42,"command":"left-behind"}],"mounts":["/x"],"files":1,"bytes":3,"names":["/x/y"]}}`

// running brings an instance up and answers it.
func (l *lab) running(name string) launched {
	l.Helper()
	it := l.launch(l.world(name, l.kit(name, joins)), time.Minute)
	op := l.ended(it.create)
	require.Equal(l.TB, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	return it
}

func TestWhatTheAdapterLeftIsTornDownByThePlatformAndSaidSo(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	it := l.running("messy")
	torn := map[ids.ID]bool{}
	l.answering(func(task *db.NodeTask) (lifecycle.NodeTaskState, string) {
		switch {
		case task.Kind == lifecycle.TaskTeardown:
			torn[task.MemberID] = true
		case !torn[task.MemberID] && task.MemberID == it.members[0]:
			return lifecycle.TaskSucceeded, dirty
		}
		return healthy(task)
	})
	op := l.ended(l.decommission(it, time.Minute))
	require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	require.Len(t, torn, 1, "only the member that left something")
	var evidence struct {
		Rounds  int
		Residue []struct {
			Member    ids.ID
			Teardowns []ids.ID
			Report    struct{ Sandbox bool }
		}
	}
	require.NoError(t, json.Unmarshal(op.Evidence, &evidence))
	require.Equal(t, 2, evidence.Rounds)
	require.Len(t, evidence.Residue, 2)
	for _, proof := range evidence.Residue {
		require.False(t, proof.Report.Sandbox)
		require.Equal(t, proof.Member == it.members[0], len(proof.Teardowns) == 1)
	}
}

func TestResidueThatStaysFailsTheDecommissionAndItCanBeAskedForAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	it := l.running("stuck")
	l.answering(func(task *db.NodeTask) (lifecycle.NodeTaskState, string) {
		if task.Kind == lifecycle.TaskTeardown {
			return lifecycle.TaskFailed, dirty
		}
		return lifecycle.TaskSucceeded, dirty
	})
	down := l.decommission(it, time.Minute)
	l.until("it says what is left", func() bool { return strings.Contains(l.op(down).Message, "left-behind") })
	l.expire(down)
	op := l.ended(down)
	require.Equal(t, "RESIDUE_LEFT", op.ErrorCode)
	require.Equal(t, "node", op.ErrorOwner)
	require.True(t, op.ErrorRetryable)
	require.Contains(t, op.ErrorMessage, "left-behind")
	instance := l.own.Instance.GetX(t.Context(), it.instance)
	require.Equal(t, lifecycle.InstanceStopping, instance.Status)
	require.Nil(t, instance.ReleasedAt)
	require.NotNil(t, l.own.Allocation.GetX(t.Context(), it.allocation).InstanceID)

	l.answering(healthy)
	require.Equal(t, lifecycle.OperationSucceeded, l.ended(l.decommission(it, time.Minute)).State)
	require.NotNil(t, l.own.Instance.GetX(t.Context(), it.instance).ReleasedAt)
}

func TestNothingIsProvedWhileAnEarlierTaskCouldBringTheMemberBack(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	it := l.running("busy")
	lagging := ids.New(ids.NodeTask)
	asked, slow := make(chan struct{}), make(chan struct{})
	var once sync.Once
	l.answering(func(task *db.NodeTask) (lifecycle.NodeTaskState, string) {
		if task.ID != lagging {
			return healthy(task)
		}
		if !task.CancelRequested {
			return "", ""
		}
		once.Do(func() { close(asked) })
		select {
		case <-slow:
			return lifecycle.TaskCanceled, `{}`
		default:
			return "", ""
		}
	})
	member := l.own.Member.GetX(t.Context(), it.members[0])
	l.own.NodeTask.Create().SetID(lagging).SetTenantID(member.TenantID).SetProjectID(member.ProjectID).
		SetInstanceID(it.instance).
		SetMemberID(member.ID).SetNodeID(it.node).SetOperationID(it.create).SetKind(lifecycle.TaskRun).
		SetSpec(json.RawMessage(`{}`)).
		SetSpecDigest([]byte("x")).SetState(lifecycle.TaskRunning).SetTimeoutSeconds(60).SetIdempotencyKey("k").
		SetCreatedAt(time.Now()).
		SaveX(t.Context())
	down := l.decommission(it, time.Minute)
	select {
	case <-asked:
	case <-time.After(30 * time.Second):
		require.Fail(t, "the task was not asked to end")
	}
	l.until("the operation says what it waits for", func() bool {
		return l.op(down).Message == "waits for earlier node tasks to end: 1"
	})
	residue := nodetask.And(nodetask.InstanceID(it.instance), nodetask.KindEQ(lifecycle.TaskResidue))
	require.Zero(t, l.own.NodeTask.Query().Where(residue).CountX(t.Context()), "nobody looks yet")
	close(slow)
	op := l.ended(down)
	require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	ended := l.own.NodeTask.GetX(t.Context(), lagging).EndedAt
	for _, task := range l.own.NodeTask.Query().Where(residue).AllX(t.Context()) {
		require.False(t, task.CreatedAt.Before(*ended))
	}
}

func TestSilentAgentFailsTheDecommissionByName(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	it := l.running("gone")
	l.answering(func(*db.NodeTask) (lifecycle.NodeTaskState, string) { return "", "" })
	l.own.ComputeNode.UpdateOneID(it.node).SetStatus(lifecycle.NodeOffline).ExecX(t.Context())
	down := l.decommission(it, time.Minute)
	l.until("it says which node is silent", func() bool { return strings.Contains(l.op(down).Message, "node-gone") })
	l.expire(down)
	op := l.ended(down)
	require.Equal(t, "NODE_UNREACHABLE", op.ErrorCode)
	require.Equal(t, "node", op.ErrorOwner)
	require.Contains(t, op.ErrorMessage, "node-gone")
}

func TestDecommissionDuringALaunchTakesItsPlace(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("early")
	l.work()
	it := l.launch(l.world("early", s.url), time.Minute)
	s.dispatched(string(it.create))
	down := l.teardown(it)
	require.Equal(t, "SUPERSEDED", l.op(it.create).ErrorCode)
	s.succeed(string(down), s.dispatched(string(down))[0].Attempt)
	op := l.ended(down)
	require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	require.Equal(t, lifecycle.OperationCanceled, l.op(it.create).State)
	s.mu.Lock()
	require.Equal(t, []string{string(it.create)}, s.cancels, "the launch is canceled at the adapter first")
	s.mu.Unlock()
	require.Equal(t, lifecycle.InstanceStopped, l.own.Instance.GetX(t.Context(), it.instance).Status)
	require.Equal(t, 2, l.own.Member.Query().Where(dbmember.InstanceID(it.instance),
		dbmember.StatusEQ(lifecycle.MemberRemoved)).CountX(t.Context()))
	require.Equal(t, 2, l.own.NodeTask.Query().Where(nodetask.InstanceID(it.instance),
		nodetask.KindEQ(lifecycle.TaskResidue)).CountX(t.Context()),
		"a member that never joined is looked for all the same")
	var steps []struct{ Superseded []struct{ Outcome string } }
	for _, step := range l.steps(down) {
		if step.Name == "dispatch" {
			var evidence struct{ Superseded []struct{ Outcome string } }
			require.NoError(t, json.Unmarshal(step.Evidence, &evidence))
			steps = append(steps, evidence)
		}
	}
	require.Equal(t, "canceled", steps[0].Superseded[0].Outcome)
}

// teardown requests a decommission as the verbs do.
func (l *lab) teardown(it launched) ids.ID {
	l.Helper()
	id := ids.New(ids.Operation)
	err := l.db.As(context.Background(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
		row, err := t.Instance.Get(ctx, it.instance)
		if err != nil {
			return err
		}
		t.Request.CorrelationID = "corr"
		_, err = operation.Teardown(ctx, t, row, operation.Draft{ID: id, DeadlineSeconds: 60})
		return err
	})
	require.NoError(l.TB, err)
	return id
}

func TestReleaseStopsTheInstanceFirst(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	it := l.running("rented")
	down := l.teardown(it)
	release := l.release(it.world)
	op := l.ended(release)
	require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	require.False(t, op.EndedAt.Before(*l.op(down).EndedAt))
	allocation := l.own.Allocation.GetX(t.Context(), it.allocation)
	require.Equal(t, lifecycle.AllocationReleased, allocation.Status)
	l.once(it, "apps.allocation.released")
	require.NotNil(t, allocation.ReleasedAt)
	var evidence struct{ Members []struct{ Task string } }
	require.NoError(t, json.Unmarshal(op.Evidence, &evidence))
	require.Len(t, evidence.Members, 2)
	require.NotEmpty(t, evidence.Members[0].Task)
}

func TestReleaseFailsWithTheTeardownItWaitsFor(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	it := l.running("kept")
	l.answering(func(*db.NodeTask) (lifecycle.NodeTaskState, string) { return lifecycle.TaskSucceeded, dirty })
	down := l.decommission(it, 10*time.Second) // enough to find the residue on a busy machine
	op := l.ended(l.release(it.world))
	require.Equal(t, lifecycle.OperationFailed, op.State)
	require.Equal(t, "RESIDUE_LEFT", op.ErrorCode)
	require.Contains(t, op.ErrorMessage, string(down))
	require.Equal(t, lifecycle.AllocationReleasing, l.own.Allocation.GetX(t.Context(), it.allocation).Status)
}

func TestUnusedAllocationIsReleasedAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	w := l.world("unused", "http://127.0.0.1:1")
	op := l.ended(l.release(w))
	require.Equal(t, lifecycle.OperationSucceeded, op.State)
	require.Equal(t, lifecycle.AllocationReleased, l.own.Allocation.GetX(t.Context(), w.allocation).Status)
	told := l.own.Event.Query().Where(dbevent.AllocationID(w.allocation)).OnlyX(t.Context())
	require.Equal(t, []any{"apps.allocation.released", op.ID, 1}, []any{told.Type, *told.OperationID, told.Seq})
	require.Nil(t, told.InstanceID)
}

// release requests the release of a world's allocation, as its verb does.
func (l *lab) release(w world) ids.ID {
	l.Helper()
	id := ids.New(ids.Operation)
	l.own.Allocation.UpdateOneID(w.allocation).SetStatus(lifecycle.AllocationReleasing).SetReleaseOperationID(id).
		ExecX(l.Context())
	l.own.Operation.Create().SetID(id).SetTenantID(w.tenant).SetProjectID(w.project).SetAllocationID(w.allocation).
		SetKind(lifecycle.AllocationRelease).SetState(lifecycle.OperationPending).SetRequesterKind("USER").
		SetRequesterID("usr_1").
		SetCorrelationID("corr").SetDeadline(time.Now().Add(time.Minute)).SaveX(l.Context())
	l.hub.Wake(event.QueueTopic)
	return id
}
