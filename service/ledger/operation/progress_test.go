package operation_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	dbevent "github.com/gpuaas/app-platform/ent/generated/db/event"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// What a person can read on an operation before it changes is in the timeline, in its order; a try that fails again
// adds nothing, and its message is dropped once the adapter answers.
func TestTheTimelineHasWhatTheOperationSaidAndNoRetries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	op := b.Operation(b.made, lifecycle.InstanceUpgrade, lifecycle.OperationRunning)
	b.SQL(`UPDATE operation SET dispatch_attempt = 1 WHERE id = $1`, op.ID)
	after := func(since time.Duration, do func(context.Context, *tx.Tx, *db.Instance, *db.Operation) error) {
		t.Helper()
		require.NoError(t, b.DB.As(t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
			instance, err := t.Instance.Get(ctx, b.made.ID)
			if err != nil {
				return err
			}
			row, err := t.Operation.Get(ctx, op.ID)
			if err != nil {
				return err
			}
			instance.UpdatedAt = t.Now.Add(-since)
			return do(ctx, t, instance, row)
		}))
	}
	says := func(since time.Duration, phase, message string, percent int) {
		t.Helper()
		after(since, func(ctx context.Context, t *tx.Tx, instance *db.Instance, op *db.Operation) error {
			return operation.Advance(ctx, t, instance, op, operation.Progress{Phase: phase, Message: message,
				Percent: percent})
		})
	}
	const failed = "it is closed" + operation.TriedAgain
	says(100*time.Millisecond, "dispatch", failed, 5)
	says(100*time.Millisecond, "dispatch", failed, 5)
	says(time.Hour, "dispatch", failed, 5)
	after(100*time.Millisecond, func(ctx context.Context, t *tx.Tx, instance *db.Instance, op *db.Operation) error {
		_, err := operation.Absorb(ctx, t, instance, op, adapter.Status{Attempt: 1, State: adapter.StateRunning,
			Phase: "starting database"})
		return err
	})
	says(100*time.Millisecond, "starting accounting", "starting slurmdbd", 20)
	says(300*time.Millisecond, "restarting", "restarting w1, 1 of 3", 30)
	says(300*time.Millisecond, "restarting", "restarting w2, 2 of 3", 40)
	says(100*time.Millisecond, "restarting", "restarting w3, 3 of 3", 50)
	says(300*time.Millisecond, "restarting", "restarting w3, 3 of 3", 55)
	says(time.Second, "restarting", "restarting w3, 3 of 3", 60)
	var told []string
	for _, one := range b.Ent.Event.Query().Where(dbevent.OperationID(op.ID)).Order(dbevent.BySeq()).AllX(t.Context()) {
		told = append(told, one.Message)
	}
	require.Equal(t, []string{"starting database", "starting slurmdbd", "restarting w1, 1 of 3",
		"restarting w2, 2 of 3", "restarting w3, 3 of 3"}, told)
}

// A line that follows an event within its pace is appended once the operation is quiet, and only once. A line that
// reports a failed try is not, nor is one that a later line has replaced.
func TestTheLastLineBeforeQuietIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	op := b.Operation(b.made, lifecycle.InstanceUpgrade, lifecycle.OperationRunning)
	says := func(since time.Duration, phase, message string, percent int) (untold bool) {
		t.Helper()
		require.NoError(t, b.DB.As(t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
			instance, row := b.Ent.Instance.GetX(ctx, b.made.ID), b.Ent.Operation.GetX(ctx, op.ID)
			instance.UpdatedAt = t.Now.Add(-since)
			return operation.Advance(ctx, t, instance, row, operation.Progress{Phase: phase, Message: message,
				Percent: percent})
		}))
		return b.Ent.Operation.GetX(t.Context(), op.ID).Untold
	}
	told := func() (lines []string) {
		t.Helper()
		require.NoError(t, b.DB.As(t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
			instance, err := t.Instance.Get(ctx, b.made.ID)
			if err != nil {
				return err
			}
			return operation.TellLast(ctx, t, instance, op.ID)
		}))
		for _, one := range b.Ent.Event.Query().Where(dbevent.OperationID(op.ID)).Order(dbevent.BySeq()).
			AllX(t.Context()) {
			lines = append(lines, one.Message)
		}
		return lines
	}
	require.False(t, says(time.Hour, "restarting", "restarting w1", 10))
	require.True(t, says(100*time.Millisecond, "restarting", "restarting w2", 20))
	require.True(t, says(100*time.Millisecond, "restarting", "restarting w3", 30))
	require.True(t, says(100*time.Millisecond, "restarting", "restarting w3", 40), "a percentage takes nothing back")
	require.Equal(t, []string{"restarting w1", "restarting w3"}, told())
	require.Equal(t, []string{"restarting w1", "restarting w3"}, told(), "once")
	require.True(t, says(100*time.Millisecond, "restarting", "restarting w4", 50))
	require.False(t, says(100*time.Millisecond, "restarting", "it is closed"+operation.TriedAgain, 50))
	require.Equal(t, []string{"restarting w1", "restarting w3"}, told())
	require.True(t, says(10*time.Millisecond, "ending", "ending", 60))
	b.SQL(`UPDATE operation SET state = 'SUCCEEDED', ended_at = now() WHERE id = $1`, op.ID)
	require.Equal(t, []string{"restarting w1", "restarting w3"}, told(), "its end is told")
}
