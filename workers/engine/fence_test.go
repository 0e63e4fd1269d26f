package engine

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/queue"
	"github.com/gpuaas/app-platform/workers/steprow"
)

func TestAWorkerWithoutItsClaimWritesNothingAndKnowsIt(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	project := kit.Project(kit.Tenant())
	node, _ := kit.Node(1)
	_, stored := kit.Launchable(project, "apps")
	instance := kit.Instance(project, stored, lifecycle.InstanceRunning, kit.Allocation(project, node))
	kit.Operation(instance, lifecycle.MembersAdd, lifecycle.OperationRunning)
	worker := ids.New(ids.Worker)
	held, _, err := queue.Claim(t.Context(), kit.DB.Worker(), worker, queue.Want{Limit: 1})
	require.NoError(t, err)
	require.Len(t, held, 1)
	step := &steprow.Row{Dirty: true, OperationStep: &db.OperationStep{
		ID: ids.New(ids.OperationStep), Name: "one", State: lifecycle.StepRunning,
	}}
	c := &Context{
		Op: held[0], Log: slog.New(slog.DiscardHandler), engine: New(Config{DB: kit.DB, Hub: kit.Hub}), kind: &Kind{},
		rows: []*steprow.Row{step}, verdict: "kept",
	}
	require.NoError(t, queue.HandOver(t.Context(), kit.DB.Worker(), worker))

	err = c.Write(t.Context(), func(context.Context, *tx.Tx, *Locked) error {
		require.FailNow(t, "what is fenced is not run")
		return nil
	})
	require.ErrorIs(t, err, queue.ErrFenced)
	require.ErrorIs(t, c.Write(t.Context(), nil), queue.ErrFenced)
	require.True(t, step.Dirty, "it is not stored")
	require.Empty(t, step.Stored)
	require.Equal(t, "kept", c.verdict)
	require.Zero(t, kit.Count("operation_step", ""))
	require.Zero(t, kit.Count("app_instance_event", ""))
}
