package blocker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// node returns a node whose agent reported last so long ago.
func node(id string, status lifecycle.NodeStatus, heard time.Duration) Node {
	return Node{ID: id, Name: "name of " + id, Status: status, Seen: ago(heard)}
}

func TestANodeIsLostAfterTwentySecondsOfSilence(t *testing.T) {
	t.Parallel()
	require.False(t, node("n", lifecycle.NodeOnline, 20*time.Second).lost(now))
	require.True(t, node("n", lifecycle.NodeOnline, 20*time.Second+1).lost(now))
	require.True(t, node("n", lifecycle.NodeOffline, 0).lost(now))
	require.True(t, node("n", lifecycle.NodeRetired, 0).lost(now))
}

func TestLostNodesAreToldOnceAndRetiredOnesApart(t *testing.T) {
	t.Parallel()
	f := working(lifecycle.MemberDrain)
	lost := node("n1", lifecycle.NodeOffline, time.Minute)
	well, retired := node("n2", lifecycle.NodeOnline, 0), node("n3", lifecycle.NodeRetired, 0)
	f.Members = []Member{{ID: "a", Name: "worker 0", Node: &lost}, {ID: "b", Node: &lost}, {ID: "c", Node: &well},
		{ID: "d"}, {ID: "e", Node: &retired}}
	f.Open = []Task{{MemberID: "b", Node: lost}, {MemberID: "f", Node: node("n4", lifecycle.NodeOffline, time.Hour)}}
	found := nodeOffline(f)
	require.Len(t, found, 2)
	require.Equal(t, finding{subject: "n1", since: ago(time.Minute), next: f.next(),
		words: []string{"node", "name of n1", "member", "worker 0"}}, found[0])
	require.Equal(t, "n4", found[1].subject)
	require.Equal(t, "n3", only(t, nodeRetired(f)).subject)
}

func TestAStepMayKnowOfANodeThatTheReaderCannotSee(t *testing.T) {
	t.Parallel()
	waits := func() *Facts {
		f := working(lifecycle.MemberDrain)
		f.Operation.Step.WaitCode, f.Operation.Step.Message = fault.NodeUnreachable, "waits for the agent of node n7"
		return f
	}
	judged(t, nodeOffline, waits,
		change{"it waits", func(*Facts) {}, true},
		change{"for something else", func(f *Facts) { f.Operation.Step.WaitCode = fault.AdapterInvalid }, false},
		change{"before its first step", func(f *Facts) { f.Operation.Step = nil }, false},
		change{"force waits for no node", func(f *Facts) { f.Operation.Force = true }, false},
		change{"no operation", func(f *Facts) { f.Operation = nil }, false})
	require.Equal(t, []string{"node", "n7"}, only(t, nodeOffline(waits())).words)
	seen := waits()
	lost := node("n1", lifecycle.NodeOffline, time.Minute)
	seen.Members = []Member{{ID: "a", Node: &lost}}
	require.Equal(t, "n1", only(t, nodeOffline(seen)).subject, "what is seen needs no other word")
}

func TestAllocationsAreToldByTheirStatusWithWhoLivesInThem(t *testing.T) {
	t.Parallel()
	f := alone()
	f.Allocations = []Allocation{
		{ID: "alc_1", Status: lifecycle.AllocationFailed, Since: ago(1)}, {ID: "alc_2",
			Status: lifecycle.AllocationReleased, Since: ago(2)},
		{ID: "alc_3", Status: lifecycle.AllocationReleasing, Since: ago(3)}, {ID: "alc_4",
			Status: lifecycle.AllocationRequested, Since: ago(4)},
	}
	f.Members = []Member{{Name: "homeless"}, {Name: "worker 1", Allocation: pointer(ids.ID("alc_1"))},
		{Name: "worker 3", Allocation: pointer(ids.ID("alc_3"))}}
	for name, c := range map[string]struct {
		rule   func(*Facts) []finding
		id     string
		since  time.Duration
		member string
	}{
		"failed": {allocationFailed, "alc_1", 1, "worker 1"}, "lost": {allocationLost, "alc_2", 2, ""},
		"releasing": {allocationReleasing, "alc_3", 3, "worker 3"}, "pending": {allocationPending, "alc_4", 4, ""},
	} {
		require.Equal(t, finding{subject: c.id, since: ago(c.since),
			words: []string{"allocation", c.id, "member", c.member}},
			only(t, c.rule(f)), name)
	}
}

func TestAReleaseIsInTheWayUnlessTheInstanceIsBeingStopped(t *testing.T) {
	t.Parallel()
	releasing := func() *Facts {
		f := working(lifecycle.MemberDrain)
		f.Allocations = []Allocation{{ID: "alc_1", Status: lifecycle.AllocationReleasing}}
		return f
	}
	judged(t, allocationReleasing, releasing,
		change{"it runs", func(*Facts) {}, true},
		change{"no operation", func(f *Facts) { f.Operation = nil }, true},
		change{"no instance", func(f *Facts) { f.Instance = nil }, false},
		change{"it stops", func(f *Facts) { f.Instance.Status = lifecycle.InstanceStopping }, false},
		change{"it is decommissioned", func(f *Facts) { f.Operation.Kind = lifecycle.InstanceDecommission }, false})
}

