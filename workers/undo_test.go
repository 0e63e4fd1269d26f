package workers_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestFailedAdditionTearsDownWhatTheAdapterLeft(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("half")
	torn := c.comesBack()
	c.ask(asked{kind: lifecycle.MembersAdd, brought: true})
	c.says(adapter.StateFailed, "", adapter.MemberJoining)
	op := c.end()
	require.Equal(t, "FAILED ADAPTER_FAILED | ACTIVE ACTIVE REMOVED | 2 of 2 | theirs ready bound free ready | "+
		"generation 1 1.0.0 | orphans 0", c.world(),
		"an allocation that was brought is only unbound")
	require.True(t, torn.Load())
	require.Equal(t, "BROKEN: it broke", op.ErrorMessage)
	c.once(c.launched, "apps.operation.compensating", "apps.operation.failed", "apps.instance.member_failed")
	var states []string
	for _, step := range c.steps(c.op) {
		states = append(states, step.Name+" "+string(step.State))
	}
	require.Equal(t, []string{"prepare UNDONE", "dispatch UNDONE", "await FAILED", "verify SKIPPED", "finish SKIPPED",
		"withdraw SUCCEEDED", "undo_members SUCCEEDED"}, states)
	steps := c.steps(c.op)
	require.Contains(t, string(steps[6].Evidence), `"teardowns"`)
}

func TestAdditionWhoseProbesNeverPassIsTakenBackAndTheAdapterIsStopped(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("unready")
	c.answering(func(task *db.NodeTask) (lifecycle.NodeTaskState, string) {
		if task.Kind == lifecycle.TaskProbe {
			return lifecycle.TaskFailed, `{"ok":false,"detail":"refused"}`
		}
		return healthy(task)
	})
	c.ask(asked{kind: lifecycle.MembersAdd})
	c.says(adapter.StateSucceeded, "", adapter.MemberActive)
	c.until("it says which probe fails", func() bool { return strings.Contains(c.operation().Message, "refused") })
	c.overdue(c.op)
	op := c.end()
	require.Equal(t, "FAILED READINESS_FAILED"+takenOff, c.world(), op.ErrorMessage)
}

func TestWhatCannotBeUndoneIsListedAndTheOperationEnds(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.pace.Undo = 2 * time.Second
	l.work()
	c := l.cluster("stays")
	c.silence()
	c.own.ComputeNode.UpdateOneID(c.second).SetStatus(lifecycle.NodeOnline).ExecX(t.Context())
	c.ask(asked{kind: lifecycle.MembersAdd})
	c.script.dispatched(string(c.op))
	c.own.ComputeNode.UpdateOneID(c.second).SetStatus(lifecycle.NodeOffline).ExecX(t.Context())
	c.says(adapter.StateFailed, "", "")
	c.until("it is being taken back", func() bool { return c.operation().State == lifecycle.OperationCompensating })
	require.Equal(t, "ADAPTER_FAILED", c.operation().ErrorCode, "why is known from then on")
	op := c.end()
	require.Equal(t, "FAILED ADAPTER_FAILED | ACTIVE ACTIVE REMOVED | 2 of 2 | theirs ready bound free ready bound | "+
		"generation 1 1.0.0 | orphans 1", c.world())
	require.Equal(t, "BROKEN: it broke", op.ErrorMessage)
	require.Equal(t, lifecycle.StepFailed, c.steps(c.op)[0].State, "what was done is not undone")
	c.comesBack()
	c.resolved()
	require.Equal(t, "FAILED ADAPTER_FAILED"+takenOff, c.world(),
		"the allocation that the operation had asked for goes with the orphan")
	c.once(c.launched, "apps.allocation.released")
}

func TestUndoSurvivesALeaseLostAtAnyMoment(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	l.work()
	c := l.cluster("robbed")
	c.ask(asked{kind: lifecycle.MembersAdd})
	c.says(adapter.StateRunning, "", "")
	c.comesBack()
	c.cancel()
	op := c.robbed(c.op)
	require.Equal(t, "CANCELED CANCELED"+takenOff, c.world(), op.ErrorMessage)
	c.once(c.launched, "apps.operation.compensating", "apps.operation.canceled", "apps.allocation.released")
}

func TestMembersThatCouldNotJoinAreKeptOnRequest(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("kept")
	c.ask(asked{kind: lifecycle.MembersAdd, keep: true})
	c.says(adapter.StateSucceeded, "", adapter.MemberFailed)
	op := c.end()
	require.Equal(t, "FAILED ADAPTER_FAILED | ACTIVE ACTIVE FAILED | 2 of 3 | theirs ready bound free ready bound | "+
		"generation 1 1.0.0 | orphans 0", c.world(), op.ErrorMessage)
	require.Equal(t, "the adapter reports as failed: peer 2", op.ErrorMessage)
	c.once(c.launched, "apps.instance.member_failed")
}

