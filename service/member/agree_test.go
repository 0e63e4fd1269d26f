package member_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/service/change"
	"github.com/gpuaas/app-platform/service/member"
)

// asked is a verb with its input, ready to be planned and called.
type asked struct {
	name string
	plan func() (*change.Plan, error)
	call func(hash, key string) error
}

// anything chooses a verb that has a plan, and an input for it.
func (b *bundle) anything(r *rand.Rand) asked {
	on := b.on(r.IntN(3), "")
	on.Force = r.IntN(4) == 0
	on.DeadlineSeconds = 30 + r.IntN(100)
	on.OnDeadline = []lifecycle.DeadlineOutcome{"", lifecycle.DeadlineFail, lifecycle.DeadlineForce}[r.IntN(3)]
	places := []ids.ID{b.one.ID, b.two.ID, ids.New(ids.Allocation)}
	with := func(in member.Input, hash, key string) member.Input {
		in.PlanHash, in.IdempotencyKey = hash, key
		return in
	}
	switch r.IntN(4) {
	case 0:
		return asked{"drain", func() (*change.Plan, error) { return b.service.PlanDrain(b.admin, on) },
			func(hash, key string) error { _, err := b.service.Drain(b.admin, with(on, hash, key)); return err }}
	case 1:
		return asked{"remove", func() (*change.Plan, error) { return b.service.PlanRemove(b.admin, on) },
			func(hash, key string) error { _, err := b.service.Remove(b.admin, with(on, hash, key)); return err }}
	case 2:
		in := member.ReplaceInput{Input: on, AllocationID: places[r.IntN(3)]}
		return asked{"replace", func() (*change.Plan, error) { return b.service.PlanReplace(b.admin, in) },
			func(hash, key string) error {
				in.Input = with(on, hash, key)
				_, err := b.service.Replace(b.admin, in)
				return err
			}}
	}
	in := b.add("", 1+r.IntN(3))
	in.AllocationIDs, in.ComponentKey = []ids.ID{places[r.IntN(3)]}, []string{"worker", "spare", "pump"}[r.IntN(3)]
	return asked{"add", func() (*change.Plan, error) { return b.service.PlanAdd(b.admin, in) },
		func(hash, key string) error {
			in.PlanHash, in.IdempotencyKey = hash, key
			_, err := b.service.Add(b.admin, in)
			return err
		}}
}

// shuffle brings the instance into some state, past every rule.
func (b *bundle) shuffle(r *rand.Rand) {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	b.SQL(`UPDATE operation SET state = 'CANCELED', ended_at = now() WHERE ended_at IS NULL`)
	b.SQL(`UPDATE member SET status = 'REMOVED' WHERE ordinal > 2`)
	b.SQL(`UPDATE instance SET status = $1, roles = jsonb_set(roles, '{0,desired}', to_jsonb($2::int))`,
		pick("RUNNING", "RUNNING", "RUNNING", "STOPPING", "STARTING"), 2+r.IntN(4))
	b.SQL(`UPDATE project SET max_members = $1`, []any{nil, nil, 3, 5}[r.IntN(4)])
	for i := range b.members {
		b.SQL(`UPDATE member SET status = $2, health = $3 WHERE id = $1`, b.members[i].ID,
			pick("ACTIVE", "ACTIVE", "ACTIVE", "DRAINING", "DRAINED", "FAILED", "JOINING", "REMOVED"),
			pick("HEALTHY", "UNKNOWN"))
	}
	b.SQL(`UPDATE allocation SET status = $2 WHERE id = $1`, b.two.ID, pick("READY", "READY", "RELEASING"))
	switch r.IntN(6) {
	case 0:
		b.open(lifecycle.MemberDrain, r.IntN(3))
	case 1:
		b.open(lifecycle.MemberRecover, r.IntN(3))
	case 2:
		b.open(lifecycle.InstanceUpgrade)
	}
	b.adapter.Plan = []adapter.PlanAnswer{{Verdict: adapter.VerdictSafe}, {Verdict: adapter.VerdictSafe},
		{Verdict: adapter.VerdictUnknown, Reasons: []adapter.PlanReason{{Code: "X", Message: "cannot tell"}}},
		{Verdict: adapter.VerdictUnsafe, Reasons: []adapter.PlanReason{{Code: "NO", Message: "not now"}}}}[r.IntN(4)]
}

func TestPlanAndVerbAgreeInEveryStateOfThings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, table := range []string{"member", "instance", "operation", "allocation"} {
		b.SQL(`ALTER TABLE ` + table + ` DISABLE TRIGGER USER`)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	allowed, outcomes := 0, map[string]int{}
	for round := range 120 {
		b.shuffle(r)
		verb := b.anything(r)
		before := b.written()
		plan, err := verb.plan()
		require.NoError(t, err, "round %d", round)
		require.Equal(t, before, b.written(), "a plan writes nothing")
		err = verb.call(plan.Hash, fmt.Sprint("with", round))
		what := fmt.Sprintf("round %d, seed %d: %s: %v", round, seed, verb.name, err)
		require.Equal(t, plan.Allowed, err == nil, what)
		if err == nil {
			allowed++
			continue
		}
		require.Equal(t, before, b.written(), what)
		outcomes[string(fault.From(err).Code)]++
		require.False(t, fault.Is(err, fault.PlanStale), what)
		require.Contains(t, reasonsOf(plan), reasonOf(err), what)
		if verdictOf(t, plan, lifecycle.VerdictAdapter).Outcome != lifecycle.VerdictRefused {
			plain := verb.call("", fmt.Sprint("without", round))
			require.Equal(t, fault.From(err).Message, fault.From(plain).Message, what)
		}
	}
	require.Positive(t, allowed)
	require.GreaterOrEqual(t, len(outcomes), 4, "the states are worth the name: %v", outcomes)
}
