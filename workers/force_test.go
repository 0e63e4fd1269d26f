package workers_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/ent/generated/db/nodetask"
	dborphan "github.com/gpuaas/app-platform/ent/generated/db/orphan"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// silence takes the second node off: it is OFFLINE and its agent answers nothing.
func (c *cluster) silence() {
	c.Helper()
	c.answering(func(task *db.NodeTask) (lifecycle.NodeTaskState, string) {
		if task.NodeID == c.second {
			return "", ""
		}
		return healthy(task)
	})
	c.own.ComputeNode.UpdateOneID(c.second).SetStatus(lifecycle.NodeOffline).ExecX(c.Context())
}

// comesBack has the second node answer again, with what is left on it until it is torn down.
func (c *cluster) comesBack() (torn *atomic.Bool) {
	c.Helper()
	torn = &atomic.Bool{}
	c.answering(func(task *db.NodeTask) (lifecycle.NodeTaskState, string) {
		if task.Kind == lifecycle.TaskTeardown && task.NodeID == c.second {
			torn.Store(true)
		}
		if task.Kind == lifecycle.TaskResidue && task.NodeID == c.second && !torn.Load() {
			return lifecycle.TaskSucceeded, dirty
		}
		return healthy(task)
	})
	c.own.ComputeNode.UpdateOneID(c.second).SetStatus(lifecycle.NodeOnline).ExecX(c.Context())
	return torn
}

func (c *cluster) orphans() []*db.Orphan {
	return c.own.Orphan.Query().Where(dborphan.InstanceID(c.instance)).Order(dborphan.ByID()).AllX(c.Context())
}

// resolved waits until nothing is left of what operations have left.
func (c *cluster) resolved() {
	c.Helper()
	c.until("nothing is left", func() bool {
		found := c.orphans() // once: between two looks the first may come
		return len(found) > 0 && !slices.ContainsFunc(found, func(one *db.Orphan) bool { return one.ResolvedAt == nil })
	})
}

func TestRemovalOfADeadMemberByForceIsUnverifiedAndCleanedWhenItsNodeReturns(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("dead")
	c.silence()
	c.ask(asked{kind: lifecycle.MemberRemove, force: true})
	sent := c.script.dispatched(string(c.op))[0]
	require.True(t, sent.Force)
	require.Equal(t, []string{string(c.members[1])}, sent.Targets)
	for _, member := range sent.Members {
		require.Equal(t, member.ID != string(c.members[1]), member.Node.IsReachable())
	}
	c.says(adapter.StateSucceeded, adapter.MemberRemoved, "")
	op := c.end()
	require.Equal(t, "SUCCEEDED UNVERIFIED | ACTIVE REMOVED+cordoned | 1 of 1 | theirs ready bound free ready | "+
		"generation 1 1.0.0 | orphans 1", c.world(), op.ErrorMessage)
	left := c.orphans()[0]
	require.Equal(t, []any{lifecycle.OrphanNodeResidue, c.members[1], c.second, c.theirs, c.op, "node"},
		[]any{left.Kind, *left.MemberID, *left.NodeID, *left.AllocationID, *left.OperationID, left.Owner})
	require.Contains(t, string(op.Evidence), "the agent of its node does not report")
	c.once(c.launched, "apps.orphan.found", "apps.instance.member_removed")
	c.until("the reconciler says what it waits for",
		func() bool { return c.orphans()[0].LastError == "the agent of its node does not report" })
	require.Zero(t, c.orphans()[0].Attempts)

	torn := c.comesBack()
	c.resolved()
	require.True(t, torn.Load())
	left = c.orphans()[0]
	require.Equal(t, "the node's agent found that nothing of it is left", left.Resolution)
	require.Equal(t, 1, left.Attempts)
	require.Equal(t, "SUCCEEDED UNVERIFIED | ACTIVE REMOVED+cordoned | 1 of 1 | theirs ready free ready | generation "+
		"1 1.0.0 | orphans 0", c.world())
	c.once(c.launched, "apps.orphan.resolved")
}

