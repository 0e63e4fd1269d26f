package allocation_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/allocation"
)

// used is an allocation of a whole node that an instance of the family uses.
func (b *bench) used(status lifecycle.InstanceStatus, family string) (*db.Allocation, *db.Instance) {
	b.t.Helper()
	node, _ := b.Node(2)
	held := b.Allocation(b.project, node)
	_, stored := b.Launchable(b.project, family)
	return held, b.Instance(b.project, stored, status, held)
}

func release(id ids.ID, key string) allocation.ReleaseInput {
	return allocation.ReleaseInput{AllocationID: id, Reason: "not needed", IdempotencyKey: key}
}

// change is what a release's operation names.
func change(t *testing.T, op *db.Operation) (named struct{ Instance, Decommission ids.ID }) {
	t.Helper()
	require.NoError(t, json.Unmarshal(op.DesiredChange, &named))
	return named
}

func TestAFreeAllocationIsReleased(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	node, _ := b.Node(2)
	held := b.Allocation(b.project, node)
	out, err := b.Release(b.admin, release(held.ID, "k"))
	require.NoError(t, err)
	require.Equal(t, lifecycle.AllocationReleasing, out.Allocation.Status)
	require.Equal(t, out.Operation.ID, *out.Allocation.ReleaseOperationID)
	require.Equal(t, lifecycle.AllocationRelease, out.Operation.Kind)
	require.Equal(t, held.ID, *out.Operation.AllocationID)
	require.Nil(t, out.Operation.InstanceID)
	require.Empty(t, change(t, out.Operation.Operation))
	require.Equal(t, 1, b.Count("operation", ""))
	require.Equal(t, 1, b.Count("allocation", "status = 'RELEASING' AND release_operation_id = $1", out.Operation.ID))
	require.Equal(t, 1, b.Count("audit_entry", "action = 'releaseAllocation' AND reason = 'not needed'"))
	require.Equal(t, []string{"1 apps.allocation.releasing"}, b.told(held))
}

func TestReleaseStopsTheInstanceFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	held, instance := b.used(lifecycle.InstanceRunning, "scheduler")
	out, err := b.Release(b.admin, release(held.ID, "k"))
	require.NoError(t, err)
	named := change(t, out.Operation.Operation)
	require.Equal(t, instance.ID, named.Instance)
	decommission, err := b.Ent.Operation.Get(t.Context(), named.Decommission)
	require.NoError(t, err)
	require.Equal(t, lifecycle.InstanceDecommission, decommission.Kind)
	require.Equal(t, instance.ID, *decommission.InstanceID)
	require.True(t, out.Operation.Deadline.After(decommission.Deadline), "the release waits for the decommission")
	require.Equal(t, 1, b.Count("instance", "status = 'STOPPING' AND last_operation_id = $1", decommission.ID))
	require.Equal(t, 1, b.Count("app_instance_event", "type = 'apps.instance.deleting'"))
	require.Equal(t, 1, b.Count("app_instance_event", "type = 'apps.allocation.releasing' AND operation_id = $1",
		out.Operation.ID))
	var keys []string
	for _, entry := range b.Audit() {
		keys = append(keys, entry.PermissionKey)
	}
	require.ElementsMatch(t, []string{"allocation.release", "scheduler.instance.delete"}, keys)
}

func TestReleaseJoinsADecommissionUnderWay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	held, instance := b.used(lifecycle.InstanceRunning, "apps")
	b.SQL(`UPDATE instance SET status = 'STOPPING' WHERE id = $1`, instance.ID)
	under := b.Operation(instance, lifecycle.InstanceDecommission, lifecycle.OperationRunning)
	out, err := b.Release(b.admin, release(held.ID, "k"))
	require.NoError(t, err)
	require.Equal(t, under.ID, change(t, out.Operation.Operation).Decommission)
	require.True(t, out.Operation.Deadline.After(under.Deadline))
	require.Equal(t, 2, b.Count("operation", ""))
}

func TestReleaseSupersedesALaunchAndWaitsForOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	held, instance := b.used(lifecycle.InstanceStarting, "apps")
	launch := b.Operation(instance, lifecycle.InstanceCreate, lifecycle.OperationRunning)
	_, err := b.Release(b.admin, release(held.ID, "k"))
	require.NoError(t, err)
	require.Equal(t, 1, b.Count("operation", "id = $1 AND state = 'CANCELED' AND error_code = 'SUPERSEDED'", launch.ID))

	held, instance = b.used(lifecycle.InstanceRunning, "apps")
	upgrade := b.Operation(instance, lifecycle.InstanceUpgrade, lifecycle.OperationRunning)
	_, err = b.Release(b.admin, release(held.ID, "k2"))
	platformtest.Refused(t, err, fault.Conflict, "")
	require.ErrorContains(t, err, string(upgrade.ID))
	require.Equal(t, 1, b.Count("allocation", "id = $1 AND status = 'READY'", held.ID), "nothing is written")
}

