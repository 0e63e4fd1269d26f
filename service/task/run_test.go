package task_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/task"
)

func TestAnOperationRunsATaskOnTheNodeOfItsMember(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	waiter := b.Hub.Wait(event.NodeTopic(b.node.ID))
	defer waiter.Close()
	made := b.ask("k1")
	require.Equal(t, lifecycle.TaskPending, made.State)
	require.Equal(t, 1, made.Fence)
	require.Equal(t, b.node.ID, made.NodeID)
	require.Equal(t, b.instance.ID, made.InstanceID)
	require.Equal(t, b.operation.ID, *made.OperationID)
	require.JSONEq(t, `{"command":["true"]}`, string(b.stored(made.ID).Spec))
	select {
	case <-waiter.C:
	default:
		t.Fatal("the node was not woken")
	}
	entries := b.Audit()
	require.Len(t, entries, 1)
	require.Equal(t, "runNodeTask", entries[0].Action)
	require.NotContains(t, string(entries[0].After), "command", "what a task does stays out of the audit")
}

func TestTheSameKeyIsTheSameTask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.ask("k")
	in := b.input("k")
	in.Spec = json.RawMessage(` { "command" : [ "true" ] } `)
	again, err := b.Run(b.adapter, in)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	for _, change := range []func(*task.RunInput){
		func(in *task.RunInput) { in.Spec = json.RawMessage(`{"command":["false"]}`) },
		func(in *task.RunInput) { in.TimeoutSeconds = 61 },
		func(in *task.RunInput) { in.Kind, in.Spec = lifecycle.TaskResidue, json.RawMessage(`{}`) },
	} {
		other := b.input("k")
		change(&other)
		_, err := b.Run(b.adapter, other)
		platformtest.Refused(t, err, fault.IdempotencyKeyReused, "input.idempotencyKey")
	}
	require.Equal(t, 1, b.Count("node_task", ""))
	require.Equal(t, 1, b.Count("audit_entry", ""), "a repeat changes nothing and is no entry")
	op := b.Ent.Operation.Query().OnlyX(t.Context())
	require.Equal(t, op.CorrelationID, b.Ent.NodeTask.Query().OnlyX(t.Context()).CorrelationID, "that of its operation")

	b.SQL(`UPDATE member SET status = 'REMOVING' WHERE id = $1`, b.member.ID)
	b.SQL(`UPDATE member SET status = 'REMOVED' WHERE id = $1`, b.member.ID)
	again, err = b.Run(b.adapter, b.input("k"))
	require.NoError(t, err, "what was made before the removal is still answered")
	require.Equal(t, first.ID, again.ID)
}

func TestManyAtOnceWithOneKeyMakeOneTask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const callers = 8
	made := make([]ids.ID, callers)
	failures := make([]error, callers)
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() {
			row, err := b.Run(b.adapter, b.input("k"))
			failures[i] = err
			if err == nil {
				made[i] = row.ID
			}
		})
	}
	running.Wait()
	for i := range callers {
		require.NoError(t, failures[i])
		require.Equal(t, made[0], made[i])
	}
	require.Equal(t, 1, b.Count("node_task", ""))
}

func TestATokenReachesItsOwnInstanceOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	node, _ := b.Node(1)
	sibling, its := b.other(b.project, node)
	foreign := b.Project(b.Tenant())
	far, _ := b.Node(1)
	_, theirs := b.other(foreign, far)
	for _, member := range []ids.ID{its.ID, theirs.ID, ids.New(ids.Member)} {
		in := b.input("k")
		in.MemberID = member
		_, err := b.Run(b.adapter, in)
		platformtest.Refused(t, err, fault.NotFound, "")
	}
	other := b.Operation(sibling, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	made := b.ask("k")
	intruder := b.With(b.OperationToken(other, authz.TaskRun, authz.TaskRead))
	_, err := b.Cancel(intruder, made.ID)
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = b.Get(intruder, made.ID, 0)
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = b.List(intruder, b.member.ID, pageOf(20, ""))
	platformtest.Refused(t, err, fault.NotFound, "")
	require.Equal(t, 1, b.Count("node_task", ""))
	require.False(t, b.stored(made.ID).CancelRequested)
	denied := 0
	for _, entry := range b.Audit() {
		if !entry.Allowed {
			denied += entry.Repeats
		}
	}
	require.Equal(t, 4, denied, "each attempt at what is not theirs is recorded")
}

