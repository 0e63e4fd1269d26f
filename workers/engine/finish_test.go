package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/event"
)

// finishing is an operation, sent to its adapter, whose one step runs step, and whose success is written by complete.
func finishing(t *testing.T, cancels func() (Answer, error), step func(op ids.ID) Result,
	complete func() error) (kit *platformtest.Kit, op ids.ID) {
	t.Helper()
	kit = platformtest.New(t)
	project := kit.Project(kit.Tenant())
	node, _ := kit.Node(4)
	_, stored := kit.Launchable(project, "apps")
	instance := kit.Instance(project, stored, lifecycle.InstanceRunning, kit.Allocation(project, node))
	op = kit.Operation(instance, lifecycle.MemberCordon, lifecycle.OperationRunning).ID
	kit.SQL(`UPDATE operation SET dispatch_attempt = 1, deadline = now() + interval '1 minute' WHERE id = $1`, op)
	kind := Kind{Kind: lifecycle.MemberCordon, Steps: []Step{{Name: "one", Title: "one", Owner: "platform",
		Run: func(context.Context, *Context) (Result, error) { return step(op), nil }}},
		Complete: func(context.Context, *tx.Tx, *Context, *Locked) (any, string, error) {
			return map[string]any{}, "done", complete()
		},
		Cancel: func(context.Context, *Context) (Answer, error) { return cancels() }}
	stop := run(t, kit, kind)
	t.Cleanup(stop)
	return kit, op
}

// cancelNow asks the operation to stop, as the verb does.
func cancelNow(kit *platformtest.Kit, op ids.ID) {
	kit.SQL(`UPDATE operation SET state = 'CANCELING', cancel_requested_at = now(), next_run_at = now()
		WHERE id = $1`, op)
	kit.Hub.Wake(event.QueueTopic)
}

func eventuallyIs(t *testing.T, kit *platformtest.Kit, op ids.ID, where string) {
	t.Helper()
	require.Eventually(t, func() bool { return kit.Count("operation", "id = $1 AND "+where, op) == 1 }, 20*time.Second,
		10*time.Millisecond, where)
}

func canceled() (Answer, error) {
	return Answer{Outcome: adapter.CancelDone, Message: "stopped in time"}, nil
}

func TestACancelThatMeetsTheFinishingStepIsAsked(t *testing.T) {
	t.Parallel()
	kit, op := finishing(t, canceled, func(ids.ID) Result { return Done(nil) },
		func() error { return errors.New("its success cannot be recorded") })
	eventuallyIs(t, kit, op, "end_refusal ->> 'state' = 'SUCCEEDED'")
	cancelNow(kit, op)
	eventuallyIs(t, kit, op, "state = 'CANCELED' AND cancel_message = 'stopped in time'")
	require.Equal(t, 1, kit.Count("operation_step", "operation_id = $1 AND name = 'finish' AND state = 'SKIPPED'", op))
}

// The worker has read the operation before the cancel is requested, and has the operation's end in hand.
func TestACancelThatCrossesTheEndIsAsked(t *testing.T) {
	t.Parallel()
	var kit *platformtest.Kit
	var ready atomic.Bool
	asked := false // by the one goroutine that holds the operation
	kit, op := finishing(t, canceled, func(op ids.ID) Result {
		if !ready.Load() {
			return Wait(minWait, "", FailureCause{})
		}
		if !asked {
			asked = true
			cancelNow(kit, op)
		}
		return Done(nil)
	}, func() error { return nil })
	ready.Store(true)
	eventuallyIs(t, kit, op, "ended_at IS NOT NULL")
	require.Equal(t, 1, kit.Count("operation", "id = $1 AND state = 'CANCELED' AND cancel_message = 'stopped in time'",
		op))
}

// Nobody can say whether it is too late: neither the question nor its answer keeps the operation from its deadline.
func TestADeadlineIsHonouredThoughNobodyCanBeAskedToStop(t *testing.T) {
	t.Parallel()
	kit, op := finishing(t, func() (Answer, error) { return Answer{}, errors.New("cannot be asked") },
		func(ids.ID) Result { return Wait(minWait, "waits", FailureCause{}) }, func() error { return nil })
	eventuallyIs(t, kit, op, "phase = 'one'")
	cancelNow(kit, op)
	kit.SQL(`UPDATE operation SET deadline = now() + interval '1 second' WHERE id = $1`, op)
	eventuallyIs(t, kit, op, "state = 'FAILED' AND error_code = 'DEADLINE_EXCEEDED'")
}

// The finishing step runs while the step that it sent the operation back to waits: both end with the operation.
func TestAStepThatSentItsOperationBackEndsWithIt(t *testing.T) {
	t.Parallel()
	var back atomic.Bool
	kit, op := finishing(t, canceled, func(ids.ID) Result {
		if back.Load() {
			return Wait(minWait, "something is left", FailureCause{})
		}
		return Done(nil)
	}, func() error {
		back.Store(true)
		return &RerunStep{Step: "one"}
	})
	require.Eventually(t, func() bool {
		return kit.Count("operation_step",
			"operation_id = $1 AND name = 'one' AND state = 'RUNNING' AND message = 'something is left'", op) == 1
	}, 20*time.Second, 10*time.Millisecond)
	kit.SQL(`UPDATE operation SET deadline = now(), next_run_at = now() WHERE id = $1`, op)
	kit.Hub.Wake(event.QueueTopic)
	eventuallyIs(t, kit, op, "state = 'FAILED'")
	require.Zero(t, kit.Count("operation_step", "operation_id = $1 AND ended_at IS NULL", op))
	require.Equal(t, 1, kit.Count("operation_step", "operation_id = $1 AND name = 'finish' AND state = 'SKIPPED'", op))
}
