package instance_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/instance"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

func rollbackOf(id ids.ID, key string, generation *int) instance.RollbackInput {
	return instance.RollbackInput{InstanceID: id, Generation: generation, DeadlineSeconds: 600, Reason: "a test",
		IdempotencyKey: key}
}

func TestARollbackLeadsToExactlyTheEarlierManifestAndConfig(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.runs()
	id := started.Instance.ID
	before := b.written()
	_, err := b.service.Rollback(b.ctx, rollbackOf(id, "first", nil))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.generation")
	require.Equal(t, before, b.written())

	next := b.version(lifecycle.StageActive, "2.0.0")
	upgraded, err := b.service.Upgrade(b.ctx, upgradeOf(id, "up", func(in *instance.UpgradeInput) {
		in.Version, in.Config = "2.0.0", json.RawMessage(`{"size": 5}`)
	}))
	require.NoError(t, err)
	b.ended(upgraded.Operation.ID, lifecycle.OperationSucceeded)

	one, two, nine, none := 1, 2, 9, 0
	for generation, code := range map[*int]fault.Code{&two: fault.FailedPrecondition, &nine: fault.NotFound,
		&none: fault.NotFound} {
		_, err = b.service.Rollback(b.ctx, rollbackOf(id, "bad", generation))
		platformtest.Refused(t, err, code, "input.generation")
	}
	plan, err := b.service.PlanRollback(b.ctx, rollbackOf(id, "", &one))
	require.NoError(t, err)
	require.True(t, plan.Allowed, "deprecated will do")
	back, err := b.service.Rollback(b.ctx, rollbackOf(id, "back", nil))
	require.NoError(t, err)
	op := b.Ent.Operation.GetX(t.Context(), back.Operation.ID)
	private := operation.PrivateOf(op)
	require.Equal(t, []any{lifecycle.InstanceRollback, next.ID, b.stored.ID, "1.0.0"},
		[]any{op.Kind, private.From.ManifestID, private.To.ManifestID, private.To.Version})
	require.JSONEq(t, `{"size": 2}`, string(private.To.Config))
	b.ended(op.ID, lifecycle.OperationSucceeded)
	found, err := b.service.Generations(b.ctx, []ids.ID{id})
	require.NoError(t, err)
	require.Equal(t, []int{3, 2, 1}, []int{found[id][0].Number, found[id][1].Number, found[id][2].Number},
		"newest first")
}

func TestAfterAFailedUpgradeARollbackLeadsToThePresentGeneration(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.runs()
	id := started.Instance.ID
	upgraded, err := b.service.Upgrade(b.ctx, upgradeOf(id, "up", func(in *instance.UpgradeInput) {
		in.Config = json.RawMessage(`{"size": 5}`)
	}))
	require.NoError(t, err)
	b.ended(upgraded.Operation.ID, lifecycle.OperationFailed)
	require.Equal(t, lifecycle.InstanceRunning, b.Ent.Instance.GetX(t.Context(), id).Status)
	back, err := b.service.Rollback(b.ctx, rollbackOf(id, "back", nil))
	require.NoError(t, err)
	to := operation.PrivateOf(b.Ent.Operation.GetX(t.Context(), back.Operation.ID)).To
	require.Equal(t, b.stored.ID, to.ManifestID)
	require.JSONEq(t, `{"size": 2}`, string(to.Config))
}

func TestARetiredVersionIsNotRolledBackTo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := b.runs()
	b.version(lifecycle.StageActive, "2.0.0")
	upgraded, err := b.service.Upgrade(b.ctx, upgradeOf(started.Instance.ID, "up", func(in *instance.UpgradeInput) {
		in.Version = "2.0.0"
	}))
	require.NoError(t, err)
	b.ended(upgraded.Operation.ID, lifecycle.OperationSucceeded)
	b.SQL(`UPDATE manifest SET stage = 'RETIRED' WHERE id = $1`, b.stored.ID)
	before := b.written()
	_, err = b.service.Rollback(b.ctx, rollbackOf(started.Instance.ID, "back", nil))
	platformtest.Refused(t, err, fault.FailedPrecondition, "input.generation")
	require.Equal(t, before, b.written())
}
