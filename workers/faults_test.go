package workers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbevent "github.com/gpuaas/app-platform/ent/generated/db/event"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

func TestAdapterThatIsDownIsTriedUntilItIsUp(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("down")
	s.with(func() { s.down = true })
	l.work()
	it := l.launch(l.world("down", s.url), time.Minute)
	l.until("the operation says what it waits for", func() bool {
		return l.op(it.create).Failures > 2
	})
	require.Contains(t, l.op(it.create).Message, "closed for repairs")
	require.Contains(t, l.op(it.create).Message, operation.TriedAgain)
	require.Nil(t, l.op(it.create).ClaimedBy, "waiting holds no claim")
	s.with(func() { s.down = false })
	s.succeed(string(it.create), s.dispatched(string(it.create))[0].Attempt)
	require.Equal(t, lifecycle.OperationSucceeded, l.ended(it.create).State)
	s.oneEffect(string(it.create))
	require.Equal(t, 1, l.op(it.create).DispatchAttempt, "a try again is no new dispatch")
	require.LessOrEqual(t, l.own.Event.Query().Where(dbevent.InstanceID(it.instance),
		dbevent.MessageContains("closed for repairs")).CountX(t.Context()), 1,
		"a try again is no event; another reason is")
}

func TestUnreachableAdapterEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	it := l.launch(l.world("dead", "http://127.0.0.1:1"), 5*time.Second)
	op := l.ended(it.create)
	require.Equal(t, "DEADLINE_EXCEEDED", op.ErrorCode)
	require.Equal(t, "adapter", op.ErrorOwner)
	require.True(t, op.ErrorRetryable)
	require.Contains(t, op.ErrorMessage, "adapter dead cannot be reached")
}

func TestADeadlineThatPassesBeforeAWorkerBeganIsThePlatforms(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("idle")
	it := l.launch(l.world("idle", s.url), -time.Second)
	l.work()
	op := l.ended(it.create)
	require.Equal(t, []any{"DEADLINE_EXCEEDED", "platform"}, []any{op.ErrorCode, op.ErrorOwner})
	require.Zero(t, op.DispatchAttempt)
}

func TestADeadlineThatPassesWhileANodeTakesNoTasksIsTheNodes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.answering(func(*db.NodeTask) (lifecycle.NodeTaskState, string) { return "", "" })
	s := l.script("deaf")
	l.work()
	it := l.launch(l.world("deaf", s.url), 8*time.Second)
	s.succeed(string(it.create), s.dispatched(string(it.create))[0].Attempt)
	op := l.ended(it.create)
	require.Equal(t, []any{"DEADLINE_EXCEEDED", "node"}, []any{op.ErrorCode, op.ErrorOwner})
}

func TestAddressOutsideOfThePolicyIsNotDialled(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	it := l.launch(l.world("outside", "http://192.0.2.1:80"), 5*time.Second)
	op := l.ended(it.create)
	require.Equal(t, "DIAL_REFUSED", op.ErrorCode)
	require.Equal(t, "platform", op.ErrorOwner)
}

func TestRefusalForSafetyFailsTheLaunchWithTheAdaptersWords(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("strict")
	s.onPut = func(adapter.Dispatch) (int, any) {
		return http.StatusUnprocessableEntity, adapter.ErrorBody{Code: "UNSAFE", Message: "it would lose data"}
	}
	l.work()
	it := l.launch(l.world("strict", s.url), time.Minute)
	op := l.ended(it.create)
	require.Equal(t, lifecycle.OperationFailed, op.State)
	require.Equal(t, "ADAPTER_REJECTED", op.ErrorCode)
	require.Equal(t, "UNSAFE: it would lose data", op.ErrorMessage)
	require.Equal(t, "adapter", op.ErrorOwner)
	instance := l.own.Instance.GetX(t.Context(), it.instance)
	require.Equal(t, lifecycle.InstanceFailed, instance.Status)
	require.Equal(t, "ADAPTER_REJECTED", instance.FailureCode)
	require.Nil(t, instance.ReleasedAt, "what began stays until it is decommissioned")
	require.NotNil(t, l.own.Allocation.GetX(t.Context(), it.allocation).InstanceID)
	require.Equal(t, 2, l.own.Member.Query().Where(dbmember.InstanceID(it.instance),
		dbmember.StatusEQ(lifecycle.MemberFailed)).CountX(t.Context()))
	require.Subset(t, l.told(it), []string{"apps.instance.failed", "apps.operation.failed"})

	s.with(func() { s.onPut = nil })
	down := l.decommission(it, time.Minute)
	s.succeed(string(down), s.dispatched(string(down))[0].Attempt)
	require.Equal(t, lifecycle.OperationSucceeded, l.ended(down).State)
	instance = l.own.Instance.GetX(t.Context(), it.instance)
	require.Equal(t, lifecycle.InstanceFailed, instance.Status, "a failed instance stays so")
	require.NotNil(t, instance.ReleasedAt)
}

