package workers_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// rule is one kind of operation as data: what the adapter says when it goes well, and what the world is
// after each way it can end.
type rule struct {
	kind             lifecycle.OperationKind
	second, newcomer adapter.MemberStatus // what is said of members at a good end
	good             string               // the world after that
	failed           string               // after the adapter's failure, which says nothing of members
	rejected         string               // after a refusal for safety
	canceled         string               // after a cancel that the adapter follows; empty when it cannot be canceled
	late             string               // after the deadline, when the adapter then stops
	// events are appended exactly once at a good end.
	events []string
	steps  int
}

const (
	asBefore = " | ACTIVE ACTIVE | 2 of 2 | theirs ready bound free ready | generation 1 1.0.0 | orphans 0"
	takenOff = " | ACTIVE ACTIVE REMOVED | 2 of 2 | theirs ready bound free released | generation 1 1.0.0 | orphans 0"
	stopping = " | REMOVING REMOVING | 0 of 2 | theirs ready bound free ready | generation 1 1.0.0 | orphans 0"
	halfway  = " | ACTIVE DRAINING+cordoned | 2 of 2 | theirs ready bound free ready | generation 1 1.0.0 | orphans 0"
)

var rules = []rule{
	{kind: lifecycle.MembersAdd, newcomer: adapter.MemberActive, steps: 5,
		late: "FAILED DEADLINE_EXCEEDED" + takenOff,
		good: "SUCCEEDED NORMAL | ACTIVE ACTIVE ACTIVE | 3 of 3 | theirs ready bound free ready bound | generation 1 " +
			"1.0.0 | orphans 0",
		failed: "FAILED ADAPTER_FAILED" + takenOff, rejected: "FAILED ADAPTER_REJECTED" + takenOff,
		canceled: "CANCELED CANCELED" + takenOff,
		events:   []string{"apps.instance.member_added"}},
	{kind: lifecycle.MemberDrain, second: adapter.MemberDrained, steps: 5,
		late: "FAILED DEADLINE_EXCEEDED" + asBefore,
		good: "SUCCEEDED NORMAL | ACTIVE DRAINED+cordoned | 2 of 2 | theirs ready bound free ready | generation 1 " +
			"1.0.0 | orphans 0",
		failed: "FAILED ADAPTER_FAILED" + halfway, rejected: "FAILED ADAPTER_REJECTED" + asBefore,
		canceled: "CANCELED CANCELED" + asBefore,
		events:   []string{"apps.instance.member_drained"}},
	{kind: lifecycle.MemberCordon, steps: 4,
		late: "FAILED DEADLINE_EXCEEDED" + asBefore,
		good: "SUCCEEDED NORMAL | ACTIVE ACTIVE+cordoned | 2 of 2 | theirs ready bound free ready | generation 1 " +
			"1.0.0 | orphans 0",
		failed: "FAILED ADAPTER_FAILED" + asBefore, rejected: "FAILED ADAPTER_REJECTED" + asBefore,
		canceled: "CANCELED CANCELED" + asBefore},
	{kind: lifecycle.MemberUncordon, steps: 4,
		late: "FAILED DEADLINE_EXCEEDED | ACTIVE DRAINED+cordoned | 2 of 2 | theirs ready bound free ready | " +
			"generation 1 1.0.0 | orphans 0",
		good: "SUCCEEDED NORMAL" + asBefore,
		failed: "FAILED ADAPTER_FAILED | ACTIVE DRAINED+cordoned | 2 of 2 | theirs ready bound free ready | " +
			"generation 1 1.0.0 | orphans 0",
		rejected: "FAILED ADAPTER_REJECTED | ACTIVE DRAINED+cordoned | 2 of 2 | theirs ready bound free ready | " +
			"generation 1 1.0.0 | orphans 0",
		canceled: "CANCELED CANCELED | ACTIVE DRAINED+cordoned | 2 of 2 | theirs ready bound free ready | generation " +
			"1 1.0.0 | orphans 0"},
	{kind: lifecycle.MemberLabel, steps: 4,
		late:   "FAILED DEADLINE_EXCEEDED" + asBefore,
		good:   "SUCCEEDED NORMAL" + asBefore,
		failed: "FAILED ADAPTER_FAILED" + asBefore, rejected: "FAILED ADAPTER_REJECTED" + asBefore,
		canceled: "CANCELED CANCELED" + asBefore},
	{kind: lifecycle.MemberRemove, second: adapter.MemberRemoved, steps: 5,
		late: "FAILED DEADLINE_EXCEEDED" + halfway,
		good: "SUCCEEDED NORMAL | ACTIVE REMOVED+cordoned | 1 of 1 | theirs ready free ready | generation 1 1.0.0 | " +
			"orphans 0",
		failed: "FAILED ADAPTER_FAILED" + halfway, rejected: "FAILED ADAPTER_REJECTED" + asBefore,
		canceled: "CANCELED CANCELED" + halfway,
		events:   []string{"apps.instance.member_removed"}},
	{kind: lifecycle.MemberReplace, second: adapter.MemberRemoved, newcomer: adapter.MemberActive, steps: 6,
		late: "FAILED DEADLINE_EXCEEDED" + takenOff,
		good: "SUCCEEDED NORMAL | ACTIVE REMOVED ACTIVE | 2 of 2 | theirs ready free ready bound | generation 1 " +
			"1.0.0 | orphans 0",
		failed: "FAILED ADAPTER_FAILED" + takenOff, rejected: "FAILED ADAPTER_REJECTED" + takenOff,
		canceled: "CANCELED CANCELED" + takenOff,
		events:   []string{"apps.instance.member_added", "apps.instance.member_removed"}},
	{kind: lifecycle.MemberRecover, second: adapter.MemberActive, steps: 5,
		late: "FAILED DEADLINE_EXCEEDED | ACTIVE FAILED | 1 of 2 | theirs ready bound free ready | generation 1 " +
			"1.0.0 | orphans 0",
		good: "SUCCEEDED NORMAL" + asBefore,
		failed: "FAILED ADAPTER_FAILED | ACTIVE FAILED | 1 of 2 | theirs ready bound free ready | generation 1 1.0.0 " +
			"| orphans 0",
		rejected: "FAILED ADAPTER_REJECTED | ACTIVE FAILED | 1 of 2 | theirs ready bound free ready | generation 1 " +
			"1.0.0 | orphans 0",
		canceled: "CANCELED CANCELED | ACTIVE FAILED | 1 of 2 | theirs ready bound free ready | generation 1 1.0.0 | " +
			"orphans 0",
		events: []string{"apps.instance.member_added"}},
	{kind: lifecycle.InstanceUpgrade, steps: 5,
		late: "FAILED DEADLINE_EXCEEDED" + asBefore,
		good: "SUCCEEDED NORMAL | ACTIVE ACTIVE | 2 of 2 | theirs ready bound free ready | generation 2 2.0.0 | " +
			"orphans 0",
		failed: "FAILED ADAPTER_FAILED" + asBefore, rejected: "FAILED ADAPTER_REJECTED" + asBefore,
		canceled: "CANCELED CANCELED" + asBefore,
		events:   []string{"apps.instance.upgraded"}},
	{kind: lifecycle.InstanceRollback, steps: 5,
		late: "FAILED DEADLINE_EXCEEDED" + asBefore,
		good: "SUCCEEDED NORMAL | ACTIVE ACTIVE | 2 of 2 | theirs ready bound free ready | generation 2 2.0.0 | " +
			"orphans 0",
		failed: "FAILED ADAPTER_FAILED" + asBefore, rejected: "FAILED ADAPTER_REJECTED" + asBefore,
		canceled: "CANCELED CANCELED" + asBefore,
		events:   []string{"apps.instance.rolled_back"}},
	{kind: lifecycle.InstanceDecommission, steps: 5, late: "FAILED DEADLINE_EXCEEDED" + stopping,
		good: "SUCCEEDED NORMAL | REMOVED REMOVED | 0 of 2 | theirs ready free ready | generation 1 1.0.0 | " +
			"orphans 0",
		failed: "FAILED ADAPTER_FAILED" + stopping, rejected: "FAILED ADAPTER_REJECTED" + stopping,
		events: []string{"apps.instance.deleted"}},
}

