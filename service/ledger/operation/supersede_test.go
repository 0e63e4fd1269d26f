package operation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/ledger/event"
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
