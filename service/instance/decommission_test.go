package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

func (b *bundle) teardown(id ids.ID, key string) instance.DecommissionInput {
	return instance.DecommissionInput{InstanceID: id, DeadlineSeconds: 600, Reason: "done with it", IdempotencyKey: key}
}

func TestALaunchUnderWayIsSupersededInEveryState(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		status []lifecycle.InstanceStatus
		states []lifecycle.OperationState
	}{
		"created": {nil, nil},
		"starting": {[]lifecycle.InstanceStatus{lifecycle.InstanceStarting},
			[]lifecycle.OperationState{lifecycle.OperationRunning}},
		"canceling": {[]lifecycle.InstanceStatus{lifecycle.InstanceStarting},
			[]lifecycle.OperationState{lifecycle.OperationRunning, lifecycle.OperationCanceling}},
		"compensating": {[]lifecycle.InstanceStatus{lifecycle.InstanceStarting},
			[]lifecycle.OperationState{lifecycle.OperationRunning, lifecycle.OperationCompensating}},
	} {
		one := b.allocation()
		started, err := b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) {
			in.Name, in.IdempotencyKey, in.AllocationIDs = name, name, []ids.ID{one.ID}
		}))
		require.NoError(t, err)
		for _, status := range c.status {
			b.SQL(`UPDATE instance SET status = $2 WHERE id = $1`, started.Instance.ID, status)
		}
		for _, state := range c.states {
			b.SQL(`UPDATE operation SET state = $2, claim_epoch = claim_epoch + 1
				WHERE id = $1`, started.Operation.ID, state)
		}
		b.SQL(`INSERT INTO operation_step (id, operation_id, tenant_id, project_id, name, ordinal, state)
			SELECT 'stp_' || id, id, tenant_id, project_id, 'x', 0, 'PENDING' FROM operation
			WHERE id = $1`, started.Operation.ID)
		ended, err := b.service.Decommission(b.ctx, b.teardown(started.Instance.ID, name))
		require.NoError(t, err, name)
		require.Equal(t, lifecycle.InstanceStopping, ended.Instance.Status)
		old, err := b.Ent.Operation.Get(t.Context(), started.Operation.ID)
		require.NoError(t, err)
		require.Equal(t, []any{lifecycle.OperationCanceled, operation.Superseded, true},
			[]any{old.State, old.ErrorCode, old.EndedAt != nil}, name)
		require.Equal(t, len(c.states)+1, old.ClaimEpoch, "its worker has lost its claim")
		require.Equal(t, 1, b.Count("operation_step", "operation_id = $1 AND state = 'SKIPPED'", old.ID))
		require.Equal(t, 1, b.Count("operation",
			"id = $1 AND kind = 'INSTANCE_DECOMMISSION' AND state = 'PENDING' AND desired_change -> 'platform' -> "+
				"'supersedes' ->> 0 = $2", ended.Operation.ID, old.ID))
		events, err := b.service.Events(b.ctx, started.Instance.ID, first(10, ""))
		require.NoError(t, err)
		kinds := []string{}
		for _, e := range events.Rows[2:] {
			kinds = append(kinds, e.Type)
		}
		require.Equal(t, []string{string(lifecycle.EventOperationCanceled), string(lifecycle.EventInstanceDeleting),
			string(lifecycle.EventOperationAccepted)}, kinds)
	}
}

func TestARunningInstanceIsStoppedAndAFailedOneStaysFailed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	running := b.launched()
	b.status(running, lifecycle.InstanceStarting, lifecycle.InstanceRunning)
	ended, err := b.service.Decommission(b.ctx, b.teardown(running.Instance.ID, "a"))
	require.NoError(t, err)
	require.Equal(t, lifecycle.InstanceStopping, ended.Instance.Status)
	require.Equal(t, 1, b.Count("instance", "id = $1 AND status = 'STOPPING' AND last_operation_id = $2",
		running.Instance.ID, ended.Operation.ID))
	require.Equal(t, 1, b.Count("operation", "id = $1 AND state = 'SUCCEEDED'", running.Operation.ID),
		"what had ended stays as it ended")
	require.Equal(t, 1, b.Count("audit_entry",
		"allowed AND action = 'decommissionInstance' AND before ->> 'status' = 'RUNNING' AND after ->> 'status' = "+
			"'STOPPING'"))

	third := b.allocation()
	failed, err := b.service.Launch(b.ctx, b.launch(func(in *instance.LaunchInput) {
		in.Name, in.IdempotencyKey, in.AllocationIDs = "failed", "f", []ids.ID{third.ID}
	}))
	require.NoError(t, err)
	b.status(failed, lifecycle.InstanceFailed)
	ended, err = b.service.Decommission(b.ctx, b.teardown(failed.Instance.ID, "b"))
	require.NoError(t, err)
	require.Equal(t, lifecycle.InstanceFailed, ended.Instance.Status)
	require.Equal(t, lifecycle.InstanceDecommission, ended.Operation.Kind)
}

func TestATeardownIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.launched()
	b.status(started, lifecycle.InstanceStarting, lifecycle.InstanceRunning)
	in := b.teardown(started.Instance.ID, "k")
	ended, err := b.service.Decommission(b.ctx, in)
	require.NoError(t, err)
	before := b.written()
	again, err := b.service.Decommission(b.ctx, in)
	require.NoError(t, err)
	require.Equal(t, ended.Operation.ID, again.Operation.ID)
	_, err = b.service.Decommission(b.ctx, b.teardown(started.Instance.ID, "other"))
	platformtest.Refused(t, err, fault.Conflict, "")
	require.Contains(t, fault.From(err).Message, string(ended.Operation.ID))
	in.Reason = "another"
	_, err = b.service.Decommission(b.ctx, in)
	platformtest.Refused(t, err, fault.IdempotencyKeyReused, "input.idempotencyKey")
	require.Equal(t, before, b.written())

	b.SQL(`UPDATE operation SET state = 'RUNNING' WHERE id = $1`, ended.Operation.ID)
	b.SQL(`UPDATE operation SET state = 'SUCCEEDED', ended_at = now() WHERE id = $1`, ended.Operation.ID)
	b.SQL(`UPDATE instance SET status = 'STOPPED', released_at = now()`)
	_, err = b.service.Decommission(b.ctx, b.teardown(started.Instance.ID, "late"))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.instanceId")
	again, err = b.service.Decommission(b.ctx, b.teardown(started.Instance.ID, "k"))
	require.NoError(t, err, "a repeat of what was accepted stays what it was")
	require.Equal(t, lifecycle.OperationSucceeded, again.Operation.State)
}

func TestAFailedTeardownCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.launched()
	b.status(started, lifecycle.InstanceStarting, lifecycle.InstanceRunning)
	ended, err := b.service.Decommission(b.ctx, b.teardown(started.Instance.ID, "a"))
	require.NoError(t, err)
	b.SQL(`UPDATE operation SET state = 'FAILED', ended_at = now() WHERE id = $1`, ended.Operation.ID)
	again, err := b.service.Decommission(b.ctx, b.teardown(started.Instance.ID, "b"))
	require.NoError(t, err)
	require.NotEqual(t, ended.Operation.ID, again.Operation.ID)
	require.Equal(t, lifecycle.InstanceStopping, again.Instance.Status)
}

func TestRefusedTeardownsWriteNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.launched()
	viewer := b.As(b.User(b.tenant, platformtest.In(authz.ProjectMember, b.project)))
	stranger := b.As(b.User(b.Tenant()))
	before := b.written()
	in := b.teardown(started.Instance.ID, "k")
	_, err := b.service.Decommission(viewer, in)
	platformtest.Refused(t, err, fault.Forbidden, "")
	_, err = b.service.Decommission(stranger, in)
	platformtest.Refused(t, err, fault.NotFound, "")
	_, err = b.service.Decommission(b.ctx, b.teardown(ids.New(ids.Instance), "k"))
	platformtest.Refused(t, err, fault.NotFound, "")
	short, wordy, keyless := in, in, in
	short.DeadlineSeconds, wordy.Reason, keyless.IdempotencyKey = 1, long(1_001), ""
	_, err = b.service.Decommission(b.ctx, short)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.deadlineSeconds")
	_, err = b.service.Decommission(b.ctx, wordy)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.reason")
	_, err = b.service.Decommission(b.ctx, keyless)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.idempotencyKey")
	require.Equal(t, before, b.written())
	require.NotEmpty(t, b.denials("apps.instance.delete"))
}

func TestForceHastensATeardownThatIsUnderWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	running := b.launched()
	b.status(running, lifecycle.InstanceStarting, lifecycle.InstanceRunning)
	id := running.Instance.ID
	begun, err := b.service.Decommission(b.ctx, b.teardown(id, "gently"))
	require.NoError(t, err)
	b.SQL(`UPDATE operation SET state = 'RUNNING', dispatch_attempt = 1 WHERE id = $1`, begun.Operation.ID)
	_, err = b.service.Decommission(b.ctx, b.teardown(id, "again"))
	platformtest.Refused(t, err, fault.Conflict)
	forced := b.teardown(id, "now")
	forced.Force = true
	plan, err := b.service.PlanDecommission(b.ctx, forced)
	require.NoError(t, err)
	require.True(t, plan.Allowed)
	hastened, err := b.service.Decommission(b.ctx, forced)
	require.NoError(t, err)
	require.Equal(t, begun.Operation.ID, hastened.Operation.ID, "it is the same operation that goes on by force")
	require.NotNil(t, hastened.Operation.ForcedAt)
	require.Equal(t, 2, hastened.Operation.DispatchAttempt, "its adapter is told of it by another attempt")
	again, err := b.service.Decommission(b.ctx, forced)
	require.NoError(t, err)
	require.Equal(t, begun.Operation.ID, again.Operation.ID, "the key remembers the operation that was hastened")
	other := forced
	other.IdempotencyKey = "once-more"
	_, err = b.service.Decommission(b.ctx, other)
	platformtest.Refused(t, err, fault.Conflict)
	require.Equal(t, 1, b.Count("operation", "instance_id = $1 AND kind = 'INSTANCE_DECOMMISSION'", id))
	require.Equal(t, 1, b.Count("app_instance_event", "instance_id = $1 AND payload ->> 'forced' = 'true'", id))
}
