package reconcile_test

import (
	"context"
	"net/http"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/dial"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/workers"
)

// faults are injected one by one, each into a lab of its own.
var faults = map[string]func(l *lab) injected{
	"no worker runs":                           noWorkerRuns,
	"the worker was killed":                    workerKilled,
	"a backlog of one's own":                   ownBacklog,
	"the adapter is not registered":            adapterUnregistered,
	"the dial policy refuses the adapter":      dialPolicyRefuses,
	"the adapter refuses connections":          connectionRefused,
	"the adapter dies at work":                 adapterDies,
	"the adapter answers 500":                  answering500,
	"the adapter hangs":                        adapterHangs,
	"the adapter answers garbage":              garbage,
	"the adapter answers of another operation": wrongJSON,
	"the adapter refuses the signature":        signatureRefused,
	"a node is silent before the launch":       nodeSilentBefore,
	"a node falls silent at work":              nodeSilentAtWork,
	"a node was retired":                       nodeRetired,
	"an agent takes no tasks":                  taskNotTaken,
	"an agent loses a task":                    taskLost,
	"a readiness probe fails":                  probeFails,
	"residue is left":                          residueLeft,
	"work still runs":                          workRuns,
	"a release waits for a teardown":           releaseWaits,
	"a release waits for a silent node":        releaseWaitsForNode,
	"an allocation is released underneath":     releasedUnderneath,
	"an allocation has failed":                 allocationFailed,
	"a cancel is not answered":                 cancelUnanswered,
	"a deadline has passed unnoticed":          deadlinePassed,
	"a step fails within the platform":         platformTrouble,
	"the adapter rejects the launch":           launchRejected,
	"a member is lost":                         memberLost,
	"a teardown has failed":                    teardownFailed,
	"an orphan is left":                        orphanLeft,
	"the adapter forgot the instance":          instanceForgotten,
	"narrowed calls of an older version":       callsNarrowed,
	"an instance is unhealthy":                 instanceUnhealthy,
	"the entitlement was revoked":              entitlementRevoked,
	"the manifest was retired":                 manifestRetired,
	"the adapter's own task failed":            adapterTaskFailed,
	"the adapter is slow":                      adapterSlow,
	"a drain waits for work":                   drainWaits,
	"a drain is rejected":                      drainRejected,
	"an add is stuck being taken back":         undoStuck,
	"an add cannot be withdrawn":               withdrawStuck,
	"force gives its grace":                    graceRuns,
	"force left something on a dead node":      forceLeft,
}

// running is an adapter's word that it works.
var running = adapter.Status{State: adapter.StateRunning, Phase: "working", Percent: 5, Message: "forming the cluster",
	Members: []adapter.MemberUpdate{}}

// succeeded is an adapter's word that it is done.
var succeeded = adapter.Status{State: adapter.StateSucceeded, Phase: "done", Percent: 100,
	Members: []adapter.MemberUpdate{}}

func noWorkerRuns(l *lab) injected {
	instance, op := l.launch()
	return injected{op: op, instance: instance, code: "NO_WORKER", owner: "platform",
		message: "no worker process is running"}
}

// heartbeat adds a worker process of another machine, which takes nothing, and returns its last heartbeat.
func (l *lab) heartbeat(id string, ago time.Duration) time.Time {
	at := time.Now().Add(-ago)
	l.SQL(`INSERT INTO worker_process (id, host, heartbeat_at, created_at) VALUES ($1, 'elsewhere', $2, now())`, id, at)
	return at
}

func workerKilled(l *lab) injected {
	l.heartbeat("wrk_live", -time.Minute) // far enough ahead for a slow test
	last := l.heartbeat("wrk_dead", 12*time.Second)
	instance, op := l.launch()
	l.SQL(`UPDATE operation SET state = 'RUNNING', claimed_by = 'wrk_dead', next_run_at = now() + interval '1 day'
		WHERE id = $1`, op.ID)
	return injected{op: op, instance: instance, code: "WORKER_LOST", owner: "platform", since: last, retried: true}
}

// hang is an answer that does not come.
func hang(r *http.Request, _ []byte) (int, any) {
	select {
	case <-r.Context().Done():
	case <-time.After(patience):
	}
	return http.StatusServiceUnavailable, adapter.ErrorBody{}
}

