package member_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/member"
)

// A person who agreed to one SKU in one region at one price is not sold another.
func TestAPlanHoldsForTheCapacityThatItChose(t *testing.T) {
	t.Parallel()
	b := setup(t)
	node, _ := b.Node(4)
	b.SQL(`UPDATE compute_node SET sku = 'small', region = 'north' WHERE id = $1`, node.ID)
	b.ListPrice("small", "EUR", "1.5")
	in := b.add("", 1)
	in.Intent = &member.Intent{Shape: lifecycle.ShapeBaremetal}
	plan, err := b.service.PlanAdd(b.admin, in)
	require.NoError(t, err)
	chosen := plan.Members[0].Capacity
	require.Equal(t, []any{"small", "north", lifecycle.ShapeBaremetal, 4, "EUR", "1.5"},
		[]any{chosen.SKU, chosen.Region, chosen.Shape, chosen.GPUCount, chosen.Hourly.Currency,
			chosen.Hourly.Amount.String()})
	for _, move := range []func(){
		func() { b.SQL(`UPDATE compute_node SET sku = 'large' WHERE sku = 'small'`) },
		func() { b.SQL(`UPDATE compute_node SET region = 'south' WHERE sku = 'small'`) },
		func() { b.ListPrice("small", "EUR", "9") },
	} {
		b.SQL(`UPDATE compute_node SET sku = 'small', region = 'north' WHERE id = $1`, node.ID)
		b.ListPrice("small", "EUR", "1.5")
		move()
		before := b.written()
		in.PlanHash, in.IdempotencyKey = plan.Hash, "k"
		_, err = b.service.Add(b.admin, in)
		platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
		require.Equal(t, before, b.written())
	}
	b.SQL(`UPDATE compute_node SET sku = 'small', region = 'north' WHERE id = $1`, node.ID)
	b.ListPrice("small", "EUR", "1.5")
	in.IdempotencyKey = "as-planned"
	_, err = b.service.Add(b.admin, in)
	require.NoError(t, err)
}

// The plan of a harmless drain must not authorise one that loses work at its deadline.
func TestAPlanHoldsForTheConditionsThatItShowed(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]func(in *member.Input){
		"outcome at the deadline": func(in *member.Input) { in.OnDeadline = lifecycle.DeadlineForce },
		"deadline":                func(in *member.Input) { in.DeadlineSeconds = 30 },
		"force":                   func(in *member.Input) { in.Force = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			plan, err := b.service.PlanDrain(b.admin, b.on(0, ""))
			require.NoError(t, err)
			require.Equal(t, []any{600, lifecycle.DeadlineFail, false},
				[]any{plan.DeadlineSeconds, plan.OnDeadline, plan.Force})
			in := b.on(0, "k")
			in.PlanHash = plan.Hash
			other(&in)
			before := b.written()
			_, err = b.service.Drain(b.admin, in)
			platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
			require.Contains(t, fault.From(err).Message, "another request")
			require.Equal(t, before, b.written())
		})
	}
	b := setup(t)
	adding := b.add("", 1, b.one)
	plan, err := b.service.PlanAdd(b.admin, adding)
	require.NoError(t, err)
	adding.KeepFailed, adding.PlanHash, adding.IdempotencyKey = true, plan.Hash, "k"
	_, err = b.service.Add(b.admin, adding)
	platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
}

func TestAPlanWithForceAtTheDeadlineShowsWhatThatWouldLose(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.adapter.Forced = &adapter.PlanAnswer{Verdict: adapter.VerdictUnsafe, WorkTotal: 1,
		WorkLost: []adapter.Work{{Kind: "job", ID: "7"}},
		Reasons:  []adapter.PlanReason{{Code: "JOBS", Message: "a job runs"}}}
	in := b.on(0, "")
	in.OnDeadline = lifecycle.DeadlineForce
	plan, err := b.service.PlanDrain(b.admin, in)
	require.NoError(t, err)
	require.True(t, plan.Allowed)
	require.Equal(t, []any{0, 0, 1, 1, "7"}, []any{len(plan.WorkLost), *plan.WorkLostTotal, len(plan.WorkAtRisk),
		*plan.WorkAtRiskTotal, plan.WorkAtRisk[0].WorkID})
	require.Equal(t, fault.Required, verdictOf(t, plan, lifecycle.VerdictState).Reasons[0].Code,
		"the change will need a reason")
	in.PlanHash, in.IdempotencyKey = plan.Hash, "k"
	b.adapter.Forced.WorkLost[0].ID = "8"
	_, err = b.service.Drain(b.admin, in)
	platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
	b.adapter.Forced.WorkLost[0].ID = "7"
	changed, err := b.service.Drain(b.admin, in)
	require.NoError(t, err)
	planned := operation.PrivateOf(changed.Operation.Operation).Planned
	require.Equal(t, []any{[]string{}, []string{"job/7"}}, []any{planned.Now.Work, planned.AtDeadline.Work},
		"the operation knows what was shown")
}

func TestAPlanRefusesConditionsThatTheChangeWould(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := b.on(0, "")
	in.DeadlineSeconds = 5
	_, err := b.service.PlanDrain(b.admin, in)
	platformtest.Refused(t, err, fault.InvalidArgument, "input.deadlineSeconds")
	require.Empty(t, b.adapter.Plans)
}

func TestPlansAskForTheVerbsKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stranger := b.As(b.User(b.Tenant()))
	for _, plan := range []func() (*change.Plan, error){
		func() (*change.Plan, error) { return b.service.PlanDrain(stranger, b.on(0, "")) },
		func() (*change.Plan, error) { return b.service.PlanRemove(stranger, b.on(0, "")) },
		func() (*change.Plan, error) {
			return b.service.PlanReplace(stranger, member.ReplaceInput{Input: b.on(0, "")})
		},
		func() (*change.Plan, error) { return b.service.PlanAdd(stranger, b.add("", 1, b.one)) },
	} {
		_, err := plan()
		platformtest.Refused(t, err, fault.NotFound, "")
	}
	in := b.on(0, "k")
	in.PlanHash = "x"
	_, err := b.service.Drain(stranger, in)
	platformtest.Refused(t, err, fault.NotFound, "")
	require.Empty(t, b.adapter.Plans, "the adapter hears nothing of it")
	denied := map[string]bool{}
	for _, entry := range b.Audit() {
		denied[entry.Action] = true
	}
	require.Equal(t, map[string]bool{"planDrainMember": true, "planRemoveMember": true, "planReplaceMember": true,
		"planAddMembers": true, "drainMember": true}, denied)
}