func TestCancelOfAnAdditionThatKeepsFailuresKeepsNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("dropped")
	c.ask(asked{kind: lifecycle.MembersAdd, keep: true})
	c.script.dispatched(string(c.op))
	c.cancel()
	op := c.end()
	require.Equal(t, "CANCELED CANCELED"+takenOff, c.world(), op.ErrorMessage)
}

func TestAdditionThatWasNeverSentLeavesNoTrace(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("unsent")
	c.silence()
	c.ask(asked{kind: lifecycle.MembersAdd})
	c.until("it waits for the node", func() bool {
		return c.operation().Message == "waits for the agent of node second-unsent"
	})
	c.cancel()
	op := c.end()
	require.Equal(t, "CANCELED CANCELED"+takenOff, c.world(), op.ErrorMessage)
	require.Equal(t, "it was never sent to the adapter", op.CancelMessage)
	require.Zero(t, op.DispatchAttempt)
}

func TestReplacementThatFailsAfterTheOldOneLeftKeepsTheNewOne(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("swap")
	c.answering(func(task *db.NodeTask) (lifecycle.NodeTaskState, string) {
		if task.MemberID == c.members[1] && task.Kind != lifecycle.TaskProbe {
			return lifecycle.TaskSucceeded, dirty
		}
		return healthy(task)
	})
	c.ask(asked{kind: lifecycle.MemberReplace, deadline: 3 * time.Second})
	c.says(adapter.StateSucceeded, adapter.MemberRemoved, adapter.MemberActive)
	op := c.end()
	require.Equal(t, "FAILED RESIDUE_LEFT | ACTIVE FAILED ACTIVE | 2 of 3 | theirs ready bound free ready bound | "+
		"generation 1 1.0.0 | orphans 0", c.world(), op.ErrorMessage)
}

// Force ends an operation without an adapter that failed, but not without a member that serves. The dead node of the
// old member does not keep the new one from being taken back.
func TestReplacementOfADeadMemberWhoseNewOneNeverServesEnds(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.pace.Grace = time.Second
	l.work()
	c := l.cluster("unmended")
	first := *c.own.Member.GetX(t.Context(), c.members[0]).NodeID
	c.own.Allocation.UpdateOneID(c.free).SetNodeID(first).ExecX(t.Context())
	c.own.Member.UpdateOneID(c.members[1]).SetStatus(lifecycle.MemberFailed).ExecX(t.Context())
	c.own.ComputeNode.UpdateOneID(c.second).SetStatus(lifecycle.NodeOffline).ExecX(t.Context())
	c.own.ComputeNode.UpdateOneID(c.second).SetStatus(lifecycle.NodeRetired).ExecX(t.Context())
	c.answering(func(task *db.NodeTask) (lifecycle.NodeTaskState, string) {
		switch {
		case task.NodeID == c.second:
			return "", ""
		case task.Kind == lifecycle.TaskProbe:
			return lifecycle.TaskFailed, `{"ok":false,"detail":"refused"}`
		}
		return healthy(task)
	})
	c.ask(asked{kind: lifecycle.MemberReplace, force: true, deadline: 3 * time.Second})
	c.says(adapter.StateFailed, "", adapter.MemberJoining)
	op := c.end()
	require.Equal(t, "FAILED READINESS_FAILED | ACTIVE FAILED REMOVED | 1 of 2 | theirs ready bound free released | "+
		"generation 1 1.0.0 | orphans 0", c.world(), op.ErrorMessage)
}

func TestFailedUpgradeSaysHowToGoBackAndTakesNothingAway(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("bad")
	c.ask(asked{kind: lifecycle.InstanceUpgrade})
	sent := c.script.dispatched(string(c.op))[0]
	require.Equal(t, "2.0.0", sent.Instance.Version)
	require.JSONEq(t, `{"a":3}`, string(sent.Instance.Config))
	var change map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(sent.Change, &change))
	require.Len(t, change, 2, "the platform's part is not sent")
	c.says(adapter.StateFailed, "", "")
	op := c.end()
	require.Equal(t, "FAILED ADAPTER_FAILED"+asBefore, c.world(), op.ErrorMessage)
	require.Equal(t, 1, c.own.Generation.Query().CountX(t.Context()))
	c.once(c.launched, "apps.instance.degraded")
	for _, task := range c.own.NodeTask.Query().AllX(t.Context()) {
		require.NotEqual(t, lifecycle.TaskTeardown, task.Kind)
	}
	c.ask(asked{kind: lifecycle.MemberLabel})
	c.says(adapter.StateSucceeded, "", "")
	require.Equal(t, lifecycle.OperationSucceeded, c.end().State, "what follows is not kept from")
	require.JSONEq(t, `{"tier":"gold"}`, string(c.own.Member.GetX(t.Context(), c.members[1]).Labels))
}