func TestOrphanThatStaysIsTriedAgainAndSaysWhy(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("sticky")
	c.silence()
	c.ask(asked{kind: lifecycle.MemberRemove, force: true})
	c.says(adapter.StateSucceeded, adapter.MemberRemoved, "")
	c.end()
	c.answering(func(task *db.NodeTask) (lifecycle.NodeTaskState, string) {
		if task.NodeID == c.second && task.Kind == lifecycle.TaskResidue {
			return lifecycle.TaskSucceeded, dirty
		}
		return healthy(task)
	})
	c.own.ComputeNode.UpdateOneID(c.second).SetStatus(lifecycle.NodeOnline).ExecX(t.Context())
	c.until("a try has failed", func() bool { return c.orphans()[0].Attempts == 1 })
	left := c.orphans()[0]
	require.Equal(t, "left: 1 processes, 1 mounts, 1 files", left.LastError)
	require.WithinDuration(t, time.Now().Add(30*time.Second), left.NextTryAt, 10*time.Second)
	require.NotNil(t, c.own.Allocation.GetX(t.Context(), c.theirs).InstanceID, "it stays bound")

	c.answering(healthy)
	c.own.Orphan.UpdateOneID(left.ID).SetNextTryAt(time.Now()).ExecX(t.Context()) // as its verb does
	c.resolved()
	require.Equal(t, 2, c.orphans()[0].Attempts)
}

func TestDeadlineThatForcesSendsAnewAndThenThePlatformFinishes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("overdue")
	torn := c.comesBack() // something is left of the member, and nobody but the platform takes it away
	c.overdue(c.ask(asked{kind: lifecycle.MemberRemove, onDeadline: lifecycle.DeadlineForce}))
	op := c.end()
	require.Equal(t, "SUCCEEDED FORCED | ACTIVE REMOVED+cordoned | 1 of 1 | theirs ready free ready | generation 1 "+
		"1.0.0 | orphans 0", c.world(), op.ErrorMessage)
	require.True(t, torn.Load())
	require.NotNil(t, op.ForcedAt)
	require.Equal(t, 2, op.DispatchAttempt)
	all := c.script.dispatched(string(c.op))
	require.False(t, all[0].Force)
	last := all[len(all)-1]
	require.True(t, last.Force)
	require.Equal(t, 2, last.Attempt)
	first, err := all[0].SpecHash()
	require.NoError(t, err)
	second, err := last.SpecHash()
	require.NoError(t, err)
	require.Equal(t, first, second, "force is no part of the specification")
	require.Equal(t, lifecycle.StepSkipped, c.steps(c.op)[2].State, "the adapter was not waited for")
}

func TestAdapterThatFinishesByForceInTimeIsBelievedAndChecked(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.pace.Grace = time.Minute
	l.work()
	c := l.cluster("inTime")
	c.overdue(c.ask(asked{kind: lifecycle.MemberRemove, onDeadline: lifecycle.DeadlineForce}))
	c.until("it is sent anew", func() bool {
		all := c.script.dispatched(string(c.op))
		return all[len(all)-1].Attempt == 2
	})
	c.says(adapter.StateSucceeded, adapter.MemberRemoved, "")
	op := c.end()
	require.Equal(t, lifecycle.OutcomeForced, *op.Outcome)
	require.Equal(t, lifecycle.StepSucceeded, c.steps(c.op)[2].State)
	require.Equal(t, 1, c.own.NodeTask.Query().Where(nodetask.OperationID(c.op),
		nodetask.KindEQ(lifecycle.TaskResidue)).CountX(t.Context()))
}

func TestForceGoesOnWithoutAnAdapterThatFails(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("broken")
	c.ask(asked{kind: lifecycle.MemberRemove, force: true})
	c.says(adapter.StateFailed, "", "")
	op := c.end()
	require.Equal(t, "SUCCEEDED FORCED | ACTIVE REMOVED+cordoned | 1 of 1 | theirs ready free ready | generation 1 "+
		"1.0.0 | orphans 0", c.world(), op.ErrorMessage)
	require.Contains(t, c.steps(c.op)[2].Message, "BROKEN")
}

