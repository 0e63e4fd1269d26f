package workers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/ledger/operation"
)

// harmless is what a plan showed that loses nothing.
func harmless() *operation.Planned {
	return &operation.Planned{Now: operation.PlannedAnswer{Verdict: adapter.VerdictSafe, Reversible: true,
		Work: []string{}}}
}

var (
	safe  = adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Reversible: true}
	loses = adapter.PlanAnswer{Verdict: adapter.VerdictSafe, Reversible: true, WorkTotal: 1,
		WorkLost: []adapter.Work{{Kind: "job", ID: "7"}}}
	refuses = adapter.PlanAnswer{Verdict: adapter.VerdictUnsafe,
		Reasons: []adapter.PlanReason{{Code: "QUORUM", Message: "the last of its kind"}}}
)

// plans sets the adapter's answer to plans.
func (s *script) plans(answer adapter.PlanAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan = answer
}

func (s *script) plansAsked() []adapter.PlanRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.planned
}

func TestAnOldPlanThatHasChangedForTheWorseFailsBeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	for name, one := range map[string]struct {
		asked asked
		now   adapter.PlanAnswer
		says  string
		world string
	}{
		"lost": {asked{kind: lifecycle.MemberDrain}, loses, "job/7",
			"FAILED PLAN_STALE | ACTIVE ACTIVE | 2 of 2 | theirs ready bound free ready | generation 1 1.0.0"},
		"unsafe": {asked{kind: lifecycle.MemberRemove}, refuses, "judges it unsafe",
			"FAILED PLAN_STALE | ACTIVE ACTIVE | 2 of 2 | theirs ready bound free ready | generation 1 1.0.0"},
		"byforce": {asked{kind: lifecycle.MemberRemove, force: true}, loses, "job/7",
			"FAILED PLAN_STALE | ACTIVE ACTIVE | 2 of 2 | theirs ready bound free ready | generation 1 1.0.0"},
		"upgrade": {asked{kind: lifecycle.InstanceUpgrade}, refuses, "judges it unsafe",
			"FAILED PLAN_STALE | ACTIVE ACTIVE | 2 of 2 | theirs ready bound free ready | generation 1 1.0.0"},
	} {
		c := l.cluster("replan" + name)
		c.script.plans(one.now)
		one.asked.planned, one.asked.age = harmless(), 2*time.Minute
		c.ask(one.asked)
		op := c.end()
		require.Contains(t, op.ErrorMessage, one.says, name)
		require.True(t, strings.HasPrefix(c.world(), one.world), "%s: %s", name, c.world())
		require.Equal(t, []any{"user", false}, []any{op.ErrorOwner, op.ErrorRetryable})
		require.Empty(t, c.script.sent(string(c.op)), "the adapter was asked for nothing")
		require.Equal(t, one.asked.force, c.script.plansAsked()[0].Force)
	}
}

func TestAPlanThatIsFreshOrHoldsGoesOn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("fresh")
	c.script.plans(refuses)
	c.ask(asked{kind: lifecycle.MemberDrain, planned: harmless()})
	c.says(adapter.StateSucceeded, adapter.MemberDrained, "")
	require.Equal(t, lifecycle.OperationSucceeded, c.end().State)
	require.Empty(t, c.script.plansAsked(), "a fresh plan holds")

	c = l.cluster("holds")
	c.script.plans(safe)
	c.ask(asked{kind: lifecycle.MemberDrain, planned: harmless(), age: time.Hour})
	c.says(adapter.StateSucceeded, adapter.MemberDrained, "")
	require.Equal(t, lifecycle.OperationSucceeded, c.end().State)
	require.Len(t, c.script.plansAsked(), 1)

	c = l.cluster("noplan")
	c.script.plans(refuses)
	c.ask(asked{kind: lifecycle.MemberDrain, age: time.Hour})
	c.says(adapter.StateSucceeded, adapter.MemberDrained, "")
	require.Equal(t, lifecycle.OperationSucceeded, c.end().State)
	require.Empty(t, c.script.plansAsked(), "what was not planned is not asked about")
}

func TestForceAtTheDeadlineIsPartOfAnOldPlanToo(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work()
	c := l.cluster("atdeadline")
	planned := harmless()
	planned.AtDeadline = &operation.PlannedAnswer{Verdict: adapter.VerdictUnsafe, Total: 1, Work: []string{"job/1"}}
	c.script.plans(loses)
	c.ask(asked{kind: lifecycle.MemberDrain, planned: &operation.Planned{
		Now:        operation.PlannedAnswer{Verdict: adapter.VerdictSafe, Total: 1, Work: []string{"job/7"}},
		AtDeadline: planned.AtDeadline,
	}, age: time.Hour, onDeadline: lifecycle.DeadlineForce})
	require.Contains(t, c.end().ErrorMessage, "job/7")
	asked := c.script.plansAsked()
	require.Equal(t, []bool{false, true}, []bool{asked[0].Force, asked[1].Force})
}

// sent is what the adapter was sent of an operation, without waiting for it.
func (s *script) sent(id string) []adapter.Dispatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []adapter.Dispatch
	for _, put := range s.puts {
		if put.OperationID == id {
			out = append(out, put)
		}
	}
	return out
}
