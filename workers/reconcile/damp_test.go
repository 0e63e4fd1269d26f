package reconcile_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// sees is an observation of an instance with one member.
func (l *lab) sees(of *db.Instance, health adapter.Health, status adapter.MemberStatus) adapter.Observation {
	return adapter.Observation{Health: health, Message: "as it is", Members: []adapter.MemberObservation{
		{ID: string(l.member(of).ID), Health: health, Status: status, Message: "its daemon is gone"}}}
}

func TestABlipOfHealthIsNoNews(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	instance := l.running()
	var looks, bad atomic.Int32
	l.on("GET /v1/instances/{id}", func(*http.Request, []byte) (int, any) {
		looks.Add(1)
		health := adapter.Healthy
		if bad.CompareAndSwap(1, 0) {
			health = adapter.Unhealthy
		}
		out := l.sees(instance, health, "")
		out.InstanceID, out.ObservedAt = string(instance.ID), time.Now()
		return http.StatusOK, out
	})
	l.damped(time.Hour)
	l.until("it is healthy", func() bool {
		return l.Ent.Instance.GetX(t.Context(), instance.ID).Health == lifecycle.HealthHealthy
	})
	for range 6 {
		bad.Store(1)
		before := looks.Load()
		l.until("it looks bad once, and well again", func() bool { l.ended(instance); return looks.Load() > before+1 })
	}
	for _, one := range l.told(instance.ID) {
		require.NotContains(t, []string{"apps.instance.unhealthy", "apps.instance.degraded"}, one)
	}
	require.Equal(t, lifecycle.HealthHealthy, l.Ent.Instance.GetX(t.Context(), instance.ID).Health)
}

func TestAMemberThatItsAdapterReportsFailedIsFailedAndTheInstanceRunsOn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	instance := l.running()
	l.SQL(`UPDATE member SET status = 'ACTIVE' WHERE instance_id = $1`, instance.ID)
	l.observes(l.sees(instance, adapter.Unhealthy, adapter.MemberFailed))
	l.reconcile()
	l.until("the member has failed", func() bool { return l.member(instance).Status == lifecycle.MemberFailed })
	member := l.member(instance)
	require.Equal(t, lifecycle.FailureReported, *member.Failure)
	require.Equal(t, "its daemon is gone", member.HealthMessage)
	require.Contains(t, l.told(instance.ID), "apps.instance.member_failed")
	now := l.Ent.Instance.GetX(t.Context(), instance.ID)
	require.Equal(t, lifecycle.InstanceRunning, now.Status)
	require.Equal(t, lifecycle.HealthUnhealthy, now.Health)
	require.NotContains(t, l.told(instance.ID), "apps.instance.failed")
}

func TestAnInstanceThatItsAdapterReportsLostFailsForGood(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	instance := l.running()
	lost := l.sees(instance, adapter.Unhealthy, "")
	lost.Lost = &adapter.OperationError{Code: "STATE_LOST", Message: "its state is gone", Owner: adapter.OwnerAdapter}
	l.observes(lost)
	l.reconcile()
	status := func() lifecycle.InstanceStatus { return l.Ent.Instance.GetX(t.Context(), instance.ID).Status }
	l.until("the instance has failed", func() bool { return status() == lifecycle.InstanceFailed })
	now := l.Ent.Instance.GetX(t.Context(), instance.ID)
	require.Equal(t, "STATE_LOST", now.FailureCode)
	require.Equal(t, "its state is gone", now.FailureMessage)
	require.Contains(t, l.told(instance.ID), "apps.instance.failed")
}

func TestAnInstanceIsNotHealthyWhileAMemberIsOnASilentNode(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	instance := l.running()
	l.SQL(`UPDATE member SET status = 'ACTIVE' WHERE instance_id = $1`, instance.ID)
	l.join(instance, lifecycle.MemberActive)
	l.observes(adapter.Observation{Health: adapter.Healthy, Members: []adapter.MemberObservation{}})
	r, _ := l.reconcile()
	health := func() lifecycle.Health { return l.Ent.Instance.GetX(t.Context(), instance.ID).Health }
	l.until("it is healthy", func() bool { return health() == lifecycle.HealthHealthy })
	l.silence(l.node.ID, time.Minute)
	l.until("it is not", func() bool { return health() != lifecycle.HealthHealthy })
	seen := r.Stats.Observed.Load()
	l.until("it is looked at again", func() bool { l.ended(instance); return r.Stats.Observed.Load() > seen+1 })
	require.NotEqual(t, lifecycle.HealthHealthy, health(), "whatever the adapter says of the whole")
	l.speak(l.node.ID)
	l.until("it is healthy again", func() bool { return health() == lifecycle.HealthHealthy })
}