// tasked are facts of an operation with one open task on a node that is well.
func tasked() *Facts {
	f := working(lifecycle.MemberDrain)
	f.Open = []Task{{ID: "tsk_1", Kind: lifecycle.TaskRun, State: lifecycle.TaskPending,
		Node:    node("n1", lifecycle.NodeOnline, 0),
		Created: ago(10*time.Second + 1), Timeout: time.Minute}}
	return f
}

func TestATaskIsTakenWithinTenSecondsWhereTheAgentIsHeard(t *testing.T) {
	t.Parallel()
	judged(t, taskNotTaken, tasked,
		change{"later", func(*Facts) {}, true},
		change{"in time", func(f *Facts) { f.Open[0].Created = ago(10 * time.Second) }, false},
		change{"taken", func(f *Facts) { f.Open[0].State = lifecycle.TaskRunning }, false},
		change{"the node is lost", func(f *Facts) { f.Open[0].Node.Status = lifecycle.NodeOffline }, false})
	require.Equal(t, ago(10*time.Second+1), only(t, taskNotTaken(tasked())).since)
	judged(t, taskRunning, tasked,
		change{"under way", func(*Facts) {}, true},
		change{"the node is lost", func(f *Facts) { f.Open[0].Node.Status = lifecycle.NodeOffline }, false})
}

func TestATaskIsOverdueAMinuteAfterItsOwnTime(t *testing.T) {
	t.Parallel()
	running := func() *Facts {
		f := tasked()
		f.Open[0].State, f.Open[0].Started = lifecycle.TaskRunning, ago(2*time.Minute+1)
		return f
	}
	judged(t, taskOverdue, running,
		change{"over", func(*Facts) {}, true},
		change{"in time", func(f *Facts) { f.Open[0].Started = ago(2 * time.Minute) }, false},
		change{"not begun", func(f *Facts) { f.Open[0].State = lifecycle.TaskPending }, false})
	require.Equal(t, ago(time.Minute+1), only(t, taskOverdue(running())).since)
}

func TestTheNewestTaskThatFailedIsToldWhileNoneIsOpen(t *testing.T) {
	t.Parallel()
	failed := func() *Facts {
		f := working(lifecycle.MemberDrain)
		f.Ended = []Task{
			{ID: "tsk_2", Kind: lifecycle.TaskRun, State: lifecycle.TaskFailed, Ended: ago(1)},
			{ID: "tsk_1", Kind: lifecycle.TaskRun, State: lifecycle.TaskSucceeded, Ended: ago(2)},
		}
		return f
	}
	judged(t, taskFailed, failed,
		change{"failed", func(*Facts) {}, true},
		change{"timed out", func(f *Facts) { f.Ended[0].State = lifecycle.TaskTimedOut }, true},
		change{"succeeded", func(f *Facts) { f.Ended[0].State = lifecycle.TaskSucceeded }, false},
		change{"the platform's own", func(f *Facts) { f.Ended[0].Platform = true }, false},
		change{"none ended", func(f *Facts) { f.Ended = nil }, false},
		change{"the only one", func(f *Facts) { f.Ended = f.Ended[:1] }, true},
		change{"another is open", func(f *Facts) { f.Open = tasked().Open }, false},
		change{"not on the adapter", func(f *Facts) { f.Operation.Step.Name = "verify" }, false})
	require.Equal(t, "tsk_2", only(t, taskFailed(failed())).subject)
	require.Equal(t, ago(1), only(t, taskFailed(failed())).since)
}

func TestProbesAreToldWhileThePlatformRunsThem(t *testing.T) {
	t.Parallel()
	probing := func() *Facts {
		f := working(lifecycle.InstanceCreate)
		f.Operation.Step.Name = "verify"
		f.Ended = []Task{{ID: "tsk_1", MemberID: "mem_1", Kind: lifecycle.TaskProbe, Platform: true,
			State: lifecycle.TaskFailed}}
		return f
	}
	judged(t, probeFailing, probing,
		change{"failing", func(*Facts) {}, true},
		change{"before its first step", func(f *Facts) { f.Operation.Step = nil }, false},
		change{"the adapter has it", func(f *Facts) { f.Operation.Step.Name = "await" }, false},
		change{"the adapter's own", func(f *Facts) { f.Ended[0].Platform = false }, false},
		change{"another kind", func(f *Facts) { f.Ended[0].Kind = lifecycle.TaskResidue }, false},
		change{"it passed", func(f *Facts) { f.Ended[0].Good = true }, false})
	judged(t, residueLeft, probing, change{"a probe is no look for residue", func(*Facts) {}, false})
}