func TestRepeatedReleases(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	held, _ := b.used(lifecycle.InstanceRunning, "apps")
	first, err := b.Release(b.admin, release(held.ID, "k"))
	require.NoError(t, err)
	again, err := b.Release(b.admin, release(held.ID, "k"))
	require.NoError(t, err)
	require.Equal(t, first.Operation.ID, again.Operation.ID)
	other := release(held.ID, "k")
	other.Reason = "something else"
	_, err = b.Release(b.admin, other)
	platformtest.Refused(t, err, fault.IdempotencyKeyReused, "input.idempotencyKey")
	_, err = b.Release(b.admin, release(held.ID, "k2"))
	platformtest.Refused(t, err, fault.Conflict, "")
	require.ErrorContains(t, err, string(first.Operation.ID))
	require.Equal(t, 2, b.Count("operation", ""))

	b.SQL(`UPDATE operation SET state = 'RUNNING' WHERE id = $1`, first.Operation.ID)
	b.SQL(`UPDATE operation SET state = 'FAILED', ended_at = now() WHERE id = $1`, first.Operation.ID)
	anew, err := b.Release(b.admin, release(held.ID, "k3"))
	require.NoError(t, err, "a release that failed can be asked for again")
	require.NotEqual(t, first.Operation.ID, anew.Operation.ID)
	require.Equal(t, change(t, first.Operation.Operation).Decommission,
		change(t, anew.Operation.Operation).Decommission)

	b.SQL(`UPDATE allocation SET status = 'RELEASED', released_at = now(), instance_id = NULL WHERE id = $1`, held.ID)
	_, err = b.Release(b.admin, release(held.ID, "k4"))
	platformtest.Refused(t, err, fault.FailedPrecondition, "")
	late, err := b.Release(b.admin, release(held.ID, "k3"))
	require.NoError(t, err)
	require.Equal(t, anew.Operation.ID, late.Operation.ID)
}

func TestReleaseOfATornDownInstancesAllocationNeedsNoDecommission(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	held, instance := b.used(lifecycle.InstanceFailed, "apps")
	b.SQL(`UPDATE instance SET released_at = now() WHERE id = $1`, instance.ID)
	_, key := b.ServiceAccount(b.project, authz.AllocationRelease, authz.AllocationRead)
	out, err := b.Release(b.With(key), release(held.ID, "k"))
	require.NoError(t, err, "nothing is stopped, so nothing has to be allowed to stop")
	require.Empty(t, change(t, out.Operation.Operation).Decommission)
	require.Equal(t, 1, b.Count("operation", ""))
}

// TestWhatMayBeLeftOfAnInstanceKeepsItsAllocation: a forced decommission ends before a lost node has proved anything.
func TestWhatMayBeLeftOfAnInstanceKeepsItsAllocation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	held, instance := b.used(lifecycle.InstanceStopped, "apps")
	_, err := b.Release(b.admin, release(held.ID, "k"))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.allocationId")
	require.ErrorContains(t, err, string(instance.ID))
	require.ErrorContains(t, err, "orphans are resolved")
	require.Zero(t, b.Count("operation", ""))
	require.Equal(t, 1, b.Count("allocation", "id = $1 AND status = 'READY'", held.ID))
}

func TestOnlyWhoMayReleases(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	held, _ := b.used(lifecycle.InstanceRunning, "scheduler")
	outsider := b.Tenant()
	_, short := b.ServiceAccount(b.project, authz.AllocationRelease, authz.AllocationRead, authz.AppsInstanceDelete)
	for name, c := range map[string]struct {
		credential string
		code       fault.Code
	}{
		"viewer": {b.Session(b.User(b.tenant, platformtest.In(authz.ProjectViewer, b.project))),
			fault.Forbidden},
		"operator": {b.Session(b.Operator()), fault.Forbidden},
		"another tenant's admin": {b.Session(b.User(outsider, platformtest.Across(authz.TenantAdmin, outsider))),
			fault.NotFound},
		"one who may not stop the app": {short, fault.Forbidden},
	} {
		_, err := b.Release(b.With(c.credential), release(held.ID, "k"))
		require.True(t, fault.Is(err, c.code), "%s: %v", name, err)
	}
	_, err := b.Release(b.admin, release(ids.New(ids.Allocation), "k"))
	platformtest.Refused(t, err, fault.NotFound, "")
	require.Zero(t, b.Count("operation", ""))
	require.Zero(t, b.Count("idempotency", ""))
	require.Zero(t, b.Count("allocation", "status <> 'READY'"))
	require.Zero(t, b.Count("instance", "status <> 'RUNNING'"))
	denied := 0
	for _, entry := range b.Audit() {
		require.False(t, entry.Allowed)
		denied += entry.Repeats
	}
	require.Equal(t, 5, denied)
}

func TestManyReleasesAtOnceMakeOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	held, _ := b.used(lifecycle.InstanceRunning, "apps")
	const callers = 6
	failures := make([]error, callers)
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() { _, failures[i] = b.Release(b.admin, release(held.ID, fmt.Sprint("k", i))) })
	}
	running.Wait()
	won := 0
	for _, err := range failures {
		if err == nil {
			won++
			continue
		}
		platformtest.Refused(t, err, fault.Conflict, "")
	}
	require.Equal(t, 1, won)
	require.Equal(t, 2, b.Count("operation", ""))
}

func TestAReleaseThatMeetsALaunchStopsWhatItLaunched(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	node, _ := b.Node(2)
	held := b.Allocation(b.project, node)
	_, stored := b.Launchable(b.project, "apps")
	conn, err := b.Admin.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	launch, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = launch.Rollback(t.Context()) }()
	_, err = launch.Exec(t.Context(), `SELECT FROM allocation WHERE id = $1 FOR UPDATE`, held.ID)
	require.NoError(t, err)

	type answer struct {
		out *allocation.Released
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		out, err := b.Release(b.admin, release(held.ID, "k"))
		answers <- answer{out, err}
	}()
	require.Eventually(t, func() bool {
		return b.Count("pg_stat_activity", "datname = current_database() AND wait_event_type = 'Lock'") > 0
	}, 10*time.Second, 5*time.Millisecond)
	// The launch commits while the release waits for the allocation: the instance has to be found.
	instance := b.Instance(b.project, stored, lifecycle.InstanceStarting)
	_, err = launch.Exec(t.Context(), `UPDATE allocation SET instance_id = $2 WHERE id = $1`, held.ID, instance.ID)
	require.NoError(t, err)
	require.NoError(t, launch.Commit(t.Context()))
	got := <-answers
	require.NoError(t, got.err)
	require.Equal(t, instance.ID, change(t, got.out.Operation.Operation).Instance)
	require.Equal(t, 1, b.Count("instance", "id = $1 AND status = 'STOPPING'", instance.ID))
}

func TestAReleasesPlanShowsWhatIsGivenBackAndWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	held, instance := b.used(lifecycle.InstanceRunning, "apps")
	node, _ := b.Node(2)
	other := b.Allocation(b.project, node)
	b.SQL(`UPDATE allocation SET sku = 'small'`)
	b.SQL(`UPDATE allocation SET instance_id = $2 WHERE id = $1`, other.ID, instance.ID)
	b.ListPrice("small", "EUR", "2.5")

	plan, err := b.PlanRelease(b.admin, held.ID)
	require.NoError(t, err)
	require.True(t, plan.Allowed)
	require.Equal(t, instance.ID, *plan.InstanceID)
	total := plan.Cost.Totals[0]
	require.Equal(t, []string{"EUR", "5", "2.5", "-2.5", "2.5"},
		[]string{total.Currency, total.Before.String(), total.After.String(), total.Delta.String(),
			total.Left.String()})
	require.Zero(t, b.Count("operation", ""))
	require.Equal(t, 2, b.Count("allocation", "status = 'READY'"))
	require.Equal(t, 1, b.Count("instance", "status = 'RUNNING'"))

	b.ListPrice("small", "EUR", "9")
	in := release(held.ID, "k")
	in.PlanHash = plan.Hash
	_, err = b.Release(b.admin, in)
	platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
	require.Zero(t, b.Count("operation", ""))
	again, err := b.PlanRelease(b.admin, held.ID)
	require.NoError(t, err)
	in.PlanHash = again.Hash
	_, err = b.Release(b.admin, in)
	require.NoError(t, err)

	refused, err := b.PlanRelease(b.admin, held.ID)
	require.NoError(t, err)
	require.False(t, refused.Allowed, "it is under way already")
	require.Equal(t, string(fault.Conflict), *refused.Code)
	require.NotEmpty(t, refused.Reasons)
}