func ownBacklog(l *lab) injected {
	l.on("PUT /v1/operations/{id}", hang)
	otherInstance, other := l.launch()
	// before there is a worker: it gives the first up when the adapter has not answered in time
	instance, op := l.launch()
	l.background(func(ctx context.Context) error {
		return workers.Run(ctx, workers.Config{DB: l.DB, Hub: l.Hub, Keys: l.Ring, Dial: dial.Loopback(),
			PlatformURL: "http://127.0.0.1:1/graphql", Log: l.log, Pace: pace, Concurrency: 1})
	})
	l.until("the worker is busy", func() bool {
		if l.op(op.ID).ClaimedBy != nil {
			instance, op, otherInstance, other = otherInstance, other, instance, op
		}
		return l.op(other.ID).ClaimedBy != nil
	})
	return injected{op: op, instance: instance, code: "QUEUED", owner: "platform", key: "operation.cancel",
		message: "among 1 due operations"}
}

func adapterUnregistered(l *lab) injected {
	instance, op := l.launch()
	l.SQL(`DELETE FROM adapter WHERE id = $1`, l.adapter.ID)
	l.work()
	return injected{op: op, instance: instance, code: "ADAPTER_NOT_REGISTERED", owner: "platform",
		subject: l.adapter.Name, key: "adapter.register", retried: true}
}

func (l *lab) address(url string) {
	l.SQL(`UPDATE adapter SET url = $2 WHERE id = $1`, l.adapter.ID, url)
}

func dialPolicyRefuses(l *lab) injected {
	l.address("http://192.0.2.1:80")
	instance, op := l.launch()
	l.work()
	return injected{op: op, instance: instance, code: "DIAL_REFUSED", owner: "platform", subject: l.adapter.Name,
		key: "adapter.register", retried: true}
}

func connectionRefused(l *lab) injected {
	l.address("http://127.0.0.1:1")
	instance, op := l.launch()
	l.work()
	return injected{op: op, instance: instance, code: "ADAPTER_UNAVAILABLE", owner: "adapter", subject: l.adapter.Name,
		message: "cannot be reached", retried: true}
}

func adapterDies(l *lab) injected {
	l.status(running)
	instance, op := l.launch()
	l.work()
	l.until("the adapter works", func() bool { return len(l.op(op.ID).AdapterStatus) > 0 })
	l.script.server.CloseClientConnections()
	l.script.server.Close()
	return injected{op: op, instance: instance, code: "ADAPTER_UNAVAILABLE", owner: "adapter", subject: l.adapter.Name,
		message: "cannot be reached", retried: true}
}

func answering500(l *lab) injected {
	l.on("PUT /v1/operations/{id}", always(http.StatusInternalServerError,
		adapter.ErrorBody{Code: "INTERNAL", Message: "its disk is full"}))
	instance, op := l.launch()
	l.work()
	return injected{op: op, instance: instance, code: "ADAPTER_UNAVAILABLE", owner: "adapter", subject: l.adapter.Name,
		message: "its disk is full", retried: true}
}

func adapterHangs(l *lab) injected {
	l.on("PUT /v1/operations/{id}", hang)
	instance, op := l.launch()
	l.work()
	return injected{op: op, instance: instance, code: "ADAPTER_UNAVAILABLE", owner: "adapter", subject: l.adapter.Name,
		message: "does not answer in time", held: true}
}

func garbage(l *lab) injected {
	l.on("PUT /v1/operations/{id}", always(http.StatusAccepted, raw("<html>welcome</html>")))
	instance, op := l.launch()
	l.work()
	return injected{op: op, instance: instance, code: "ADAPTER_INVALID", owner: "adapter", subject: l.adapter.Name,
		message: "its answer violates the contract", retried: true}
}

func wrongJSON(l *lab) injected {
	other := running
	other.OperationID, other.Attempt = "op_of_somebody_else", 1
	l.on("PUT /v1/operations/{id}", always(http.StatusAccepted, other))
	instance, op := l.launch()
	l.work()
	return injected{op: op, instance: instance, code: "ADAPTER_INVALID", owner: "adapter", subject: l.adapter.Name,
		retried: true}
}

func signatureRefused(l *lab) injected {
	l.on("PUT /v1/operations/{id}", always(http.StatusUnauthorized,
		adapter.ErrorBody{Code: "UNAUTHENTICATED", Message: "wrong issuer"}))
	instance, op := l.launch()
	l.work()
	return injected{op: op, instance: instance, code: "ADAPTER_REFUSES_PLATFORM", owner: "adapter",
		subject: l.adapter.Name, retried: true}
}

// seen returns when the node's agent last reported.
func (l *lab) seen() time.Time { return *l.Ent.ComputeNode.GetX(l.Context(), l.node.ID).LastSeenAt }

