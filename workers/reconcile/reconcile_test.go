package reconcile_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestDriftIsWhatTheAdapterSeesOtherwise(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	other, _ := l.Node(0)
	instance := l.Instance(l.project, l.stored, lifecycle.InstanceRunning, l.Allocation(l.project, l.node),
		l.Allocation(l.project, other))
	members := l.Ent.Member.Query().Order(db.Asc("ordinal")).AllX(t.Context())
	gone := ids.New(ids.Member)
	l.observes(adapter.Observation{Health: adapter.Healthy, Members: []adapter.MemberObservation{
		{ID: string(members[0].ID), Health: adapter.Healthy}, {ID: string(gone), Health: adapter.Degraded}}})
	r, _ := l.reconcile()
	drift := func() string { return string(l.Ent.Instance.GetX(t.Context(), instance.ID).Drift) }
	l.until("the drift is kept", func() bool { return drift() != "" && drift() != "null" })
	require.Contains(t, drift(), `"MEMBER_UNKNOWN"`)
	require.Contains(t, drift(), string(members[1].ID))
	require.Contains(t, drift(), `"MEMBER_STRAY"`)
	require.Contains(t, drift(), string(gone))
	require.NotContains(t, drift(), string(members[0].ID))
	require.NotNil(t, l.Ent.Instance.GetX(t.Context(), instance.ID).ObservedAt)
	found := l.ofInstance(instance.ID)
	require.Equal(t, "DRIFT", found[0].Code)
	require.Contains(t, []string{string(members[1].ID), string(gone)}, found[0].Subject)

	first := found[0].Since
	seen := r.Stats.Observed.Load()
	l.ended(instance) // wakes a look
	l.until("it is looked at again", func() bool { return r.Stats.Observed.Load() > seen })
	require.Equal(t, first, l.ofInstance(instance.ID)[0].Since, "since when is not forgotten")

	l.observes(adapter.Observation{Health: adapter.Healthy, Members: []adapter.MemberObservation{
		{ID: string(members[0].ID), Health: adapter.Healthy}, {ID: string(members[1].ID), Health: adapter.Healthy}}})
	l.ended(instance)
	l.until("the drift is over", func() bool { return drift() == "" || drift() == "null" })
	require.Empty(t, l.ofInstance(instance.ID))
}

// ended adds an operation on the instance that has ended now, and wakes the reconciler.
func (l *lab) ended(instance *db.Instance) {
	l.Helper()
	l.Operation(instance, lifecycle.MemberLabel, lifecycle.OperationSucceeded)
	l.Hub.Wake("ended")
}

func TestAnInstanceThatItsAdapterDoesNotKnowDrifts(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	instance := l.running()
	l.reconcile()
	l.until("the drift is kept", func() bool {
		found := l.ofInstance(instance.ID)
		return len(found) > 0 && found[0].Code == "DRIFT" &&
			found[0].Message == "its adapter does not know the instance"
	})
}

func TestHealthIsToldOnceForEachChange(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	instance := l.running()
	r, _ := l.reconcile()
	for _, health := range []adapter.Health{adapter.Healthy, adapter.Degraded, adapter.Unhealthy, adapter.Healthy} {
		l.observes(adapter.Observation{Health: health,
			Members: []adapter.MemberObservation{{ID: string(l.member(instance).ID), Health: health}}})
		for range 2 { // twice the same is told once
			seen := r.Stats.Observed.Load()
			l.until("it is seen", func() bool { l.ended(instance); return r.Stats.Observed.Load() > seen })
		}
	}
	l.until("all is stored", func() bool {
		return l.Ent.Instance.GetX(t.Context(), instance.ID).Health == lifecycle.HealthHealthy
	})
	var whole []string
	for _, one := range l.told(instance.ID) {
		if one != "apps.instance.member_changed" {
			whole = append(whole, one)
		}
	}
	require.Equal(t, []string{"apps.instance.healthy", "apps.instance.degraded", "apps.instance.unhealthy",
		"apps.instance.healthy"}, whole)
	require.Len(t, l.told(instance.ID), 8)
}

