package workers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	dbmember "github.com/gpuaas/app-platform/ent/generated/db/member"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// stop asks a launch to stop, as its verb does.
func (l *lab) stop(it launched) {
	l.Helper()
	tag, err := l.pool().Exec(l.Context(), `UPDATE operation SET state = 'CANCELING', cancel_requested_at = now(),
		cancel_requester = 'Ada',
		next_run_at = now() WHERE id = $1 AND state = 'RUNNING'`, it.create)
	require.NoError(l.TB, err)
	require.EqualValues(l.TB, 1, tag.RowsAffected())
	l.hub.Wake(event.QueueTopic)
}

func TestCanceledLaunchIsLostForServiceAndKeepsWhatItBeganForATeardown(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("mistake")
	l.work()
	it := l.launch(l.world("mistake", s.url), time.Minute)
	s.dispatched(string(it.create))
	l.stop(it)
	op := l.ended(it.create)
	require.Equal(t, []any{lifecycle.OperationCanceled, "CANCELED", "canceled by Ada", "stopped"},
		[]any{op.State, op.ErrorCode, op.ErrorMessage, op.CancelMessage})
	instance := l.own.Instance.GetX(t.Context(), it.instance)
	require.Equal(t, lifecycle.InstanceFailed, instance.Status)
	require.Equal(t, "CANCELED", instance.FailureCode)
	require.Nil(t, instance.ReleasedAt)
	require.Equal(t, 2, l.own.Member.Query().Where(dbmember.InstanceID(it.instance),
		dbmember.StatusEQ(lifecycle.MemberFailed)).CountX(t.Context()))
	l.once(it, "apps.instance.failed", "apps.operation.canceled")
	for _, step := range l.steps(it.create) {
		require.Contains(t, []lifecycle.StepState{lifecycle.StepSucceeded, lifecycle.StepSkipped},
			step.State, step.Name)
	}
	down := l.decommission(it, time.Minute)
	s.succeed(string(down), s.dispatched(string(down))[0].Attempt)
	require.Equal(t, lifecycle.OperationSucceeded, l.ended(down).State)
}

func TestLaunchThatTheAdapterCancelsByItselfHasFailed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("moody")
	l.work()
	it := l.launch(l.world("moody", s.url), time.Minute)
	s.dispatched(string(it.create))
	s.say(adapter.Status{OperationID: string(it.create), Attempt: 1, State: adapter.StateCanceled})
	op := l.ended(it.create)
	require.Equal(t, lifecycle.OperationFailed, op.State)
	require.Equal(t, "ADAPTER_FAILED", op.ErrorCode)
}

func TestCancelThatCrossesTheAdaptersOwnStopIsACancel(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("crossed")
	c.script.with(func() {
		c.script.onCancel = func(id string) adapter.CancelResult {
			c.script.sayLocked(adapter.Status{OperationID: id, Attempt: 1, State: adapter.StateCanceled})
			return adapter.CancelResult{Outcome: adapter.CancelUnknown, Message: "asked to stop and has not ended yet"}
		}
	})
	c.ask(asked{kind: lifecycle.MembersAdd})
	c.script.dispatched(string(c.op))
	c.cancel()
	op := c.end()
	require.Equal(t, "CANCELED CANCELED"+takenOff, c.world(), op.ErrorMessage)
}

func TestCancelThatMeetsAFailureIsAFailure(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("failing")
	c.script.with(func() {
		c.script.onCancel = func(id string) adapter.CancelResult {
			c.script.sayLocked(failedStatus(id))
			return adapter.CancelResult{Outcome: adapter.CancelUnknown, Message: "asked to stop and has not ended yet"}
		}
	})
	c.ask(asked{kind: lifecycle.MemberDrain})
	c.script.dispatched(string(c.op))
	c.cancel()
	op := c.end()
	require.Equal(t, "FAILED ADAPTER_FAILED"+halfway, c.world(), op.ErrorMessage)
}

func TestCancelAtAnAdapterThatIsDownWaitsForItsWord(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("absent")
	c.ask(asked{kind: lifecycle.MemberCordon})
	c.script.dispatched(string(c.op))
	c.script.with(func() { c.script.down = true })
	c.cancel()
	c.until("it says why nobody knows", func() bool {
		return c.operation().CancelMessage == "adapter absent answers UNAVAILABLE: closed for repairs"
	})
	require.Equal(t, lifecycle.OperationCanceling, c.operation().State)
	c.script.with(func() { c.script.down = false })
	op := c.end()
	require.Equal(t, "CANCELED CANCELED"+asBefore, c.world(), op.ErrorMessage)
}

// An adapter's answer for an attempt that was never sent says nothing about the attempt that was.
func TestAnAnswerForAnAttemptThatWasNeverSentEndsNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("ahead")
	l.work()
	it := l.launch(l.world("ahead", s.url), time.Minute)
	s.dispatched(string(it.create))
	s.succeed(string(it.create), 99)
	l.until("its answer is called invalid", func() bool {
		return strings.Contains(l.op(it.create).Message, "attempt 99")
	})
	require.Equal(t, lifecycle.OperationRunning, l.op(it.create).State)
	s.succeed(string(it.create), 1)
	require.Equal(t, lifecycle.OperationSucceeded, l.ended(it.create).State)
}
