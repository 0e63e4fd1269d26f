package blocker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/lifecycle"
)

func TestAnInstanceAtRestIsJudgedByItsState(t *testing.T) {
	t.Parallel()
	none := change{"no instance", func(f *Facts) { f.Instance = nil }, false}
	open := change{"an operation is open", func(f *Facts) { f.Instance.Open = true }, false}
	nothing := func(*Facts) {}
	with := func(apply func(f *Facts)) func() *Facts {
		return func() *Facts {
			f := alone()
			apply(f)
			return f
		}
	}
	stands := func(status lifecycle.InstanceStatus) func(*Facts) {
		return func(f *Facts) { f.Instance.Status = status }
	}

	judged(t, instanceFailed, with(stands(lifecycle.InstanceFailed)), change{"failed", nothing, true}, none, open,
		change{"running", stands(lifecycle.InstanceRunning), false})
	judged(t, memberFailed, with(func(f *Facts) {
		f.Members = []Member{{ID: "mem_1", Status: lifecycle.MemberActive},
			{ID: "mem_2", Status: lifecycle.MemberFailed}}
	}), change{"a member failed", nothing, true}, none, open,
		change{"the instance stops", stands(lifecycle.InstanceStopping), false},
		change{"none failed", func(f *Facts) { f.Members = f.Members[:1] }, false})
	judged(t, unhealthy, with(func(f *Facts) {
		f.Instance.Health, f.Instance.Observed = lifecycle.HealthUnhealthy, true
	}),
		change{"unhealthy", nothing, true}, none,
		change{"it stops", stands(lifecycle.InstanceStopping), false},
		change{"healthy", func(f *Facts) { f.Instance.Health = lifecycle.HealthHealthy }, false},
		change{"nobody has asked yet", func(f *Facts) { f.Instance.Observed = false }, false})
	judged(t, callsNarrowed, with(func(f *Facts) {
		f.Adapter, f.Instance.Health = &Adapter{Name: "pulse", Narrow: true}, lifecycle.HealthUnknown
	}),
		change{"narrowed", nothing, true}, none,
		change{"no adapter is registered", func(f *Facts) { f.Adapter = nil }, false},
		change{"not narrowed", func(f *Facts) { f.Adapter.Narrow = false }, false},
		change{"its manifest names inspections", func(f *Facts) { f.Instance.Inspects = true }, false},
		change{"it stops", stands(lifecycle.InstanceStopping), false},
		change{"healthy", func(f *Facts) { f.Instance.Health = lifecycle.HealthHealthy }, false})
	judged(t, entitlementEnded, with(func(f *Facts) { f.Instance.EntitlementEnded = &now }),
		change{"ended", nothing, true}, none,
		change{"it stops", stands(lifecycle.InstanceStopping), false},
		change{"it has stopped", stands(lifecycle.InstanceStopped), false},
		change{"not ended", func(f *Facts) { f.Instance.EntitlementEnded = nil }, false})
	judged(t, manifestRetired, with(func(f *Facts) { f.Instance.ManifestStage = lifecycle.StageRetired }),
		change{"retired", nothing, true}, none,
		change{"it stops", stands(lifecycle.InstanceStopping), false},
		change{"active", func(f *Facts) { f.Instance.ManifestStage = lifecycle.StageActive }, false})
	judged(t, drifted, with(func(f *Facts) { f.Instance.Drift = []Drift{{Message: "x"}} }),
		change{"drift", nothing, true}, none)
}

func TestTheHealthOfAnInstanceHasItsReason(t *testing.T) {
	t.Parallel()
	f := alone()
	f.Instance.Health, f.Instance.Observed, f.Instance.HealthSince = lifecycle.HealthUnhealthy, true, ago(time.Minute)
	found := only(t, unhealthy(f))
	require.Equal(t, "ins_1", found.subject)
	require.Equal(t, ago(time.Minute), found.since)
	require.Equal(t, []string{"health", "unhealthy", "reason", "", "way"}, found.words[:5])
	require.Contains(t, found.words[5], "planReplaceMember")
	require.Equal(t, "<family>.member.replace", found.key)
	f.Instance.HealthMessage = "no quorum"
	require.Equal(t, ": no quorum", only(t, unhealthy(f)).words[3])
	f.Members = []Member{{ID: "mem_1", Status: lifecycle.MemberFailed}}
	require.Empty(t, only(t, unhealthy(f)).key, "the rule's: a lost member is recovered")
	require.Contains(t, only(t, unhealthy(f)).words[5], "recoverMember")
}

