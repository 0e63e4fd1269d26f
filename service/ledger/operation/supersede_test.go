package operation_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

func TestWhatIsSupersededHasNoOpenStepsAndItsWaitersAreWoken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.Operation(b.made, lifecycle.MembersAdd, lifecycle.OperationRunning)
	second := b.Operation(b.made, lifecycle.MemberDrain, lifecycle.OperationRunning)
	before := b.Operation(b.made, lifecycle.InstanceCreate, lifecycle.OperationSucceeded)
	for _, op := range []ids.ID{first.ID, second.ID, before.ID} {
		b.SQL(`INSERT INTO operation_step (id, tenant_id, project_id, operation_id, name, ordinal, state, message)
			SELECT 'stp_' || right($1, 8) || '_' || named, tenant_id, project_id, id, named, n, named, ''
			FROM operation, unnest(ARRAY['SUCCEEDED', 'RUNNING', 'PENDING']) WITH ORDINALITY AS steps (named, n)
			WHERE id = $1`, op)
	}
	b.SQL(`UPDATE operation_step SET ended_at = now() - interval '1 hour' WHERE state = 'SUCCEEDED'`)
	waiters := map[ids.ID]*event.Waiter{}
	for _, op := range []ids.ID{first.ID, second.ID, before.ID} {
		waiters[op] = b.Hub.Wait(event.OperationTopic(op))
		defer waiters[op].Close()
	}

	_, err := b.teardown()
	require.NoError(t, err)
	for _, op := range []ids.ID{first.ID, second.ID} {
		require.Equal(t, 2, b.Count("operation_step",
			"operation_id = $1 AND state = 'SKIPPED' AND name IN ('RUNNING', 'PENDING') AND ended_at IS NOT NULL", op))
		done := b.Count("operation_step",
			"operation_id = $1 AND state = 'SUCCEEDED' AND ended_at < now() - interval '30 minutes'", op)
		require.Equal(t, 1, done, "what was done stays done")
		require.Len(t, waiters[op].C, 1, "those who wait for %s are woken", op)
	}
	kept := b.Count("operation_step", "operation_id = $1 AND state = name", before.ID)
	require.Equal(t, 3, kept, "it had ended already")
	require.Empty(t, waiters[before.ID].C)
}

// withOpenWork gives an operation a step in each open state and a node task that waits.
func (b *bundle) withOpenWork(op *db.Operation) {
	b.SQL(`INSERT INTO operation_step (id, tenant_id, project_id, operation_id, name, ordinal, state, message)
		SELECT 'stp_' || right($1, 8) || '_' || named, tenant_id, project_id, id, named, n, named, ''
		FROM operation, unnest(ARRAY['UNDOING', 'RUNNING', 'PENDING']) WITH ORDINALITY AS steps (named, n)
		WHERE id = $1`, op.ID)
	b.SQL(`INSERT INTO node_task (id, tenant_id, project_id, instance_id, member_id, node_id, operation_id, kind, spec,
		spec_digest, state, timeout_seconds,
		idempotency_key, created_at) SELECT 'tsk_' || right($1, 20), m.tenant_id, m.project_id, m.instance_id, m.id,
		m.node_id, $1, 'RUN', '{}', '', 'PENDING', 60,
		$1, now() FROM member m WHERE m.instance_id = $2 AND m.node_id IS NOT NULL LIMIT 1`, op.ID, b.made.ID)
}

func TestWhatIsSupersededWhileItIsTakenBackHasNoOpenStepAndItsTasksAreWithdrawn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	op := b.Operation(b.made, lifecycle.MembersAdd, lifecycle.OperationCompensating)
	b.withOpenWork(op)
	var node ids.ID
	require.NoError(t, b.Admin.QueryRow(t.Context(),
		`SELECT node_id FROM node_task WHERE NOT cancel_requested`).Scan((*string)(&node)))
	woken := b.Hub.Wait(event.NodeTopic(node))
	defer woken.Close()
	_, err := b.teardown()
	require.NoError(t, err)
	require.Zero(t, b.Count("operation_step",
		"operation_id = $1 AND state IN ('PENDING', 'RUNNING', 'UNDOING')", op.ID))
	require.Equal(t, 1, b.Count("operation_step",
		"operation_id = $1 AND name = 'UNDOING' AND state = 'FAILED' AND message <> '' AND ended_at IS NOT NULL",
		op.ID))
	require.Equal(t, 1, b.Count("node_task", "operation_id = $1 AND cancel_requested", op.ID))
	require.Len(t, woken.C, 1, "its node is woken")
}

func TestTheTransactionThatEndsAnOperationWithdrawsItsTasks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, end := range []func(ctx context.Context, t *tx.Tx, op *db.Operation) error{
		func(ctx context.Context, t *tx.Tx, op *db.Operation) error {
			return operation.Fail(ctx, t, op, operation.Failure{Code: "INTERNAL", Message: "over"})
		},
		func(ctx context.Context, t *tx.Tx, op *db.Operation) error {
			return operation.Canceled(ctx, t, op, operation.Failure{Code: "CANCELED", Message: "over"})
		},
		func(ctx context.Context, t *tx.Tx, op *db.Operation) error {
			batch := &pgx.Batch{}
			if err := operation.QueueFinish(batch, t, op, lifecycle.OutcomeNormal, map[string]any{},
				"done"); err != nil {
				return err
			}
			return t.SendBatch(ctx, batch).Close()
		},
	} {
		op, other := b.Operation(b.made, lifecycle.MemberDrain, lifecycle.OperationRunning),
			b.Operation(b.made, lifecycle.MemberDrain, lifecycle.OperationRunning)
		b.SQL(`UPDATE operation SET state = 'CANCELING' WHERE id = $1`, op.ID)
		b.withOpenWork(op)
		b.withOpenWork(other)
		require.NoError(t, b.DB.As(t.Context(), authz.System("test"), func(ctx context.Context, t *tx.Tx) error {
			return end(ctx, t, op)
		}))
		require.Equal(t, 1, b.Count("node_task", "operation_id = $1 AND cancel_requested AND ended_at IS NULL", op.ID),
			"the agent says how it ended")
		require.Equal(t, 1, b.Count("node_task", "operation_id = $1 AND NOT cancel_requested", other.ID))
	}
}