func nodeSilentBefore(l *lab) injected {
	l.silence(l.node.ID, 40*time.Second)
	l.work()
	l.until("the node is OFFLINE", func() bool {
		return l.Ent.ComputeNode.GetX(l.Context(), l.node.ID).Status == lifecycle.NodeOffline
	})
	instance, op := l.launch()
	return injected{op: op, instance: instance, code: "NODE_OFFLINE", owner: "node", subject: subject(l.node.ID),
		message: l.node.Name, since: l.seen(), retried: true}
}

func nodeSilentAtWork(l *lab) injected {
	l.status(running)
	instance, op := l.decommission()
	l.work()
	l.until("the adapter works", func() bool { return l.op(op.ID).DispatchAttempt > 0 })
	l.silence(l.node.ID, 40*time.Second)
	return injected{op: op, instance: instance, code: "NODE_OFFLINE", owner: "node", subject: subject(l.node.ID),
		key:   "apps.instance.delete",
		since: l.seen(), retried: true, then: "ADAPTER_WORKING"}
}

func nodeRetired(l *lab) injected {
	l.status(succeeded)
	instance, op := l.decommission()
	l.silence(l.node.ID, 40*time.Second)
	l.SQL(`UPDATE compute_node SET status = 'RETIRED' WHERE id = $1`, l.node.ID)
	l.work()
	return injected{op: op, instance: instance, code: "NODE_RETIRED", owner: "platform", subject: subject(l.node.ID),
		key: "apps.instance.delete", since: l.seen(), retried: true}
}

// idle is an agent that takes nothing.
func idle(*db.NodeTask) (lifecycle.NodeTaskState, string) { return "", "" }

// firstTask waits for the first node task of an operation.
func (l *lab) firstTask(of ids.ID) (task *db.NodeTask) {
	l.until("a task", func() bool {
		for _, one := range l.Ent.NodeTask.Query().AllX(l.Context()) {
			if one.OperationID != nil && *one.OperationID == of {
				task = one
			}
		}
		return task != nil
	})
	return task
}

func taskNotTaken(l *lab) injected {
	l.status(succeeded)
	l.answering(idle)
	instance, op := l.launch()
	l.work()
	task := l.firstTask(op.ID)
	return injected{op: op, instance: instance, code: "TASK_NOT_TAKEN", owner: "node", subject: subject(task.ID),
		message: "has not taken a task (probe)", since: task.CreatedAt, retried: true}
}

func taskLost(l *lab) injected {
	l.status(succeeded)
	l.answering(idle)
	instance, op := l.decommission()
	l.work()
	task := l.firstTask(op.ID)
	l.SQL(`UPDATE node_task SET state = 'RUNNING', started_at = now() - interval '3 minutes', created_at = now() -
		interval '3 minutes' WHERE id = $1`, task.ID)
	over := time.Now().Add(-3*time.Minute + time.Duration(task.TimeoutSeconds)*time.Second)
	return injected{op: op, instance: instance, code: "TASK_OVERDUE", owner: "node", subject: subject(task.ID),
		since: over, retried: true}
}

func probeFails(l *lab) injected {
	l.status(succeeded)
	l.answering(func(task *db.NodeTask) (lifecycle.NodeTaskState, string) {
		if task.Kind == lifecycle.TaskProbe {
			return lifecycle.TaskFailed, `{"ok":false,"detail":"connection refused on 6817"}`
		}
		return healthy(task)
	})
	instance, op := l.launch()
	l.work()
	return injected{op: op, instance: instance, code: "PROBE_FAILING", owner: "adapter",
		subject: subject(l.member(instance).ID), key: "operation.cancel",
		message: "probe answers on node " + l.node.Name + " does not pass: connection refused on 6817", retried: true}
}

func residueLeft(l *lab) injected {
	l.status(succeeded)
	l.answering(func(task *db.NodeTask) (lifecycle.NodeTaskState, string) {
		return lifecycle.TaskSucceeded,
			`{"residue":{"sandbox":true,"processes":[{"pid":7,"command":"stuck"}],"mounts":["/m"],"files":3,"bytes":1,"names":["/a"]}}`
	})
	instance, op := l.decommission()
	l.work()
	return injected{op: op, instance: instance, code: "RESIDUE_LEFT", owner: "node",
		subject: subject(l.member(instance).ID), key: "apps.instance.delete",
		message: "1 processes, 1 mounts, 3 files", retried: true}
}
