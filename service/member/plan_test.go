package member_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/member"
)

func verdictOf(t *testing.T, plan *change.Plan, source lifecycle.VerdictSource) *change.Verdict {
	t.Helper()
	for _, verdict := range plan.Verdicts {
		if verdict.Source == source {
			return verdict
		}
	}
	require.Fail(t, "no verdict of "+string(source))
	return nil
}

func TestAPlanShowsWhatWouldBeDoneAndWritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	since := time.Now().UTC().Truncate(time.Second)
	b.adapter.Plan = adapter.PlanAnswer{
		Verdict: adapter.VerdictSafe, Reversible: false, WorkTotal: 7,
		WorkLost: []adapter.Work{{Kind: "job", ID: "1", Name: "train", MemberID: string(b.members[2].ID), Owner: "ada",
			Since: since}},
	}
	b.SQL(`UPDATE compute_node SET status = 'OFFLINE' WHERE id = $1`, b.two.NodeID)
	before := b.written()
	plan, err := b.service.PlanRemove(b.admin, member.Input{MemberID: b.members[2].ID, DeadlineSeconds: 600,
		Force: true})
	require.NoError(t, err)
	require.Equal(t, before, b.written())
	require.True(t, plan.Allowed)
	require.Len(t, plan.Hash, 64)
	require.Equal(t, []*change.PlannedMember{{MemberID: &b.members[2].ID, ComponentKey: "worker",
		Action: lifecycle.PlanRemove, AllocationID: &b.two.ID, Profile: isolation.Service}}, plan.Members)
	require.Equal(t, []any{"job", "1", "ada", since, 7},
		[]any{plan.WorkLost[0].Kind, plan.WorkLost[0].WorkID, plan.WorkLost[0].Owner, *plan.WorkLost[0].Since,
			*plan.WorkLostTotal})
	sources := []lifecycle.VerdictSource{}
	for _, verdict := range plan.Verdicts {
		sources = append(sources, verdict.Source)
	}
	require.Equal(t, []lifecycle.VerdictSource{"STATE", "COMPATIBILITY", "QUOTA", "POLICY", "ADAPTER"}, sources)
	require.False(t, plan.Reversible)
	require.JSONEq(t, `{"desired": {"worker": 2}}`, string(plan.Change))

	asked := b.adapter.Plans[0]
	require.Equal(t, []any{adapter.MemberRemove, true, []string{string(b.members[2].ID)}, 3},
		[]any{asked.Kind, asked.Force, asked.Targets, len(asked.Members)})
	require.Contains(t, asked.Instance.Components, adapter.ComponentCount{Key: "worker", Count: 2},
		"the adapter is asked about the instance as it would be")
}

func TestAnAdditionsPlanNamesPlacesForMembersThatDoNotExistYet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Node(4)
	plan, err := b.service.PlanAdd(b.admin, b.add("", 2, b.one))
	require.NoError(t, err)
	require.True(t, plan.Allowed)
	coming := &change.PlannedMember{ComponentKey: "worker", Action: lifecycle.PlanAdd, AllocationID: &b.one.ID,
		Reachable: true, Profile: isolation.Service}
	require.Equal(t, []*change.PlannedMember{coming, coming}, plan.Members)
	require.JSONEq(t, `{"components": [{"key": "worker", "count": 2}], "desired": {"worker": 5}}`, string(plan.Change))

	in := b.add("", 1)
	in.Intent = &member.Intent{Shape: lifecycle.ShapeBaremetal}
	before := b.written()
	plan, err = b.service.PlanAdd(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, before, b.written(), "what was placed to find out is taken back")
	require.Nil(t, plan.Members[0].AllocationID)
	again, err := b.service.PlanAdd(b.admin, in)
	require.NoError(t, err)
	require.Equal(t, plan.Hash, again.Hash)
}

func TestAnAdapterThatCannotTellIsNeverReadAsSafe(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.adapter.Plan = adapter.PlanAnswer{Verdict: adapter.VerdictUnknown,
		Reasons: []adapter.PlanReason{{Code: "ADAPTER_UNAVAILABLE", Message: "gone"}}}
	plan, err := b.service.PlanDrain(b.admin, b.on(0, ""))
	require.NoError(t, err)
	said := verdictOf(t, plan, lifecycle.VerdictAdapter)
	require.Equal(t, []any{lifecycle.VerdictUnknown, fault.Code("ADAPTER_UNAVAILABLE")},
		[]any{said.Outcome, said.Reasons[0].Code})
	require.Nil(t, plan.WorkLostTotal, "nobody can tell")
	require.True(t, plan.Allowed, "nothing refuses it")
}

func TestAnUnsafeWordOfTheAdapterRefusesUnlessForceIsChosen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.adapter.Plan = adapter.PlanAnswer{Verdict: adapter.VerdictUnsafe, Message: "the last of its kind",
		Reasons: []adapter.PlanReason{{Code: "LAST", Message: "the last of its kind"}}}
	in := b.on(0, "k")
	plan, err := b.service.PlanRemove(b.admin, in)
	require.NoError(t, err)
	require.False(t, plan.Allowed)
	require.Equal(t, lifecycle.VerdictRefused, verdictOf(t, plan, lifecycle.VerdictAdapter).Outcome)
	in.PlanHash = plan.Hash
	before := b.written()
	_, err = b.service.Remove(b.admin, in)
	platformtest.Refused(t, err, fault.AdapterRejected, "")
	require.Equal(t, before, b.written())

	in.Force = true
	plan, err = b.service.PlanRemove(b.admin, in)
	require.NoError(t, err)
	require.True(t, plan.Allowed)
	in.PlanHash = plan.Hash
	_, err = b.service.Remove(b.admin, in)
	require.NoError(t, err)
}