func TestAdapterThatNeverFinishesFailsAtTheDeadlineAndIsToldSo(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("slow")
	l.work()
	it := l.launch(l.world("slow", s.url), 5*time.Second)
	op := l.ended(it.create)
	require.Equal(t, "DEADLINE_EXCEEDED", op.ErrorCode)
	require.Equal(t, "adapter", op.ErrorOwner)
	require.WithinDuration(t, op.Deadline, *op.EndedAt, 10*time.Second)
	l.until("the adapter is asked to stop", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.cancels) == 1
	})
	require.Equal(t, lifecycle.InstanceFailed, l.own.Instance.GetX(t.Context(), it.instance).Status)
}

func TestAdapterCannotMerelySayRunning(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.answering(func(task *db.NodeTask) (lifecycle.NodeTaskState, string) {
		if task.Kind == lifecycle.TaskProbe {
			return lifecycle.TaskFailed, `{"ok":false,"attempts":1,"detail":"connection refused on 6817"}`
		}
		return healthy(task)
	})
	l.work()
	it := l.launch(l.world("liar", l.kit("liar", joins)), 8*time.Second) // long enough to probe beside much else
	op := l.ended(it.create)
	require.Equal(t, lifecycle.OperationFailed, op.State)
	require.Equal(t, "READINESS_FAILED", op.ErrorCode)
	require.Contains(t, op.ErrorMessage, "connection refused on 6817")
	require.Equal(t, lifecycle.InstanceFailed, l.own.Instance.GetX(t.Context(), it.instance).Status)
	require.NotContains(t, l.told(it), "apps.instance.running")
	require.Zero(t, l.own.Member.Query().Where(dbmember.InstanceID(it.instance),
		dbmember.StatusEQ(lifecycle.MemberActive)).CountX(t.Context()),
		"the adapter's ACTIVE is no status")
}

func TestReadinessThatComesLateIsEnough(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	rounds := 0
	l.answering(func(task *db.NodeTask) (lifecycle.NodeTaskState, string) {
		if task.Kind == lifecycle.TaskProbe {
			if rounds++; rounds <= 3 {
				return lifecycle.TaskFailed, `{"ok":false,"detail":"not yet"}`
			}
		}
		return healthy(task)
	})
	l.work()
	it := l.launch(l.world("late", l.kit("late", joins)), time.Minute)
	op := l.ended(it.create)
	require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	require.Greater(t, rounds, 4)
}

func TestAdaptersFailureFailsTheLaunch(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("failing")
	l.work()
	it := l.launch(l.world("failing", s.url), time.Minute)
	s.dispatched(string(it.create))
	s.say(adapter.Status{OperationID: string(it.create), Attempt: 1, State: adapter.StateFailed,
		Error: &adapter.OperationError{Code: "NO_LICENCE", Message: "there is no licence", Owner: adapter.OwnerUser,
			Retryable: true}})
	op := l.ended(it.create)
	require.Equal(t, "ADAPTER_FAILED", op.ErrorCode)
	require.Equal(t, "NO_LICENCE: there is no licence", op.ErrorMessage)
	require.Equal(t, "user", op.ErrorOwner)
	require.True(t, op.ErrorRetryable)
}

func TestAdapterThatForgotIsSentANewAttempt(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("forgetful")
	l.work()
	it := l.launch(l.world("forgetful", s.url), time.Minute)
	s.dispatched(string(it.create))
	s.with(func() { // it comes back without its journal
		delete(s.status, string(it.create))
		delete(s.versions, string(it.create))
		s.epoch = "e2"
	})
	l.until("a second attempt", func() bool {
		all := s.dispatched(string(it.create))
		return all[len(all)-1].Attempt == 2
	})
	s.succeed(string(it.create), 1)
	s.succeed(string(it.create), 2)
	op := l.ended(it.create)
	require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	require.Equal(t, 2, op.DispatchAttempt)
}

func TestLaunchWaitsForASilentNodeByName(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w := l.world("silent", l.kit("silent", joins))
	l.own.ComputeNode.UpdateOneID(w.node).SetStatus(lifecycle.NodeOffline).ExecX(t.Context())
	l.work()
	it := l.launch(w, time.Minute)
	l.until("it says which node", func() bool {
		return l.op(it.create).Message == "waits for the agent of node node-silent"
	})
	require.Zero(t, l.op(it.create).DispatchAttempt)
	l.own.ComputeNode.UpdateOneID(w.node).SetStatus(lifecycle.NodeOnline).ExecX(t.Context())
	require.Equal(t, lifecycle.OperationSucceeded, l.ended(it.create).State)
}