func TestDecommissionByForceKeepsTheAllocationUntilTheNodeIsClean(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("gone")
	c.silence()
	c.ask(asked{kind: lifecycle.InstanceDecommission, force: true})
	c.says(adapter.StateSucceeded, adapter.MemberRemoved, "")
	op := c.end()
	require.Equal(t, lifecycle.OutcomeUnverified, *op.Outcome, op.ErrorMessage)
	instance := c.own.Instance.GetX(t.Context(), c.instance)
	require.Equal(t, lifecycle.InstanceStopped, instance.Status)
	require.Nil(t, instance.ReleasedAt, "something may be left of it")
	require.Equal(t, "ready", c.allocated(c.allocation), "what is proved is let go of")
	require.Equal(t, "ready bound", c.allocated(c.theirs))
	c.comesBack()
	c.resolved()
	require.NotNil(t, c.own.Instance.GetX(t.Context(), c.instance).ReleasedAt)
	require.Equal(t, "ready", c.allocated(c.theirs))
}

func TestDrainAtItsDeadlineByForce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.pace.Grace = time.Minute
	l.work()
	c := l.cluster("patience")
	c.overdue(c.ask(asked{kind: lifecycle.MemberDrain, onDeadline: lifecycle.DeadlineForce}))
	c.until("it is sent anew", func() bool {
		all := c.script.dispatched(string(c.op))
		return all[len(all)-1].Attempt == 2
	})
	require.True(t, c.script.dispatched(string(c.op))[len(c.script.dispatched(string(c.op)))-1].Force)
	c.says(adapter.StateSucceeded, adapter.MemberDrained, "")
	op := c.end()
	require.Equal(t, "SUCCEEDED FORCED | ACTIVE DRAINED+cordoned | 2 of 2 | theirs ready bound free ready | "+
		"generation 1 1.0.0 | orphans 0", c.world(), op.ErrorMessage)
}

func TestSilenceIsNeverReadAsDrained(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]adapter.MemberStatus{"nothing": "", "draining": adapter.MemberDraining,
		"active": adapter.MemberActive} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.work()
			c := l.cluster("mute")
			c.ask(asked{kind: lifecycle.MemberDrain})
			c.says(adapter.StateSucceeded, said, "")
			op := c.end()
			require.Equal(t, "EVIDENCE_MISSING", op.ErrorCode)
			require.Equal(t, "adapter", op.ErrorOwner)
			require.Nil(t, op.Outcome)
			member := c.own.Member.GetX(t.Context(), c.members[1])
			require.NotEqual(t, lifecycle.MemberDrained, member.Status)
			if said == adapter.MemberActive {
				require.Equal(t, lifecycle.MemberActive, member.Status)
				require.False(t, member.Cordoned)
			}
		})
	}
}

func TestWordOfAnEarlierOperationProvesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("again")
	c.ask(asked{kind: lifecycle.MemberDrain})
	c.says(adapter.StateSucceeded, adapter.MemberDrained, "")
	require.Equal(t, lifecycle.OperationSucceeded, c.end().State)
	c.own.Member.UpdateOneID(c.members[1]).SetStatus(lifecycle.MemberActive).SetCordoned(false).ExecX(t.Context())
	c.ask(asked{kind: lifecycle.MemberDrain})
	c.says(adapter.StateSucceeded, "", "")
	require.Equal(t, "EVIDENCE_MISSING", c.end().ErrorCode)
}