func TestMembersOfASilentNodeAreUnknownUntilItIsBackAndOperationsAreWoken(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	instance := l.running()
	member := l.member(instance)
	l.observes(adapter.Observation{Health: adapter.Healthy,
		Members: []adapter.MemberObservation{{ID: string(member.ID), Health: adapter.Healthy}}})
	r, _ := l.reconcile()
	health := func() lifecycle.Health { return l.Ent.Member.GetX(t.Context(), member.ID).Health }
	l.until("the member is healthy", func() bool { return health() == lifecycle.HealthHealthy })
	op := l.Operation(instance, lifecycle.InstanceUpgrade, lifecycle.OperationRunning)
	parked := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	l.SQL(`UPDATE operation SET next_run_at = $2 WHERE id = $1`, op.ID, parked)

	l.silence(l.node.ID, time.Minute)
	l.until("the member is unknown", func() bool { return health() == lifecycle.HealthUnknown })
	require.Equal(t, "the agent of node "+l.node.Name+" does not report",
		l.Ent.Member.GetX(t.Context(), member.ID).HealthMessage)
	require.Equal(t, lifecycle.NodeOffline, l.Ent.ComputeNode.GetX(t.Context(), l.node.ID).Status)
	l.until("the operation is woken", func() bool { return l.op(op.ID).NextRunAt.Before(parked) })
	told := len(l.told(instance.ID))
	seen := r.Stats.Observed.Load()
	l.until("it is looked at again", func() bool { l.ended(instance); return r.Stats.Observed.Load() > seen+1 })
	require.Equal(t, lifecycle.HealthUnknown, health(),
		"the adapter's good word counts for nothing while the agent is not heard")
	require.Len(t, l.told(instance.ID), told, "and nothing is told twice")

	l.SQL(`UPDATE operation SET next_run_at = $2 WHERE id = $1`, op.ID, parked)
	l.speak(l.node.ID)
	l.until("the member is healthy again", func() bool { return health() == lifecycle.HealthHealthy })
	require.Empty(t, l.Ent.Member.GetX(t.Context(), member.ID).HealthMessage)
	l.until("the operation is woken", func() bool { return l.op(op.ID).NextRunAt.Before(parked) })
}

func TestTheLineBeforeQuietComesIntoTheTimeline(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	instance := l.running()
	quiet := l.Operation(instance, lifecycle.InstanceUpgrade, lifecycle.OperationRunning)
	l.SQL(`UPDATE operation SET untold = true, phase = 'restarting', message = 'restarting w3, 3 of 3'
		WHERE id = $1`, quiet.ID)
	over := l.Operation(instance, lifecycle.InstanceUpgrade, lifecycle.OperationSucceeded)
	l.SQL(`UPDATE operation SET untold = true, message = 'over', ended_at = now() WHERE id = $1`, over.ID)
	l.SQL(`UPDATE instance SET updated_at = now() - interval '2 seconds' WHERE id = $1`, instance.ID)
	l.reconcile()
	l.until("it is told", func() bool { return !l.op(quiet.ID).Untold })
	require.Equal(t, 1, l.Count("app_instance_event",
		"type = 'apps.operation.progress' AND message = 'restarting w3, 3 of 3'"))
	require.True(t, l.op(over.ID).Untold)
	require.Zero(t, l.Count("app_instance_event", "message = 'over'"))
}

func TestWhatIsStuckIsSetGoing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.answering(func(*db.NodeTask) (lifecycle.NodeTaskState, string) { return "", "" })
	instance := l.running()
	held := l.Operation(instance, lifecycle.InstanceUpgrade, lifecycle.OperationRunning)
	l.SQL(`UPDATE operation SET claimed_by = 'wrk_dead', next_run_at = now() + interval '1 day' WHERE id = $1`, held.ID)
	l.SQL(`INSERT INTO worker_process (id, host, heartbeat_at, created_at)
		VALUES ('wrk_dead', 'h', now() - interval '1 minute', now())`)
	sleeper := l.Operation(instance, lifecycle.MemberLabel, lifecycle.OperationRunning)
	l.SQL(`UPDATE operation SET deadline = now() - interval '2 minutes', next_run_at = now() + interval '1 hour'
		WHERE id = $1`, sleeper.ID)
	due := l.Operation(instance, lifecycle.MemberCordon, lifecycle.OperationPending)
	l.SQL(`UPDATE operation SET next_run_at = now() - interval '5 minutes', failures = 12 WHERE id = $1`, due.ID)
	over := l.Operation(instance, lifecycle.InstanceCreate, lifecycle.OperationFailed)
	l.SQL(`UPDATE operation SET ended_at = now() - interval '1 minute' WHERE id = $1`, over.ID)
	l.SQL(`UPDATE operation SET end_refusal = '{"state": "FAILED", "times": 1}'
		WHERE id = ANY ($1)`, []ids.ID{due.ID, sleeper.ID, over.ID})
	l.SQL(`UPDATE operation SET error_code = 'END_REFUSED' WHERE id = $1`, over.ID)
	outlived, current := l.task(instance, over.ID), l.task(instance, due.ID)
	forced := l.Operation(instance, lifecycle.InstanceDecommission, lifecycle.OperationRunning)
	l.SQL(`UPDATE operation SET deadline = now() - interval '2 minutes', next_run_at = now() + interval '1 hour',
		forced_at = now() WHERE id = $1`, forced.ID)
	r, _ := l.reconcile()
	l.until("the claim is free", func() bool { return l.op(held.ID).ClaimedBy == nil })
	l.until("the sleeper is due", func() bool { return !l.op(sleeper.ID).NextRunAt.After(time.Now()) })
	l.until("the queue is known to stand", func() bool { return r.Stats.Overdue.Load() == 1 })
	l.counts(&r.Stats.Failing, 1)
	l.counts(&r.Stats.EndsRefused, 2)
	l.counts(&r.Stats.EndedBare, 1)
	require.InDelta(t, 300, r.Stats.OldestDue.Load(), 30)
	l.until("the outlived task is to end", func() bool {
		return l.Ent.NodeTask.GetX(t.Context(), outlived).CancelRequested
	})
	require.False(t, l.Ent.NodeTask.GetX(t.Context(), current).CancelRequested)
	require.True(t, l.op(forced.ID).NextRunAt.After(time.Now().Add(time.Minute)), "force has a time of its own")
	l.counts(&r.Stats.ClaimsFreed, 1)
	l.counts(&r.Stats.SleepersWoken, 1)
}