// each runs a test of every kind side by side, each on a platform of its own.
func each(t *testing.T, run func(t *testing.T, c *cluster, r rule)) {
	t.Helper()
	eachOf(t, func(rule) bool { return true }, run)
}

// cancelable reports whether a kind can be canceled.
func cancelable(r rule) bool { return r.canceled != "" }

func eachOf(t *testing.T, which func(rule) bool, run func(t *testing.T, c *cluster, r rule)) {
	t.Helper()
	for _, r := range rules {
		if !which(r) {
			continue
		}
		t.Run(string(r.kind), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.work()
			run(t, l.cluster("kinds"), r)
		})
	}
}

func TestEveryKindEndsWellWithItsEvidence(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *cluster, r rule) {
		c.ask(asked{kind: r.kind})
		c.says(adapter.StateSucceeded, r.second, r.newcomer)
		op := c.end()
		require.Equal(t, r.good, c.world(), op.ErrorMessage)
		require.NotEmpty(t, op.Evidence)
		c.once(c.launched, append(r.events, "apps.instance.running")...)
		steps := c.steps(c.op)
		require.Len(t, steps, r.steps)
		for _, step := range steps {
			require.Equal(t, lifecycle.StepSucceeded, step.State, step.Name)
		}
		c.script.oneEffect(string(c.op))
	})
}

func TestEveryKindThatTheAdapterFailsLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *cluster, r rule) {
		c.ask(asked{kind: r.kind})
		c.says(adapter.StateFailed, "", "")
		op := c.end()
		require.Equal(t, r.failed, c.world(), op.ErrorMessage)
		require.Equal(t, "BROKEN: it broke", op.ErrorMessage)
		require.Nil(t, op.Outcome)
	})
}

