package operation_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// teardown tears the bundle's instance down in a transaction of its own.
func (b *bundle) teardown() (op *db.Operation, err error) {
	err = b.DB.Write(b.admin, func(ctx context.Context, t *tx.Tx) error {
		row, err := t.Instance.Get(ctx, b.made.ID)
		require.NoError(b.t, err)
		op, err = operation.Teardown(ctx, t, row, operation.Draft{ID: ids.New(ids.Operation), DeadlineSeconds: 60,
			Reason: "over"})
		return err
	})
	return op, err
}

func TestATeardownGivesWayToTeardownsAndChangesOfVersion(t *testing.T) {
	t.Parallel()
	for _, kind := range []lifecycle.OperationKind{lifecycle.InstanceDecommission, lifecycle.InstanceUpgrade,
		lifecycle.InstanceRollback} {
		b := setup(t)
		open := b.Operation(b.made, kind, lifecycle.OperationRunning)
		_, err := b.teardown()
		platformtest.Refused(t, err, fault.Conflict, "")
		require.Contains(t, fault.From(err).Message, string(open.ID))
		require.Equal(t, fault.OperationInTheWay, fault.From(err).Reasons[0].Code)
		require.Equal(t, 1, b.Count("operation", ""))
		require.Equal(t, 1, b.Count("instance", "status = 'RUNNING'"))
		require.Zero(t, b.Count("app_instance_event", ""))
	}
}

func TestATeardownSupersedesALaunchAndEveryOperationOfMembers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var open []ids.ID
	for _, kind := range []lifecycle.OperationKind{lifecycle.MembersAdd, lifecycle.MemberDrain,
		lifecycle.MemberReplace} {
		open = append(open, b.Operation(b.made, kind, lifecycle.OperationRunning).ID)
	}
	op, err := b.teardown()
	require.NoError(t, err)
	require.Equal(t, open, operation.PrivateOf(op).Supersedes)
	require.Equal(t, 3, b.Count("operation", "state = 'CANCELED' AND error_code = $1 AND ended_at IS NOT NULL",
		operation.Superseded))
	require.Equal(t, 3, b.Count("app_instance_event", "type = $1", lifecycle.EventOperationCanceled))
}

func TestATeardownIsStoredWithItsDeadlineAndWakesTheWorkers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Operation(b.made, lifecycle.InstanceCreate, lifecycle.OperationSucceeded)
	queue := b.Hub.Wait(event.QueueTopic)
	defer queue.Close()
	op, err := b.teardown()
	require.NoError(t, err)
	select {
	case <-queue.C:
	case <-time.After(20 * time.Second):
		require.FailNow(t, "the workers were not woken")
	}
	stored, err := b.Ent.Operation.Get(t.Context(), op.ID)
	require.NoError(t, err)
	require.Equal(t, []any{lifecycle.InstanceDecommission, lifecycle.OperationPending, "over", b.made.RuntimeBackend},
		[]any{stored.Kind, stored.State, stored.Reason, stored.AdapterName})
	require.WithinDuration(t, stored.CreatedAt.Add(time.Minute), stored.Deadline, time.Second)
	require.False(t, stored.NextRunAt.After(stored.CreatedAt), "it is due at once")
	require.Equal(t, 1, b.Count("instance", "status = 'STOPPING' AND last_operation_id = $1 AND revision = 2", op.ID))
}

func TestTheOpenOperationIsTheOneThatHasNotEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	open := func() (op *db.Operation) {
		require.NoError(t, b.DB.Write(b.admin, func(ctx context.Context, w *tx.Tx) (err error) {
			op, err = operation.Open(ctx, w, b.made.ID)
			return err
		}))
		return op
	}
	require.Nil(t, open())
	b.Operation(b.made, lifecycle.InstanceCreate, lifecycle.OperationSucceeded)
	b.Operation(b.instance(), lifecycle.InstanceCreate, lifecycle.OperationRunning) // another instance's
	require.Nil(t, open())
	running := b.Operation(b.made, lifecycle.InstanceDecommission, lifecycle.OperationRunning)
	require.Equal(t, running.ID, open().ID)
}

func TestDeadlinesHaveBounds(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int{operation.MinDeadline, 600, operation.MaxDeadline} {
		require.NoError(t, operation.CheckDeadline(seconds))
	}
	for _, seconds := range []int{operation.MinDeadline - 1, 0, -1, operation.MaxDeadline + 1} {
		platformtest.Refused(t, operation.CheckDeadline(seconds), fault.InvalidArgument, "input.deadlineSeconds")
	}
}