// counts waits until a figure has its value: it is counted after the commit that the test sees.
func (l *lab) counts(figure *atomic.Int64, want int64) {
	l.Helper()
	l.until("it is counted", func() bool { return figure.Load() == want })
}

// task is an open task of an operation on the instance's member.
func (l *lab) task(on *db.Instance, operation ids.ID) ids.ID {
	l.Helper()
	id := ids.New(ids.NodeTask)
	member := l.member(on)
	l.Ent.NodeTask.Create().SetID(id).SetTenantID(on.TenantID).SetProjectID(on.ProjectID).SetInstanceID(on.ID).
		SetMemberID(member.ID).
		SetNodeID(*member.NodeID).SetOperationID(operation).SetKind(lifecycle.TaskRun).SetSpecDigest([]byte{1}).
		SetState(lifecycle.TaskPending).
		SetTimeoutSeconds(60).SetIdempotencyKey(string(id)).SetCreatedAt(time.Now()).SaveX(l.Context())
	return id
}

func TestTasksThatNoAgentEndsAreEnded(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.answering(func(*db.NodeTask) (lifecycle.NodeTaskState, string) { return "", "" })
	instance := l.running()
	op := l.Operation(instance, lifecycle.InstanceUpgrade, lifecycle.OperationRunning)
	lost, slow := l.task(instance, op.ID), l.task(instance, op.ID)
	l.SQL(`UPDATE node_task SET created_at = now() - interval '12 minutes', started_at = now() - interval '12 minutes',
		state = 'RUNNING' WHERE id = $1`, lost)
	l.SQL(`UPDATE node_task SET created_at = now() - interval '5 minutes' WHERE id = $1`, slow)
	r, _ := l.reconcile()
	l.until("the lost task has ended", func() bool {
		return l.Ent.NodeTask.GetX(t.Context(), lost).State == lifecycle.TaskTimedOut
	})
	require.Equal(t, "its agent did not report again", l.Ent.NodeTask.GetX(t.Context(), lost).Message)
	require.Equal(t, lifecycle.TaskPending, l.Ent.NodeTask.GetX(t.Context(), slow).State,
		"an agent that is heard gets ten minutes")
	l.counts(&r.Stats.TasksEnded, 1)
}

func TestAllocationsThatNobodyCanUseAreFreedOrFail(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	gone, kept := l.running(), l.running()
	l.SQL(`UPDATE instance SET status = 'STOPPING' WHERE id = ANY ($1)`, []ids.ID{gone.ID, kept.ID})
	l.SQL(`UPDATE instance SET status = 'STOPPED', released_at = now() WHERE id = ANY ($1)`, []ids.ID{gone.ID, kept.ID})
	held := *l.member(kept).AllocationID
	l.SQL(`INSERT INTO orphan (id, tenant_id, project_id, kind, instance_id, allocation_id, next_try_at, created_at)
		VALUES ('orp_1', $1, $2, 'NODE_RESIDUE', $3, $4, now() + interval '1 day',
		now())`, kept.TenantID, kept.ProjectID, kept.ID, held)
	old, young := l.Allocation(l.project, l.node), l.Allocation(l.project, l.node)
	l.SQL(`DELETE FROM allocation WHERE id = ANY ($1)`, []ids.ID{old.ID, young.ID})
	for id, age := range map[ids.ID]time.Duration{old.ID: 11 * time.Minute, young.ID: 9 * time.Minute} {
		l.Ent.Allocation.Create().SetID(id).SetTenantID(l.project.TenantID).SetProjectID(l.project.ID).
			SetShape(lifecycle.ShapeBaremetal).
			SetGpuCount(0).SetStatus(lifecycle.AllocationRequested).SetCreatedAt(time.Now().Add(-age)).
			SaveX(t.Context())
	}
	l.reconcile()
	bound := func(id ids.ID) bool { return l.Ent.Allocation.GetX(t.Context(), id).InstanceID != nil }
	l.until("the allocation is free", func() bool { return !bound(*l.member(gone).AllocationID) })
	l.until("the old request has failed", func() bool {
		return l.Ent.Allocation.GetX(t.Context(), old.ID).Status == lifecycle.AllocationFailed
	})
	require.True(t, bound(held), "an orphan keeps its allocation")
	require.Equal(t, lifecycle.AllocationRequested, l.Ent.Allocation.GetX(t.Context(), young.ID).Status)
}