func TestAPlanIsStaleOnceAnythingThatItRestedOnHasMoved(t *testing.T) {
	t.Parallel()
	moves := map[string]func(b *bundle){
		"a member's state": func(b *bundle) { b.stands(1, lifecycle.MemberDraining) },
		"a cordon": func(b *bundle) {
			b.SQL(`UPDATE member SET cordoned = true
			WHERE id = $1`, b.members[0].ID)
		},
		"health": func(b *bundle) { b.SQL(`UPDATE member SET health = 'HEALTHY' WHERE id = $1`, b.members[0].ID) },
		"where a member lives": func(b *bundle) {
			b.SQL(`UPDATE member SET allocation_id = $2 WHERE id = $1`, b.members[0].ID, b.two.ID)
		},
		"a node": func(b *bundle) {
			b.SQL(`UPDATE compute_node SET status = 'OFFLINE' WHERE id = $1`, b.one.NodeID)
		},
		"an allocation": func(b *bundle) {
			b.SQL(`UPDATE allocation SET status = 'RELEASING' WHERE id = $1`, b.two.ID)
		},
		"an operation that began": func(b *bundle) { b.open(lifecycle.MemberDrain, 1) },
		"an operation in the way": func(b *bundle) { b.open(lifecycle.InstanceUpgrade) },
		"the members asked for": func(b *bundle) {
			b.SQL(`UPDATE instance SET roles = jsonb_set(roles, '{0,desired}', '4')`)
		},
		"the instance's state": func(b *bundle) { b.SQL(`UPDATE instance SET status = 'STOPPING'`) },
		"the config":           func(b *bundle) { b.SQL(`UPDATE instance SET config = '{"size": 3}'`) },
		"the generation":       func(b *bundle) { b.SQL(`UPDATE instance SET generation = 2`) },
		"the manifest's stage": func(b *bundle) { b.SQL(`UPDATE manifest SET stage = 'DEPRECATED'`) },
		"the adapter's verdict": func(b *bundle) {
			b.adapter.Plan.Verdict, b.adapter.Plan.Reasons = adapter.VerdictUnknown,
				[]adapter.PlanReason{{Code: "X", Message: "cannot tell"}}
		},
		"work that would be lost": func(b *bundle) {
			b.adapter.Plan.WorkLost = []adapter.Work{{Kind: "job", ID: "9"}}
		},
		"how much work would be lost": func(b *bundle) { b.adapter.Plan.WorkTotal = 3 },
		"the way back":                func(b *bundle) { b.adapter.Plan.Reversible = false },
		"the adapter's build": func(b *bundle) {
			b.SQL(`UPDATE adapter SET description = coalesce(description, '{}') || '{"build": "another"}'`)
		},
	}
	for name, move := range moves {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.adapter.Plan.WorkTotal = 1
			plan, err := b.service.PlanRemove(b.admin, b.on(0, ""))
			require.NoError(t, err)
			move(b)
			before := b.written()
			in := b.on(0, "k")
			in.PlanHash = plan.Hash
			_, err = b.service.Remove(b.admin, in)
			platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
			require.Equal(t, before, b.written())
		})
	}
}

func TestAPlanOfAnAdditionIsStaleWhenTheQuotaTurnsOrAnotherIsAsked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan, err := b.service.PlanAdd(b.admin, b.add("", 1, b.one))
	require.NoError(t, err)
	more := b.add("k", 2, b.one)
	more.PlanHash = plan.Hash
	_, err = b.service.Add(b.admin, more)
	platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
	b.SQL(`UPDATE project SET max_members = 3`)
	in := b.add("k", 1, b.one)
	in.PlanHash = plan.Hash
	_, err = b.service.Add(b.admin, in)
	platformtest.Refused(t, err, fault.PlanStale, "input.planHash")
	b.SQL(`UPDATE project SET max_members = 4`)
	_, err = b.service.Add(b.admin, in)
	require.NoError(t, err, "the number itself is nothing that the plan showed")
}

func TestProgressAndWordsDoNotMakeAPlanStale(t *testing.T) {
	t.Parallel()
	b := setup(t)
	drain := b.open(lifecycle.MemberDrain, 1)
	plan, err := b.service.PlanRemove(b.admin, b.on(0, ""))
	require.NoError(t, err)
	b.SQL(`UPDATE operation SET percent = 40, message = 'half-way', dispatch_attempt = 3, adapter_status = '{}'
		WHERE id = $1`, drain.ID)
	b.SQL(`UPDATE instance SET revision = revision + 5, updated_at = now(), health = 'DEGRADED', observed_at = now()`)
	b.SQL(`UPDATE member SET health_message = 'a bit slow', health = 'DEGRADED', adapter_detail = '{"a": 1}',
		updated_at = now()`)
	b.SQL(`UPDATE compute_node SET last_seen_at = now()`)
	b.adapter.Plan.Message = "another word"
	in := b.on(0, "k")
	in.PlanHash, in.Reason = plan.Hash, "another reason"
	_, err = b.service.Remove(b.admin, in)
	require.NoError(t, err)
}

// reasonsOf is every reason of the plan's first refusal.
func reasonsOf(plan *change.Plan) string {
	for _, verdict := range plan.Verdicts {
		if verdict.Outcome == lifecycle.VerdictRefused {
			said, _ := json.Marshal(verdict.Reasons)
			return string(said)
		}
	}
	return ""
}

func reasonOf(err error) string {
	refusal := fault.From(err)
	text := refusal.Message
	if len(refusal.Reasons) > 0 {
		text = refusal.Reasons[0].Message
	}
	encoded, _ := json.Marshal(text)
	return strings.Trim(string(encoded), `"`)
}
