package member_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/kit/tariff"
	"github.com/gpuaas/app-platform/service/member"
)

// totals are what a plan's price of an hour becomes, as text.
func totals(cost *tariff.Cost) (out []string) {
	for _, one := range cost.Totals {
		out = append(out, one.Currency, one.Before.String(), one.After.String(), one.Delta.String(), one.Left.String())
	}
	return out
}

func TestEveryPlanShowsWhatItMakesOfThePriceOfAnHour(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`UPDATE allocation SET sku = 'small'`)
	node, _ := b.Node(4)
	b.SQL(`UPDATE compute_node SET sku = 'large', region = 'north' WHERE id = $1`, node.ID)
	b.ListPrice("small", "EUR", "1.5")
	in := b.add("", 1)
	in.Intent = &member.Intent{Shape: lifecycle.ShapeBaremetal}

	plan, err := b.service.PlanAdd(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, []string{"EUR", "3", "3", "0", "0"}, totals(plan.Cost), "no price is not zero: it is in no sum")
	require.Equal(t, 1, plan.Cost.Unpriced)
	require.Nil(t, plan.Members[0].Capacity.Hourly)

	b.ListPrice("large", "EUR", "10.25")
	plan, err = b.service.PlanAdd(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, []string{"EUR", "3", "13.25", "10.25", "0"}, totals(plan.Cost))
	require.Zero(t, plan.Cost.Unpriced)
	require.Equal(t, []tariff.Effect{tariff.Kept, tariff.Rented},
		[]tariff.Effect{plan.Cost.Capacity[0].Effect, plan.Cost.Capacity[1].Effect})
	require.Equal(t, []any{2, "3"}, []any{plan.Cost.Capacity[0].Count, plan.Cost.Capacity[0].Hourly.Amount.String()})

	removal, err := b.service.PlanRemove(b.admin, b.on(2, ""))
	require.NoError(t, err)
	require.Equal(t, []string{"EUR", "3", "3", "0", "1.5"}, totals(removal.Cost),
		"what is left goes on costing until it is released")
	drain, err := b.service.PlanDrain(b.admin, b.on(2, ""))
	require.NoError(t, err)
	require.Equal(t, []string{"EUR", "3", "3", "0", "0"}, totals(drain.Cost))
}

func TestAPlanOfAScalingShowsThePriceBothUpAndDown(t *testing.T) {
	t.Parallel()
	b := setup(t, roomy)
	b.SQL(`UPDATE allocation SET sku = 'small'`)
	node, _ := b.Node(4)
	b.SQL(`UPDATE compute_node SET sku = 'large', region = 'north' WHERE id = $1`, node.ID)
	b.ListPrice("small", "EUR", "1.5")
	b.ListPrice("large", "EUR", "10.25")

	up := b.scale("", 4)
	up.Intent = &member.Intent{Shape: lifecycle.ShapeBaremetal}
	plan, err := b.service.PlanScale(b.admin, up)
	require.NoError(t, err)
	require.Equal(t, []string{"EUR", "3", "13.25", "10.25", "0"}, totals(plan.Cost))
	require.Equal(t, "10.25", plan.Members[0].Capacity.Hourly.Amount.String())
	inside, err := b.service.PlanScale(b.admin, b.scale("", 5, b.one))
	require.NoError(t, err)
	require.Equal(t, []string{"EUR", "3", "3", "0", "0"}, totals(inside.Cost),
		"capacity that is rented already costs no more")

	for to, left := range []string{"3", "1.5", "1.5"} { // of three members two live in one allocation
		down, err := b.service.PlanScale(b.admin, b.scale("", to))
		require.NoError(t, err)
		require.Equal(t, []string{"EUR", "3", "3", "0", left}, totals(down.Cost), "down to %d", to)
	}
	several, err := b.service.PlanRemoveMany(b.admin, member.RemoveInput{DeadlineSeconds: 600,
		MemberIDs: []ids.ID{b.members[0].ID, b.members[1].ID}})
	require.NoError(t, err)
	require.Equal(t, []string{"EUR", "3", "3", "0", "1.5"}, totals(several.Cost))
}