func TestManyLaunchesAtOnceAllComeUp(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	url := l.kit("busy", joins)
	l.work()
	l.work() // two processes share the queue
	w := l.world("busy", url)
	var all []launched
	for range 25 {
		all = append(all, l.launch(w, time.Minute))
	}
	for _, it := range all {
		op := l.ended(it.create)
		require.Equal(t, lifecycle.OperationSucceeded, op.State, fmt.Sprint(op.ErrorCode, op.ErrorMessage))
		require.Equal(t, 1, op.DispatchAttempt)
	}
}

func TestKindThatThisBuildDoesNotKnowWaitsForOneThatDoes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	it := l.launch(l.world("newer", l.kit("newer", joins)), time.Minute)
	l.ended(it.create)
	id := ids.New(ids.Operation)
	_, err := l.pool().Exec(t.Context(), `INSERT INTO operation (id, tenant_id, project_id, instance_id, kind, state,
		adapter_name, requester_kind,
		requester_id, correlation_id, next_run_at, deadline, created_at)
		SELECT $1, tenant_id, project_id, instance_id, 'INSTANCE_HIBERNATE', 'PENDING',
		adapter_name, requester_kind, requester_id, correlation_id, now(), now() + interval '1 minute', now() FROM operation
		WHERE id = $2`, id, it.create)
	require.NoError(t, err)
	l.hub.Wake(event.QueueTopic)
	other := l.launch(l.world("known", l.kit("known", joins)), time.Minute)
	l.ended(other.create)
	op := l.own.Operation.GetX(t.Context(), id)
	require.Equal(t, lifecycle.OperationPending, op.State, "nothing of it is begun or ended")
	require.Zero(t, op.ClaimEpoch)
	var begins, known bool
	require.NoError(t, l.pool().QueryRow(t.Context(),
		`SELECT bool_or(kinds ? 'INSTANCE_CREATE'), bool_or(kinds ? 'INSTANCE_HIBERNATE') FROM worker_process`).
		Scan(&begins, &known))
	require.True(t, begins, "a worker announces what it knows")
	require.False(t, known, "from which the operation's blockers are found")
	require.Equal(t, lifecycle.InstanceRunning, l.own.Instance.GetX(t.Context(), it.instance).Status)
}

func TestAdapterIsAskedWhatItIsWhenItsFeedOpens(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.world("described", l.kit("described", joins))
	l.work()
	l.until("its description is kept", func() bool {
		return strings.Contains(string(l.own.Adapter.Query().OnlyX(t.Context()).Description), `"described"`)
	})
	l.until("it was seen", func() bool { return l.own.Adapter.Query().OnlyX(t.Context()).LastSeenAt != nil })
}

func TestAdapterThatAnswersItsFeedAtOnceIsNotAskedWithoutPause(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("hasty")
	s.with(func() { s.hasty = true })
	l.world("hasty", s.url)
	l.work()
	asked := func() (n int) { s.with(func() { n = s.asked }); return n }
	l.until("it is asked", func() bool { return asked() > 2 })
	began, before := time.Now(), asked()
	l.until("it is asked again", func() bool { return asked() >= before+5 })
	require.Greater(t, time.Since(began), 500*time.Millisecond, "five polls have at least four pauses between them")
}

// A deadline that passes while people's work runs names the work: it is theirs to clear, and no one's fault.
func TestADeadlineThatPassesWhileWorkRunsIsTheUsers(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("busy")
	drain := c.ask(asked{kind: lifecycle.MemberDrain, deadline: 3 * time.Second})
	attempt := c.script.dispatched(string(drain))[0].Attempt
	var jobs []adapter.Work
	for _, id := range []string{"4", "5", "6", "7"} {
		jobs = append(jobs, adapter.Work{Kind: "job", ID: id, Since: time.Now()})
	}
	c.script.say(adapter.Status{OperationID: string(drain), Attempt: attempt, State: adapter.StateRunning,
		WaitsFor: jobs})
	op := c.end()
	require.Equal(t, lifecycle.OperationFailed, op.State)
	require.Equal(t, []any{"DEADLINE_EXCEEDED", "user",
		"the deadline passed while it waited for job 4, job 5, job 6 and 1 more"},
		[]any{op.ErrorCode, op.ErrorOwner, op.ErrorMessage})
}