// A task that is requested after the agents' check, and before the operation ends, sends the operation back.
func TestTaskThatComesAfterTheAgentsHaveLookedIsSeen(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("window")
	owner, err := pgx.Connect(t.Context(), l.pg.OwnerDSN())
	require.NoError(t, err)
	defer func() { _ = owner.Close(context.Background()) }()
	_, err = owner.Exec(t.Context(), `CREATE SEQUENCE late; GRANT USAGE ON SEQUENCE late TO PUBLIC;
		CREATE FUNCTION comes_late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('late') = 1 THEN
				INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, kind, spec, spec_digest, state,
				timeout_seconds, idempotency_key, created_at)
				VALUES ('`+
		string(ids.New(ids.NodeTask))[:4]+`zzzzzzzzzzzzzzzzzzzzzzzzzz', NEW.tenant_id, NEW.project_id, NEW.instance_id, NEW.id, NEW.node_id, 'RUN', '{}', 'x', 'PENDING', 60, 'late', now());
			END IF;
			RETURN NEW; END $$;
		CREATE TRIGGER comes_late BEFORE UPDATE ON member FOR EACH ROW WHEN (NEW.status = 'REMOVED'
		AND OLD.status <> 'REMOVED') EXECUTE FUNCTION comes_late()`)
	require.NoError(t, err)
	c.ask(asked{kind: lifecycle.MemberRemove})
	c.says(adapter.StateSucceeded, adapter.MemberRemoved, "")
	op := c.end()
	require.Equal(t, lifecycle.OperationSucceeded, op.State, op.ErrorMessage)
	var evidence struct{ Rounds int }
	require.NoError(t, json.Unmarshal(op.Evidence, &evidence))
	require.Equal(t, 2, evidence.Rounds, "the first round's proof was not taken")
}

func TestAllocationThatNobodyAskedToKeepIsListedAndReleased(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	stop := l.work()
	c := l.cluster("held")
	stop()
	failed := ids.New(ids.Operation)
	l.operate(c.launched, failed, lifecycle.MembersAdd, time.Minute, `{}`)
	_, err := l.pool().Exec(t.Context(), `UPDATE operation SET state = 'FAILED', ended_at = now() - interval '1 minute'
		WHERE id = $1`, failed)
	require.NoError(t, err)
	l.own.Allocation.UpdateOneID(c.free).SetCreatedByOperationID(failed).ExecX(t.Context())
	l.work()
	c.resolved()
	left := c.orphans()[0]
	require.Equal(t, []any{lifecycle.OrphanAllocation, c.free, failed, "platform", "its allocation is released"},
		[]any{left.Kind, *left.AllocationID, *left.OperationID, left.Owner, left.Resolution})
	require.Equal(t, "released", c.allocated(c.free))
	c.once(c.launched, "apps.orphan.found", "apps.orphan.resolved", "apps.allocation.released")
}

func TestWhatIsSentAnewIsTheSameThoughTheInstanceHasGrownMeanwhile(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.pace.Grace = time.Minute
	l.work()
	c := l.cluster("grown")
	drain := c.ask(asked{kind: lifecycle.MemberDrain, onDeadline: lifecycle.DeadlineForce})
	c.script.dispatched(string(drain))
	c.ask(asked{kind: lifecycle.MembersAdd})
	require.Len(t, c.script.dispatched(string(c.op))[0].Members, 3)
	c.says(adapter.StateSucceeded, "", adapter.MemberActive)
	require.Equal(t, lifecycle.OperationSucceeded, c.end().State, "operations on different members run side by side")
	c.overdue(drain)
	c.until("the drain is sent anew",
		func() bool { all := c.script.dispatched(string(drain)); return all[len(all)-1].Attempt == 2 })
	all := c.script.dispatched(string(drain))
	first, err := all[0].SpecHash()
	require.NoError(t, err)
	last, err := all[len(all)-1].SpecHash()
	require.NoError(t, err)
	require.Equal(t, first, last)
	require.Len(t, all[len(all)-1].Members, 2)
	c.op = drain
	c.says(adapter.StateSucceeded, adapter.MemberDrained, "")
	require.Equal(t, lifecycle.OperationSucceeded, c.end().State)
}