func TestNobodyElseRunsTasks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range map[string]struct {
		credential string
		code       fault.Code
	}{
		"the project's admin": {b.Session(b.User(b.tenant, platformtest.In(authz.ProjectAdmin, b.project))),
			fault.Forbidden},
		"a platform operator": {b.Session(b.Operator()), fault.Forbidden},
		"another tenant":      {b.Session(b.User(b.Tenant())), fault.NotFound},
		"an agent":            {b.secret, fault.Forbidden},
		"a token without it":  {b.OperationToken(b.operation, authz.TaskRead), fault.Forbidden},
	} {
		_, err := b.Run(b.With(c.credential), b.input("k"))
		require.True(t, fault.Is(err, c.code), "%s: %v", name, err)
	}
	require.Zero(t, b.Count("node_task", ""))
	for _, entry := range b.Audit() {
		require.False(t, entry.Allowed)
	}
}

func TestATaskNeedsALiveMemberOnANode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.SQL(`UPDATE member SET node_id = NULL WHERE id = $1`, b.member.ID)
	_, err := b.Run(b.adapter, b.input("k"))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.memberId")
	b.SQL(`UPDATE member SET node_id = $2, status = 'REMOVING' WHERE id = $1`, b.member.ID, b.node.ID)
	b.SQL(`UPDATE member SET status = 'REMOVED' WHERE id = $1`, b.member.ID)
	_, err = b.Run(b.adapter, b.input("k"))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.memberId")
	require.Zero(t, b.Count("node_task", ""))
}

func TestBadInputIsRefusedByItsField(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for path, change := range map[string]func(*task.RunInput){
		"input.spec.comand":    func(in *task.RunInput) { in.Spec = json.RawMessage(`{"comand":["ls"]}`) },
		"input.spec":           func(in *task.RunInput) { in.Spec = nil },
		"input.spec.command.0": func(in *task.RunInput) { in.Spec = json.RawMessage(`{"command":["a\u0000"]}`) },
		"input.timeoutSeconds": func(in *task.RunInput) { in.TimeoutSeconds = 3_601 },
		"input.idempotencyKey": func(in *task.RunInput) { in.IdempotencyKey = "platform x" },
		"input.spec.stopSignals": func(in *task.RunInput) {
			in.Kind, in.Spec = lifecycle.TaskStartProcess, json.RawMessage(`{"stopSignals":1}`)
		},
	} {
		in := b.input("k")
		change(&in)
		_, err := b.Run(b.adapter, in)
		platformtest.Refused(t, err, fault.InvalidArgument, path)
	}
	for _, change := range []func(*task.RunInput){
		func(in *task.RunInput) { in.TimeoutSeconds = 0 },
		func(in *task.RunInput) { in.IdempotencyKey = "" },
		func(in *task.RunInput) { in.IdempotencyKey = strings.Repeat("x", 129) },
	} {
		in := b.input("k")
		change(&in)
		_, err := b.Run(b.adapter, in)
		require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
	}
	require.Zero(t, b.Count("node_task", ""))
}

func TestAMembersOpenTasksAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.ask("k-0")
	b.SQL(`INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, kind, spec_digest, state,
		timeout_seconds, idempotency_key, created_at)
		SELECT 'tsk_' || lpad(n::text, 26, '0'), tenant_id, project_id, instance_id, member_id, node_id, 'RUN', '',
		'PENDING', 60, 'bulk-' || n, now()
		FROM node_task, generate_series(1, $1) n`, task.MaxOpenOfMember-1)
	_, err := b.Run(b.adapter, b.input("k-1"))
	platformtest.Refused(t, err, fault.LimitExceeded, "input.memberId")
	found, _ := fault.As(err)
	require.True(t, found.CanRetry())
	require.Equal(t, task.MaxOpenOfMember, b.Count("node_task", ""))
	_, err = b.Run(b.adapter, b.input("k-0"))
	require.NoError(t, err, "a repeat needs no room")
	_, err = b.report(first.ID, lifecycle.TaskSucceeded)
	require.NoError(t, err)
	b.ask("k-1")
}

func TestCancelAsksTheAgentOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.ask("k")
	for range 2 {
		canceled, err := b.Cancel(b.adapter, made.ID)
		require.NoError(t, err)
		require.True(t, canceled.CancelRequested)
		require.Equal(t, lifecycle.TaskPending, canceled.State, "how it ends is the agent's word")
	}
	require.Equal(t, 1, b.Count("audit_entry", "action = 'cancelNodeTask'"))
	_, err := b.report(made.ID, lifecycle.TaskSucceeded)
	require.NoError(t, err)

	done := b.ask("k2")
	_, err = b.report(done.ID, lifecycle.TaskSucceeded)
	require.NoError(t, err)
	after, err := b.Cancel(b.adapter, done.ID)
	require.NoError(t, err)
	require.False(t, after.CancelRequested, "a task that has ended is answered as it is")
}

func TestAnInstancesOwnTokenMakesTasksOfNoOperation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made, err := b.Run(b.callToken(), b.input("k"))
	require.NoError(t, err)
	require.Nil(t, made.OperationID)
}

func TestEndedOperationsRunNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.SQL(`UPDATE operation SET state = 'SUCCEEDED', ended_at = now() WHERE id = $1`, b.operation.ID)
	_, err := b.Run(b.adapter, b.input("k"))
	require.True(t, fault.Is(err, fault.Unauthenticated), fmt.Sprint(err))
	require.Zero(t, b.Count("node_task", ""))
}

func TestATaskThatMeetsItsOperationsEndIsNotStored(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ending, err := b.Admin.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = ending.Rollback(t.Context()) }()
	_, err = ending.Exec(t.Context(), `SELECT FROM operation WHERE id = $1 FOR UPDATE`, b.operation.ID)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := b.Run(b.adapter, b.input("k")) // its token is let in: the operation has not ended yet
		done <- err
	}()
	require.Eventually(t, func() bool {
		return b.Count("pg_stat_activity", "wait_event_type = 'Lock' AND query LIKE '%hold_operation%'") > 0
	},
		10*time.Second, 5*time.Millisecond)
	_, err = ending.Exec(t.Context(), `UPDATE operation SET state = 'SUCCEEDED', ended_at = now() WHERE id = $1`,
		b.operation.ID)
	require.NoError(t, err)
	require.NoError(t, ending.Commit(t.Context()))
	err = <-done
	require.True(t, fault.Is(err, fault.FailedPrecondition), fmt.Sprint(err))
	require.Zero(t, b.Count("node_task", ""))
}

func TestAWithdrawnTaskIsNotBegun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made, runs := b.ask("k1"), b.ask("k2")
	_, err := b.report(runs.ID, lifecycle.TaskRunning)
	require.NoError(t, err)
	for _, id := range []ids.ID{made.ID, runs.ID} { // the answer to the report that one runs may have been lost
		_, err = b.Cancel(b.adapter, id)
		require.NoError(t, err)
		_, err = b.report(id, lifecycle.TaskRunning)
		require.True(t, fault.Is(err, fault.Conflict), fmt.Sprint(err))
		require.False(t, *fault.From(err).Retryable)
	}
	require.Equal(t, lifecycle.TaskPending, b.stored(made.ID).State)
	ended, err := b.report(made.ID, lifecycle.TaskCanceled)
	require.NoError(t, err)
	require.Nil(t, ended.ExitCode)
}