func TestUpgradeIsProvedByTheNewManifestsProbes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("next")
	c.ask(asked{kind: lifecycle.InstanceUpgrade})
	c.says(adapter.StateSucceeded, "", "")
	op := c.end()
	var evidence struct {
		Generation int
		Probes     []struct{ Probe string }
	}
	require.NoError(t, json.Unmarshal(op.Evidence, &evidence))
	require.Equal(t, 2, evidence.Generation)
	require.Len(t, evidence.Probes, 2)
	require.Equal(t, "answers-anew", evidence.Probes[0].Probe)
	instance := c.own.Instance.GetX(t.Context(), c.instance)
	require.Equal(t, c.to, instance.ManifestID)
	require.JSONEq(t, `{"a":3}`, string(instance.Config))
}

func TestMemberThatFailsAfterItsProbesPassedDoesNotJoin(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("relapse")
	c.answering(func(task *db.NodeTask) (lifecycle.NodeTaskState, string) {
		if task.Kind == lifecycle.TaskProbe {
			_, _ = l.pool().Exec(context.Background(),
				`UPDATE member SET status = 'FAILED' WHERE id = $1 AND status = 'JOINING'`, task.MemberID)
		}
		return healthy(task)
	})
	c.ask(asked{kind: lifecycle.MembersAdd})
	c.says(adapter.StateSucceeded, "", adapter.MemberActive)
	op := c.end()
	require.Equal(t, "FAILED FAILED_PRECONDITION"+takenOff, c.world(), op.ErrorMessage)
}

func TestTeardownWaitsForWhatAnEarlierOperationLeft(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("later")
	c.silence()
	c.ask(asked{kind: lifecycle.MemberRemove, force: true})
	c.says(adapter.StateSucceeded, adapter.MemberRemoved, "")
	require.Equal(t, lifecycle.OutcomeUnverified, *c.end().Outcome)
	c.ask(asked{kind: lifecycle.InstanceDecommission})
	c.says(adapter.StateSucceeded, "", "")
	c.until("it says what it waits for", func() bool {
		return c.operation().Message == "waits for what earlier operations have left (1): something of peer 1 may be "+
			"left on its node: the agent of its node does not report"
	})
	c.comesBack()
	op := c.end()
	require.Equal(t, "SUCCEEDED NORMAL | REMOVED REMOVED+cordoned | 0 of 1 | theirs ready free ready | generation 1 "+
		"1.0.0 | orphans 0", c.world(), op.ErrorMessage)
	require.NotNil(t, c.own.Instance.GetX(t.Context(), c.instance).ReleasedAt)
}

func TestOfAnAdditionThatKeepsFailuresThoseThatJoinedServe(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	stop := l.work()
	c := l.cluster("partly")
	stop()
	c.ask(asked{kind: lifecycle.MembersAdd, keep: true})
	other := ids.New(ids.Member)
	l.own.Member.Create().SetID(other).SetTenantID(c.tenant).SetProjectID(c.project).SetInstanceID(c.instance).
		SetComponentKey("peer").
		SetOrdinal(3).SetStatus(lifecycle.MemberPending).SetAllocationID(c.free).SetNodeID(c.second).SaveX(t.Context())
	l.own.Operation.UpdateOneID(c.op).SetTargets([]ids.ID{c.newcomer, other}).ExecX(t.Context())
	c.want(4)
	l.work()
	c.script.dispatched(string(c.op))
	c.script.say(adapter.Status{OperationID: string(c.op), Attempt: 1, State: adapter.StateSucceeded,
		Members: []adapter.MemberUpdate{
			{ID: string(c.newcomer), Status: adapter.MemberFailed, Health: adapter.Unhealthy},
			{ID: string(other), Status: adapter.MemberActive, Health: adapter.Healthy}}})
	op := c.end()
	require.Equal(t, "FAILED ADAPTER_FAILED | ACTIVE ACTIVE FAILED ACTIVE | 3 of 4 | theirs ready bound free ready "+
		"bound | generation 1 1.0.0 | orphans 0",
		c.world(), op.ErrorMessage)
	require.Equal(t, "the adapter reports as failed: peer 2", op.ErrorMessage)
}
