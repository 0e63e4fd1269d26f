package reconcile_test

import (
	"net/http"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

func workRuns(l *lab) injected {
	began := time.Now().Add(-10 * time.Minute)
	instance, op := l.decommission()
	member := l.member(instance)
	waits := running
	waits.WaitsFor = []adapter.Work{{Kind: "job", ID: "17", Name: "train", MemberID: string(member.ID), Owner: "ann",
		Since: began}}
	l.status(waits)
	l.work()
	return injected{op: op, instance: instance, code: "WORK_RUNNING", owner: "user", subject: subject(member.ID),
		key:     "apps.instance.delete",
		message: "1 piece of work to end, first 17 (train)", since: began, retried: true, then: "ADAPTER_WORKING"}
}

// release requests the release of the allocation that an instance uses, as its verb does after it has requested the
// teardown.
func (l *lab) release(of *db.Instance) *db.Operation {
	allocation := *l.member(of).AllocationID
	op := l.Operation(of, lifecycle.AllocationRelease, lifecycle.OperationPending)
	l.SQL(`UPDATE operation SET instance_id = NULL, adapter_name = '', allocation_id = $2 WHERE id = $1`, op.ID,
		allocation)
	l.SQL(`UPDATE allocation SET status = 'RELEASING', release_operation_id = $2 WHERE id = $1`, allocation, op.ID)
	l.Hub.Wake(event.QueueTopic)
	return op
}

func releaseWaits(l *lab) injected {
	l.status(running)
	instance, down := l.decommission()
	op := l.release(instance)
	l.work()
	return injected{op: op, code: "OPERATION_AHEAD", owner: "platform", subject: subject(down.ID),
		message: "instance decommission", retried: true}
}

func releaseWaitsForNode(l *lab) injected {
	l.status(running)
	instance, _ := l.decommission()
	op := l.release(instance)
	l.silence(l.node.ID, 40*time.Second)
	l.work()
	return injected{op: op, code: "NODE_OFFLINE", owner: "node", subject: subject(l.node.ID),
		key: "apps.instance.delete", since: l.seen(), retried: true, then: "OPERATION_AHEAD"}
}

func releasedUnderneath(l *lab) injected {
	instance := l.running()
	allocation := *l.member(instance).AllocationID
	l.SQL(`UPDATE allocation SET status = 'RELEASING' WHERE id = $1`, allocation)
	return injected{instance: instance, code: "ALLOCATION_RELEASING", owner: "user", subject: subject(allocation)}
}

func allocationFailed(l *lab) injected {
	instance := l.running()
	allocation := *l.member(instance).AllocationID
	l.SQL(`UPDATE allocation SET status = 'FAILED' WHERE id = $1`, allocation)
	return injected{instance: instance, code: "ALLOCATION_FAILED", owner: "platform", subject: subject(allocation),
		key: "allocation.release"}
}

func cancelUnanswered(l *lab) injected {
	l.status(running)
	l.on("POST /v1/operations/{id}/cancel", always(http.StatusOK,
		adapter.CancelResult{Outcome: adapter.CancelUnknown, Message: "looking"}))
	instance, op := l.launch()
	l.work()
	l.until("the adapter works", func() bool { return len(l.op(op.ID).AdapterStatus) > 0 })
	asked := time.Now()
	admin := l.User(nil, platformtest.In(authz.ProjectAdmin, l.project))
	_, err := operation.Cancel(l.As(admin), l.DB, op.ID, "not needed")
	require.NoError(l.TB, err)
	return injected{op: op, instance: instance, code: "CANCEL_UNANSWERED", owner: "adapter", subject: l.adapter.Name,
		since: asked, retried: true}
}

func deadlinePassed(l *lab) injected {
	l.heartbeat("wrk_live", -time.Minute) // far enough ahead for a slow test
	instance, op := l.launch()
	deadline := time.Now().Add(-3 * time.Second)
	l.SQL(`UPDATE operation SET state = 'RUNNING', deadline = $2, next_run_at = now() + interval '1 hour'
		WHERE id = $1`,
		op.ID, deadline)
	return injected{op: op, instance: instance, code: "DEADLINE_PASSED", owner: "platform", since: deadline}
}

func platformTrouble(l *lab) injected {
	l.status(succeeded)
	instance, op := l.launch()
	l.SQL(`UPDATE manifest SET document = 'not a manifest' WHERE id = $1`, l.stored.ID)
	l.work()
	return injected{op: op, instance: instance, code: "PLATFORM_TROUBLE", owner: "platform", subject: "dispatch",
		message: "internal error", retried: true}
}

func launchRejected(l *lab) injected {
	l.on("PUT /v1/operations/{id}", always(http.StatusUnprocessableEntity,
		adapter.ErrorBody{Code: "UNSAFE", Message: "it would lose data"}))
	instance, op := l.launch()
	l.work()
	l.until("the launch has failed", func() bool { return l.op(op.ID).EndedAt != nil })
	return injected{instance: instance, code: "INSTANCE_FAILED", owner: "user", subject: subject(instance.ID),
		key:     "apps.instance.delete",
		message: "ADAPTER_REJECTED: UNSAFE: it would lose data", since: *l.op(op.ID).EndedAt}
}

func memberLost(l *lab) injected {
	instance := l.running()
	member := l.member(instance)
	l.SQL(`UPDATE member SET status = 'FAILED' WHERE id = $1`, member.ID)
	return injected{instance: instance, code: "MEMBER_FAILED", owner: "user", subject: subject(member.ID),
		key: "apps.member.recover", message: "worker 0 has failed"}
}

func teardownFailed(l *lab) injected {
	failed := adapter.Status{State: adapter.StateFailed, Members: []adapter.MemberUpdate{},
		Error: &adapter.OperationError{
			Code: "STUCK", Message: "a daemon does not stop", Owner: adapter.OwnerAdapter, Retryable: true}}
	l.status(failed)
	instance, op := l.decommission()
	l.work()
	l.until("the teardown has failed", func() bool { return l.op(op.ID).EndedAt != nil })
	return injected{instance: instance, code: "OPERATION_FAILED", owner: "adapter", subject: subject(op.ID),
		key:     "operation.retry",
		message: "STUCK: a daemon does not stop", since: *l.op(op.ID).EndedAt}
}

func orphanLeft(l *lab) injected {
	instance := l.running()
	member := l.member(instance)
	id, found := ids.New(ids.OrphanedResource), time.Now().Add(-time.Hour)
	l.SQL(`INSERT INTO orphan (id, tenant_id, project_id, kind, instance_id, member_id, node_id, owner, message,
		attempts,
		last_error, next_try_at, created_at)
		VALUES ($1, $2, $3, 'NODE_RESIDUE', $4, $5, $6, 'node', 'node was not reachable', 3, 'still not heard', now() +
		interval '1 minute', $7)`,
		id, instance.TenantID, instance.ProjectID, instance.ID, member.ID, member.NodeID, found)
	return injected{instance: instance, code: "ORPHAN_LEFT", owner: "node", subject: subject(id),
		key: "operation.retry", message: "still not heard", since: found, retried: true}
}

func instanceForgotten(l *lab) injected {
	instance := l.running()
	l.reconcile()
	return injected{instance: instance, code: "DRIFT", owner: "adapter", subject: subject(instance.ID),
		key: "apps.member.replace", message: "does not know the instance"}
}

// The adapter of contract 1.1 runs a command of its own to observe, its calls are narrowed, and the version names none.
func callsNarrowed(l *lab) injected {
	instance := l.running()
	l.SQL(`UPDATE adapter SET narrow_calls = true`)
	l.observes(adapter.Observation{Health: adapter.HealthUnknown, Message: "its node did not answer"})
	l.work()
	return injected{instance: instance, code: "CALLS_NARROWED", owner: "adapter", subject: subject(instance.ID),
		key: "adapter.register", message: "names nothing"}
}

func instanceUnhealthy(l *lab) injected {
	instance := l.running()
	l.observes(adapter.Observation{Health: adapter.Unhealthy, Message: "the controller has no quorum"})
	l.work()
	return injected{instance: instance, code: "INSTANCE_UNHEALTHY", owner: "adapter", subject: subject(instance.ID),
		key: "apps.member.replace", message: "unhealthy: the controller has no quorum"}
}

func entitlementRevoked(l *lab) injected {
	instance := l.running()
	revoked := time.Now().Add(-2 * time.Hour)
	l.SQL(`UPDATE entitlement SET revoked_at = $1`, revoked)
	return injected{instance: instance, code: "ENTITLEMENT_ENDED", owner: "user", subject: l.app.Slug,
		key: "entitlement.manage", since: revoked}
}

func manifestRetired(l *lab) injected {
	instance := l.running()
	l.SQL(`UPDATE manifest SET stage = 'DEPRECATED' WHERE id = $1`, l.stored.ID)
	l.SQL(`UPDATE manifest SET stage = 'RETIRED' WHERE id = $1`, l.stored.ID)
	return injected{instance: instance, code: "MANIFEST_RETIRED", owner: "user", subject: l.app.Slug,
		key: "apps.instance.update", message: "version 1.0.0"}
}

func adapterTaskFailed(l *lab) injected {
	l.status(running)
	instance, op := l.launch()
	l.work()
	l.until("the adapter works", func() bool { return l.op(op.ID).DispatchAttempt > 0 })
	l.answering(func(*db.NodeTask) (lifecycle.NodeTaskState, string) { return lifecycle.TaskFailed, `{"exitCode":3}` })
	task := l.task(instance, op.ID)
	l.SQL(`UPDATE node_task SET message = 'a word for those who may read tasks', exit_code = 3 WHERE id = $1`, task)
	l.until("the task has failed", func() bool { return l.Ent.NodeTask.GetX(l.Context(), task).EndedAt != nil })
	return injected{op: op, instance: instance, code: "TASK_FAILED", owner: "adapter", subject: subject(task),
		key:     "operation.cancel",
		message: "its last task (run) on node " + l.node.Name + " failed: it ended with exit code 3", retried: true,
		then: "ADAPTER_WORKING"}
}

func adapterSlow(l *lab) injected {
	l.status(running)
	instance, op := l.launch()
	l.work()
	return injected{op: op, instance: instance, code: "ADAPTER_WORKING", owner: "adapter", subject: l.adapter.Name,
		key:     "operation.cancel",
		message: "works on it: forming the cluster", retried: true}
}