func TestARepairThatHasStoppedIsToldWhileTheInstanceRuns(t *testing.T) {
	t.Parallel()
	stopped := func() *Facts {
		f := alone()
		f.Instance.RepairStopped, f.Instance.HealthSince = "the budget is spent", ago(time.Minute)
		return f
	}
	judged(t, repairStopped, stopped,
		change{"stopped", func(*Facts) {}, true},
		change{"no instance", func(f *Facts) { f.Instance = nil }, false},
		change{"it goes on", func(f *Facts) { f.Instance.RepairStopped = "" }, false},
		change{"the instance stops", func(f *Facts) { f.Instance.Status = lifecycle.InstanceStopping }, false})
	require.Equal(t, finding{subject: "ins_1", since: ago(time.Minute),
		words: []string{"reason", "the budget is spent"}},
		only(t, repairStopped(stopped())))
}

func TestDriftIsOfItsMemberOrOfTheInstance(t *testing.T) {
	t.Parallel()
	f := alone()
	f.Instance.Drift = []Drift{{Message: "one", MemberID: "mem_1", Since: ago(1)}, {Message: "two", Since: ago(2)}}
	require.Equal(t, []finding{
		{subject: "mem_1", since: ago(1), words: []string{"what", "one"}}, {subject: "ins_1", since: ago(2),
			words: []string{"what", "two"}},
	}, drifted(f))
}

func TestAFailedOperationIsToldUnlessTheInstanceSaysSoItself(t *testing.T) {
	t.Parallel()
	failed := func() *Facts {
		f := alone()
		f.Instance.Last = &Last{ID: "op_9", Kind: lifecycle.MembersAdd, State: lifecycle.OperationFailed,
			Code: "TIMEOUT", Message: "too late", Owner: OwnerUser, Ended: ago(time.Minute)}
		return f
	}
	judged(t, operationFailed, failed,
		change{"failed", func(*Facts) {}, true},
		change{"no instance", func(f *Facts) { f.Instance = nil }, false},
		change{"another is open", func(f *Facts) { f.Instance.Open = true }, false},
		change{"it had none", func(f *Facts) { f.Instance.Last = nil }, false},
		change{"it succeeded", func(f *Facts) { f.Instance.Last.State = lifecycle.OperationSucceeded }, false},
		change{"it was the launch", func(f *Facts) { f.Instance.Last.Kind = lifecycle.InstanceCreate }, false})
	require.Equal(t, finding{subject: "op_9", since: ago(time.Minute), owner: OwnerUser,
		words: []string{"operation", "op_9", "kind", "members add", "reason",
			"TIMEOUT: too late", "way", ""}}, only(t, operationFailed(failed())))
	stuck := failed()
	stuck.Instance.Last.Kind = lifecycle.InstanceDecommission
	require.Contains(t, only(t, operationFailed(stuck)).words[7], "force")
}

func TestAnOrphanSaysWhatItIsAndWhoOwnsIt(t *testing.T) {
	t.Parallel()
	f := alone()
	f.Orphans = []Orphan{
		{ID: "orp_1", Kind: lifecycle.OrphanAllocation, Message: "not released", Created: ago(2), Next: now.Add(1)},
		{ID: "orp_2", Kind: lifecycle.OrphanNodeResidue, Owner: OwnerNode, Message: "not torn down",
			LastError: "silent", Created: ago(1), Next: now},
	}
	require.Equal(t, []finding{
		{subject: "orp_1", since: ago(2), next: pointer(now.Add(1)), owner: OwnerPlatform,
			words: []string{"what", "an allocation is still reserved that no one requested to keep", "reason",
				"not released"}},
		{subject: "orp_2", since: ago(1), next: pointer(now), owner: OwnerNode,
			words: []string{"what", "something may be left on a node", "reason", "not torn down (silent)"}},
	}, orphanLeft(f))
}
