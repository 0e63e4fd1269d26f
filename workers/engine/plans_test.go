package engine

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/workers/lease"
)

// build is a build of the platform that carries out one kind by its own steps.
func build(steps ...Step) Kind {
	return Kind{Kind: lifecycle.MemberCordon, Steps: steps,
		Complete: func(context.Context, *tx.Tx, *Context, *Locked) (any, string, error) {
			return map[string]any{}, "done", nil
		}}
}

// until returns a step that waits until the flag is set.
func until(name string, done *atomic.Bool) Step {
	return Step{Name: name, Title: name, Owner: "platform", Run: func(context.Context, *Context) (Result, error) {
		if done.Load() {
			return Done(nil), nil
		}
		return Wait(minWait, "", FailureCause{}), nil
	}}
}

// run runs a build beside others until the returned function is called.
func run(t *testing.T, kit *platformtest.Kit, kinds ...Kind) (stop func()) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	process := lease.New(kit.DB, log)
	engine := New(Config{DB: kit.DB, Hub: kit.Hub, Log: log, Worker: process, Kinds: kinds})
	require.NoError(t, process.Register(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- engine.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, process.Deregister(context.WithoutCancel(t.Context())))
	}
}

func TestNothingFailsBecauseTwoBuildsRunSideBySide(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	project := kit.Project(kit.Tenant())
	node, _ := kit.Node(4)
	_, stored := kit.Launchable(project, "apps")
	instance := kit.Instance(project, stored, lifecycle.InstanceRunning, kit.Allocation(project, node))
	var released, always atomic.Bool
	always.Store(true)
	older, newer := build(until("one", &released)), build(until("one", &always), until("two", &always))
	require.NotEqual(t, older.Plan(), newer.Plan())
	is := func(where string, op ids.ID) bool { return kit.Count("operation", "id = $1 AND "+where, op) == 1 }
	eventually := func(where string, op ids.ID) {
		t.Helper()
		require.Eventually(t, func() bool { return is(where, op) }, 20*time.Second, 10*time.Millisecond, where)
	}

	begun := kit.Operation(instance, lifecycle.MemberCordon, lifecycle.OperationRunning).ID
	stopOlder := run(t, kit, older)
	eventually("step_plan <> '' AND EXISTS (SELECT FROM operation_step s WHERE s.operation_id = operation.id AND "+
		"s.state = 'RUNNING')", begun)
	stopNewer := run(t, kit, newer)
	for range 4 { // whichever build takes them
		fresh := kit.Operation(instance, lifecycle.MemberCordon, lifecycle.OperationRunning).ID
		kit.Hub.Wake(event.QueueTopic)
		eventually("step_plan <> ''", fresh)
	}
	stopOlder()
	require.True(t, is("state = 'RUNNING' AND platform.plan_known(kind, step_plan) = false", begun),
		"no build that lives knows it, and it says so")
	var epoch int
	require.NoError(t, kit.Admin.QueryRow(t.Context(), `SELECT claim_epoch FROM operation WHERE id = $1`,
		begun).Scan(&epoch))
	after := kit.Operation(instance, lifecycle.MemberCordon, lifecycle.OperationRunning).ID
	eventually("state = 'SUCCEEDED'", after)
	require.Equal(t, 1, kit.Count("operation",
		"id = $1 AND state = 'RUNNING' AND claim_epoch = $2 AND claimed_by IS NULL", begun, epoch), "nobody takes it")
	stopNewer()

	released.Store(true)
	stopBoth := run(t, kit, newer, older) // a build that carries on what the older one began
	defer stopBoth()
	eventually("state = 'SUCCEEDED'", begun)
	require.Zero(t, kit.Count("operation_step", "operation_id = $1 AND name = 'two'", begun),
		"by the steps that it was begun with")
	require.Zero(t, kit.Count("operation", "state = 'FAILED'"))
}

func TestWhatWasBegunBeforePlansWereStoredIsMatchedByItsStepsOrWaits(t *testing.T) {
	t.Parallel()
	kit := platformtest.New(t)
	project := kit.Project(kit.Tenant())
	node, _ := kit.Node(4)
	_, stored := kit.Launchable(project, "apps")
	instance := kit.Instance(project, stored, lifecycle.InstanceRunning, kit.Allocation(project, node))
	var always atomic.Bool
	always.Store(true)
	begun := func(steps ...string) ids.ID {
		op := kit.Operation(instance, lifecycle.MemberCordon, lifecycle.OperationRunning).ID
		kit.SQL(`UPDATE operation SET claim_epoch = 1 WHERE id = $1`, op)
		kit.SQL(`INSERT INTO operation_step (id, tenant_id, project_id, operation_id, name, ordinal, state, message)
			SELECT 'stp_' || right($1, 12) || n, tenant_id, project_id, id, named, n - 1, 'PENDING', ''
			FROM operation, unnest($2::text[]) WITH ORDINALITY AS steps (named, n) WHERE id = $1`, op, steps)
		return op
	}
	same, other := begun("one", "finish"), begun("one", "renamed", "finish")
	stop := run(t, kit, build(until("one", &always)))
	defer stop()
	require.Eventually(t, func() bool {
		return kit.Count("operation", "id = $1 AND state = 'SUCCEEDED'", same) == 1 &&
			kit.Count("operation", "id = $1 AND step_plan = 'unknown'", other) == 1
	}, 20*time.Second, 10*time.Millisecond)
	require.Equal(t, 1, kit.Count("operation", "id = $1 AND state = 'RUNNING' AND claimed_by IS NULL", other),
		"nothing of it is ended")
	require.Equal(t, 3, kit.Count("operation_step", "operation_id = $1 AND state = 'PENDING'", other))
}
