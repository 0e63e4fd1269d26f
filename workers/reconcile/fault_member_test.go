package reconcile_test

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// join gives an instance another member, on a node of its own.
func (l *lab) join(to *db.Instance, status lifecycle.MemberStatus) (*db.Member, *db.ComputeNode) {
	l.Helper()
	node, _ := l.Node(0)
	allocation := l.Allocation(l.project, node)
	l.SQL(`UPDATE allocation SET instance_id = $2 WHERE id = $1`, allocation.ID, to.ID)
	return l.Ent.Member.Create().SetID(ids.New(ids.Member)).SetTenantID(to.TenantID).SetProjectID(to.ProjectID).
		SetInstanceID(to.ID).
		SetComponentKey("worker").SetOrdinal(7).SetStatus(status).SetAllocationID(allocation.ID).SetNodeID(node.ID).
		SaveX(l.Context()), node
}

// askOn requests an operation on members, before any worker runs.
func (l *lab) askOn(instance *db.Instance, kind lifecycle.OperationKind, members ...ids.ID) *db.Operation {
	l.Helper()
	op := l.ask(instance, kind)
	targets, err := json.Marshal(members)
	require.NoError(l.TB, err)
	l.SQL(`UPDATE operation SET targets = $2, desired_change = '{}' WHERE id = $1`, op.ID, targets)
	return op
}

func drainWaits(l *lab) injected {
	began := time.Now().Add(-time.Hour)
	instance := l.running()
	member, _ := l.join(instance, lifecycle.MemberActive)
	op := l.askOn(instance, lifecycle.MemberDrain, member.ID)
	waits := running
	waits.WaitsFor = []adapter.Work{{Kind: "job", ID: "5", MemberID: string(member.ID), Since: began},
		{Kind: "job", ID: "6", MemberID: string(member.ID), Since: began}}
	l.status(waits)
	l.work()
	return injected{op: op, instance: instance, code: "WORK_RUNNING", owner: "user", subject: subject(member.ID),
		key:     "apps.node.operate",
		message: "2 pieces of work to end, first 5", since: began, retried: true, then: "ADAPTER_WORKING"}
}

func drainRejected(l *lab) injected {
	l.on("PUT /v1/operations/{id}", always(http.StatusUnprocessableEntity,
		adapter.ErrorBody{Code: "QUORUM", Message: "it would lose its quorum"}))
	instance := l.running()
	member, _ := l.join(instance, lifecycle.MemberActive)
	op := l.askOn(instance, lifecycle.MemberDrain, member.ID)
	l.work()
	l.until("the drain has failed", func() bool { return l.op(op.ID).EndedAt != nil })
	return injected{instance: instance, code: "OPERATION_FAILED", owner: "adapter", subject: subject(op.ID),
		key:     "operation.retry",
		message: "member drain) failed: ADAPTER_REJECTED: QUORUM: it would lose its quorum",
		since:   *l.op(op.ID).EndedAt}
}

func undoStuck(l *lab) injected {
	l.status(running)
	instance := l.running()
	member, node := l.join(instance, lifecycle.MemberPending)
	op := l.askOn(instance, lifecycle.MembersAdd, member.ID)
	l.work()
	l.until("the adapter works", func() bool { return len(l.op(op.ID).AdapterStatus) > 0 })
	l.silence(node.ID, 40*time.Second)
	l.status(adapter.Status{State: adapter.StateFailed, Members: []adapter.MemberUpdate{},
		Error: &adapter.OperationError{
			Code: "NO_BOOT", Message: "it does not boot", Owner: adapter.OwnerNode}})
	seen := *l.Ent.ComputeNode.GetX(l.Context(), node.ID).LastSeenAt
	return injected{op: op, instance: instance, code: "NODE_OFFLINE", owner: "node", subject: subject(node.ID),
		since: seen, retried: true, then: "COMPENSATING"}
}

func withdrawStuck(l *lab) injected {
	l.status(running)
	instance := l.running()
	member, _ := l.join(instance, lifecycle.MemberPending)
	op := l.askOn(instance, lifecycle.MembersAdd, member.ID)
	l.work()
	l.until("the adapter works", func() bool { return len(l.op(op.ID).AdapterStatus) > 0 })
	l.script.server.CloseClientConnections()
	l.script.server.Close()
	l.SQL(`UPDATE operation SET deadline = now() WHERE id = $1`, op.ID)
	return injected{op: op, instance: instance, code: "ADAPTER_UNAVAILABLE", owner: "adapter", subject: l.adapter.Name,
		message: "cannot be reached", retried: true, then: "COMPENSATING"}
}

func graceRuns(l *lab) injected {
	l.status(running)
	instance := l.running()
	member, _ := l.join(instance, lifecycle.MemberActive)
	op := l.askOn(instance, lifecycle.MemberRemove, member.ID)
	l.SQL(`UPDATE operation SET on_deadline = 'FORCE', deadline = now() + interval '2 seconds' WHERE id = $1`, op.ID)
	l.work()
	return injected{op: op, instance: instance, code: "FORCE_GRACE", owner: "adapter", subject: l.adapter.Name,
		message: "it continues by force", retried: true, then: "ADAPTER_WORKING"}
}

func forceLeft(l *lab) injected {
	l.status(succeeded)
	instance := l.running()
	member, node := l.join(instance, lifecycle.MemberActive)
	l.silence(node.ID, 40*time.Second)
	op := l.askOn(instance, lifecycle.MemberRemove, member.ID)
	l.SQL(`UPDATE operation SET force = true WHERE id = $1`, op.ID)
	l.SQL(`UPDATE compute_node SET status = 'OFFLINE' WHERE id = $1`, node.ID)
	l.work()
	l.until("the removal has ended", func() bool { return l.op(op.ID).EndedAt != nil })
	require.Equal(l.TB, lifecycle.OperationSucceeded, l.op(op.ID).State, l.op(op.ID).ErrorMessage)
	require.Equal(l.TB, lifecycle.OutcomeUnverified, *l.op(op.ID).Outcome)
	orphan := l.Ent.Orphan.Query().OnlyX(l.Context())
	return injected{instance: instance, code: "ORPHAN_LEFT", owner: "node", subject: subject(orphan.ID),
		key: "operation.retry", since: orphan.CreatedAt, retried: true,
		message: "the agent of its node does not report"}
}