func TestEveryKindThatTheAdapterRefusesLeavesEverythingAsItWas(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *cluster, r rule) {
		c.script.with(func() {
			c.script.onPut = func(adapter.Dispatch) (int, any) {
				return http.StatusUnprocessableEntity, adapter.ErrorBody{Code: "UNSAFE", Message: "it would lose data"}
			}
		})
		c.ask(asked{kind: r.kind})
		op := c.end()
		require.Equal(t, r.rejected, c.world(), op.ErrorMessage)
	})
}

func TestEveryKindCanBeCanceledWhileTheAdapterWorks(t *testing.T) {
	t.Parallel()
	eachOf(t, cancelable, func(t *testing.T, c *cluster, r rule) {
		c.ask(asked{kind: r.kind})
		c.script.dispatched(string(c.op))
		c.cancel()
		op := c.end()
		require.Equal(t, r.canceled, c.world(), op.ErrorMessage)
		require.Equal(t, "canceled by Ada: a better idea", op.ErrorMessage)
		require.Equal(t, "user", op.ErrorOwner)
		require.Equal(t, "stopped", op.CancelMessage)
		require.Contains(t, c.told(c.launched), "apps.operation.canceled")
	})
}

func TestEveryKindEndsAtItsDeadlineAndTheAdapterIsToldSo(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *cluster, r rule) {
		c.ask(asked{kind: r.kind, deadline: 2 * time.Second})
		op := c.end()
		require.Equal(t, r.late, c.world(), op.ErrorMessage)
		require.Equal(t, "adapter", op.ErrorOwner)
		c.until("the adapter is asked to stop", func() bool {
			c.script.mu.Lock()
			defer c.script.mu.Unlock()
			return len(c.script.cancels) > 0
		})
	})
}

func TestEveryKindGoesOnWhenItIsTooLateToCancel(t *testing.T) {
	t.Parallel()
	eachOf(t, cancelable, func(t *testing.T, c *cluster, r rule) {
		c.script.with(func() {
			c.script.onCancel = func(string) adapter.CancelResult {
				return adapter.CancelResult{Outcome: adapter.CancelTooLate, Message: "past the point"}
			}
		})
		c.ask(asked{kind: r.kind})
		c.script.dispatched(string(c.op))
		c.cancel()
		c.until("it runs again", func() bool {
			return c.operation().State == lifecycle.OperationRunning && c.operation().CancelMessage == "past the point"
		})
		c.says(adapter.StateSucceeded, r.second, r.newcomer)
		op := c.end()
		require.Equal(t, r.good, c.world(), op.ErrorMessage)
		require.Equal(t, "past the point", op.CancelMessage)
	})
}

func TestEveryKindIsLookedAfterWhileNobodyKnowsWhetherItStopped(t *testing.T) {
	t.Parallel()
	eachOf(t, cancelable, func(t *testing.T, c *cluster, r rule) {
		c.script.with(func() {
			c.script.onCancel = func(string) adapter.CancelResult {
				return adapter.CancelResult{Outcome: adapter.CancelUnknown, Message: "asked to stop"}
			}
		})
		c.ask(asked{kind: r.kind})
		c.script.dispatched(string(c.op))
		c.cancel()
		c.until("it is asked more than once", func() bool {
			c.script.mu.Lock()
			defer c.script.mu.Unlock()
			return len(c.script.cancels) > 1
		})
		require.Equal(t, lifecycle.OperationCanceling, c.operation().State)
		require.Equal(t, "asked to stop", c.operation().CancelMessage)
		c.says(adapter.StateSucceeded, r.second, r.newcomer)
		op := c.end()
		require.Equal(t, r.good, c.world(), op.ErrorMessage)
		require.Contains(t, op.CancelMessage, "too late")
	})
}

// A lease that is lost at any moment is a crash at that moment: between a commit and a call, between a
// call and the note of it, in the middle of a step. Steps are run twice all along.
func TestEveryKindSurvivesALeaseLostAtAnyMoment(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *cluster, r rule) {
		c.work()
		stop := c.rob(c.ask(asked{kind: r.kind}))
		c.says(adapter.StateSucceeded, r.second, r.newcomer)
		op := c.end()
		stop()
		require.Equal(t, r.good, c.world(), op.ErrorMessage)
		require.Equal(t, 1, op.DispatchAttempt)
		c.script.oneEffect(string(c.op))
		c.once(c.launched, append(r.events, "apps.operation.started")[:len(r.events)]...)
	})
}

func TestEveryKindIsTakenBackThoughItsLeaseIsLostAtAnyMoment(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *cluster, r rule) {
		c.work()
		stop := c.rob(c.ask(asked{kind: r.kind}))
		c.says(adapter.StateFailed, "", "")
		op := c.end()
		stop()
		require.Equal(t, r.failed, c.world(), op.ErrorMessage)
		c.once(c.launched, "apps.operation.failed")
	})
}