// Every change of members has its price in its plan, and in the hash that authorises it.
func TestThePriceIsInEveryPlanAndItsHash(t *testing.T) {
	t.Parallel()
	b := setup(t, roomy)
	three := b.allocation()
	b.SQL(`UPDATE allocation SET sku = 'small'`)
	both := member.RemoveInput{DeadlineSeconds: 600, MemberIDs: []ids.ID{b.members[0].ID, b.members[1].ID}}
	plans := map[string]func() (*change.Plan, error){
		"add":         func() (*change.Plan, error) { return b.service.PlanAdd(b.admin, b.add("", 1, three)) },
		"scale":       func() (*change.Plan, error) { return b.service.PlanScale(b.admin, b.scale("", 4, three)) },
		"drain":       func() (*change.Plan, error) { return b.service.PlanDrain(b.admin, b.on(2, "")) },
		"remove":      func() (*change.Plan, error) { return b.service.PlanRemove(b.admin, b.on(2, "")) },
		"remove both": func() (*change.Plan, error) { return b.service.PlanRemoveMany(b.admin, both) },
		"replace": func() (*change.Plan, error) {
			return b.service.PlanReplace(b.admin, member.ReplaceInput{Input: b.on(2, ""), AllocationID: three.ID})
		},
	}
	hashes := map[string]string{}
	for _, price := range []string{"1.5", "1.75"} {
		b.ListPrice("small", "EUR", price)
		for name, plan := range plans {
			shown, err := plan()
			require.NoError(t, err, name)
			require.True(t, shown.Allowed, name)
			require.Len(t, shown.Cost.Totals, 1, name)
			require.Positive(t, shown.Cost.Totals[0].After.Sign(), name)
			require.NotEqual(t, hashes[name], shown.Hash, "%s: another price is another plan", name)
			hashes[name] = shown.Hash
		}
	}
	for name, plan := range plans {
		again, err := plan()
		require.NoError(t, err, name)
		require.Equal(t, hashes[name], again.Hash, name)
	}
}

// A person who agreed to one price does not pay another, whatever the change is.
func TestAPlanIsStaleOncePricesHaveChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`UPDATE allocation SET sku = 'small'`)
	in := b.on(2, "k")
	plan, err := b.service.PlanRemove(b.admin, in)
	require.NoError(t, err)
	b.ListPrice("small", "EUR", "1.5")
	before := b.written()
	in.PlanHash = plan.Hash
	_, err = b.service.Remove(b.admin, in)
	platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
	require.Equal(t, before, b.written())
	again, err := b.service.PlanRemove(b.admin, in)
	require.NoError(t, err)
	b.ListPrice("small", "EUR", "1.50")
	in.PlanHash, in.IdempotencyKey = again.Hash, "k2"
	_, err = b.service.Remove(b.admin, in)
	require.NoError(t, err, "another version of the same amount is the same price")
}

func TestABudgetRefusesMembersThatRentMoreThanItHas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.SQL(`UPDATE allocation SET sku = 'small'`) // two of them
	node, _ := b.Node(4)
	b.SQL(`UPDATE compute_node SET sku = 'large' WHERE id = $1`, node.ID)
	b.ListPrice("small", "EUR", "1")
	b.ListPrice("large", "EUR", "10.25")
	b.SQL(`INSERT INTO budget (id, tenant_id, project_id, scope, target_id, currency, amount, span, horizon_seconds,
		thresholds, at_limit,
			reason, created_by, created_at, updated_at)
		SELECT 'bud_1', tenant_id, id, 'PROJECT', id, 'EUR', 12.24, 'TOTAL', 3600, '{100}', 'REFUSE', 'a test', '', now(),
		now()
		FROM project WHERE id = $1`, b.project.ID)
	in := b.add("add", 1)
	in.Intent = &member.Intent{Shape: lifecycle.ShapeBaremetal}
	up := member.ScaleInput{InstanceID: b.made.ID, ComponentKey: "worker", ScaleTo: 4, Intent: in.Intent,
		DeadlineSeconds: 600,
		Reason:          "a test", IdempotencyKey: "scale"}
	for name, rent := range map[string]func() error{
		"add":   func() error { _, err := b.service.Add(b.admin, in); return err },
		"scale": func() error { _, err := b.service.Scale(b.admin, up); return err },
	} {
		err := rent()
		platformtest.Refused(t, err, fault.BudgetExceeded, "input.intent")
		require.ErrorContains(t, err, "12.25", name)
	}
	require.Equal(t, []int{0, 0, 2}, []int{b.Count("operation", ""), b.Count("member", "status = 'PENDING'"),
		b.Count("allocation", "released_at IS NULL")})

	b.SQL(`UPDATE budget SET amount = 12.25`)
	_, err := b.service.Scale(b.admin, up)
	require.NoError(t, err, "to the cent")
	require.Equal(t, 3, b.Count("allocation", "released_at IS NULL"))
}