func TestMembersInReleasedAllocationsDrift(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	instance := l.running()
	member := l.member(instance)
	l.SQL(`UPDATE allocation SET status = 'RELEASING' WHERE id = $1`, *member.AllocationID)
	l.SQL(`UPDATE allocation SET status = 'RELEASED', released_at = now(), instance_id = NULL WHERE id = $1`,
		*member.AllocationID)
	l.observes(adapter.Observation{Health: adapter.Healthy})
	l.reconcile()
	l.until("it is known", func() bool {
		found := l.ofInstance(instance.ID)
		return len(found) == 2 && found[0].Code == "ALLOCATION_LOST" && found[1].Code == "DRIFT"
	})
	require.Equal(t, string(member.ID), l.ofInstance(instance.ID)[1].Subject)
}

func TestCredentialsThatAreOverAreForgotten(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ServiceAccount(l.project, authz.AppsInstanceRead)
	l.ServiceAccount(l.project, authz.AppsInstanceRead)
	keys := l.Ent.ServiceAccountKey.Query().Order(db.Asc("id")).AllX(t.Context())
	l.SQL(`UPDATE service_account_key SET expires_at = now() - interval '31 days' WHERE id = $1`, keys[0].ID)
	l.SQL(`UPDATE service_account_key SET expires_at = now() - interval '29 days' WHERE id = $1`, keys[1].ID)
	l.Node(0)
	l.SQL(`UPDATE node_credential SET expires_at = now() - interval '25 hours' WHERE node_id = $1`, l.node.ID)
	l.reconcile()
	l.until("the old key is gone", func() bool { return l.Count("service_account_key", "") == 1 })
	require.Equal(t, keys[1].ID, l.Ent.ServiceAccountKey.Query().OnlyX(t.Context()).ID)
	l.until("the old credential is gone", func() bool { return l.Count("node_credential", "") == 1 })
}

func TestOneProcessReconcilesAtATimeAndAnotherTakesOver(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.running()
	l.observes(adapter.Observation{Health: adapter.Healthy})
	first, stop := l.reconcile()
	l.until("the first looks", func() bool { return first.Stats.Observed.Load() > 0 })
	second, _ := l.reconcile()
	l.ended(l.Ent.Instance.Query().OnlyX(t.Context()))
	seen := first.Stats.Observed.Load()
	l.until("the first looks again", func() bool {
		l.ended(l.Ent.Instance.Query().OnlyX(t.Context()))
		return first.Stats.Observed.Load() > seen
	})
	require.Zero(t, second.Stats.Observed.Load())
	stop()
	l.until("the second has taken over", func() bool { return second.Stats.Observed.Load() > 0 })
}

func TestAnAdapterThatDoesNotAnswerIsNoObservation(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	instance := l.running()
	l.SQL(`UPDATE instance SET health = 'HEALTHY', drift = '[{"code":"MEMBER_UNKNOWN","message":"m"}]', observed_at
		= now() - interval '1 hour' WHERE id = $1`, instance.ID)
	l.on("GET /v1/instances/{id}", always(http.StatusServiceUnavailable,
		adapter.ErrorBody{Code: "BUSY", Message: "later"}))
	l.reconcile()
	l.until("its health is unknown", func() bool {
		l.ended(instance)
		return l.Ent.Instance.GetX(t.Context(), instance.ID).Health == lifecycle.HealthUnknown
	})
	row := l.Ent.Instance.GetX(t.Context(), instance.ID)
	require.Contains(t, row.HealthMessage, "later")
	require.WithinDuration(t, time.Now().Add(-time.Hour), *row.ObservedAt, time.Minute)
	require.Contains(t, string(row.Drift), "MEMBER_UNKNOWN", "what it saw last still counts")
}
