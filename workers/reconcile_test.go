package workers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestSilentNodeGoesOfflineAndItsLostTasksEnd(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.answering(func(*db.NodeTask) (lifecycle.NodeTaskState, string) { return "", "" })
	w := l.world("quiet", "http://127.0.0.1:1")
	it := l.launch(w, time.Hour)
	old := time.Now().Add(-time.Hour)
	l.own.ComputeNode.UpdateOneID(w.node).SetLastSeenAt(old).ExecX(t.Context())
	task := ids.New(ids.NodeTask)
	l.own.NodeTask.Create().SetID(task).SetTenantID(w.tenant).SetProjectID(w.project).SetInstanceID(it.instance).
		SetMemberID(it.members[0]).
		SetNodeID(w.node).SetKind(lifecycle.TaskRun).SetSpecDigest([]byte{1}).SetState(lifecycle.TaskPending).
		SetTimeoutSeconds(1).
		SetIdempotencyKey("k").SetCreatedAt(old).SaveX(t.Context())
	l.work()
	l.until("the node is OFFLINE", func() bool {
		return l.own.ComputeNode.GetX(t.Context(), w.node).Status == lifecycle.NodeOffline
	})
	l.until("the task has timed out", func() bool {
		return l.own.NodeTask.GetX(t.Context(), task).State == lifecycle.TaskTimedOut
	})
	require.Equal(t, "no agent took it in time", l.own.NodeTask.GetX(t.Context(), task).Message)
}

func TestAdaptersObservationBecomesHealth(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.script("seen")
	it := l.launch(l.world("seen", s.url), time.Minute)
	s.with(func() {
		s.observed = adapter.Observation{Health: adapter.Degraded, Message: "one is slow",
			Members: []adapter.MemberObservation{
				{ID: string(it.members[1]), Health: adapter.Unhealthy, Message: "slow"},
				{ID: "mem_of_somebody_else", Health: adapter.Healthy}}}
	})
	for _, status := range []lifecycle.InstanceStatus{lifecycle.InstanceStarting, lifecycle.InstanceRunning} {
		l.own.Instance.UpdateOneID(it.instance).SetStatus(status).ExecX(t.Context())
	}
	for _, member := range it.members {
		l.own.Member.UpdateOneID(member).SetStatus(lifecycle.MemberJoining).ExecX(t.Context())
		l.own.Member.UpdateOneID(member).SetStatus(lifecycle.MemberActive).ExecX(t.Context())
	}
	l.own.Operation.UpdateOneID(it.create).SetEndedAt(time.Now()).ExecX(t.Context())
	l.work()
	l.until("the instance is degraded", func() bool {
		return l.own.Instance.GetX(t.Context(), it.instance).Health == lifecycle.HealthDegraded
	})
	instance := l.own.Instance.GetX(t.Context(), it.instance)
	require.Equal(t, "one is slow", instance.HealthMessage)
	require.Contains(t, string(instance.Roles), "2 of 2 active")
	require.Equal(t, lifecycle.HealthUnhealthy, l.own.Member.GetX(t.Context(), it.members[1]).Health)
	require.Equal(t, lifecycle.HealthUnknown, l.own.Member.GetX(t.Context(), it.members[0]).Health)
	require.Equal(t, []string{"apps.instance.member_changed", "apps.instance.degraded"}, l.told(it))
}

func TestSecretsThatAreOverAreForgotten(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	person := ids.New(ids.User)
	l.own.User.Create().SetID(person).SetEmail("a@example.com").SetDisplayName("a").SaveX(t.Context())
	for i, ends := range []time.Time{time.Now().Add(-48 * time.Hour), time.Now().Add(-time.Hour)} {
		l.own.LoginCode.Create().SetID(ids.New(ids.LoginLink)).SetUserID(person).SetSecretHash([]byte{byte(i)}).
			SetExpiresAt(ends).SaveX(t.Context())
	}
	l.work()
	l.until("the older one is gone", func() bool { return l.own.LoginCode.Query().CountX(t.Context()) == 1 })
}

func TestIdempotencyKeysAreForgottenAfterThirtyDays(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for name, age := range map[string]time.Duration{"old": 31 * 24 * time.Hour, "young": 29 * 24 * time.Hour} {
		l.own.Idempotency.Create().SetID(name).SetInputDigest([]byte{1}).SetResult([]byte("{}")).
			SetCreatedAt(time.Now().Add(-age)).SaveX(t.Context())
	}
	l.work()
	l.until("the older one is gone", func() bool { return l.own.Idempotency.Query().CountX(t.Context()) == 1 })
	require.Equal(t, "young", l.own.Idempotency.Query().OnlyX(t.Context()).ID)
}
