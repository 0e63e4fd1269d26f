package blocker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// ago is a moment before now.
func ago(d time.Duration) time.Time { return now.Add(-d) }

// working are the facts of an operation that its adapter works on, with nothing wrong.
func working(kind lifecycle.OperationKind) *Facts {
	seen := ago(time.Second)
	return &Facts{
		Now: now, Workers: Pulse{Alive: true, Heard: &seen}, Family: "scheduler", AdapterName: "it",
		Adapter:  &Adapter{Name: "it", Seen: &seen},
		Instance: &Instance{ID: "ins_1", Status: lifecycle.InstanceRunning},
		Operation: &Operation{ID: "op_1", Kind: kind, State: lifecycle.OperationRunning, Created: ago(time.Hour),
			Due:      now.Add(time.Second),
			Deadline: now.Add(time.Hour), Dispatches: 1, AdapterState: "running",
			Step: &Step{Name: "await", State: lifecycle.StepRunning, Started: ago(time.Minute),
				Message: "the adapter works on it"}},
	}
}

func codes(list []*Blocker) []string {
	out := make([]string, len(list))
	for i, one := range list {
		out[i] = one.Code
	}
	return out
}

func TestAnOperationInOrderSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	found := Of(working(lifecycle.MemberDrain))
	require.Equal(t, []string{"ADAPTER_WORKING"}, codes(found))
	require.Equal(t, "adapter it works on it", found[0].Message)
	require.Equal(t, ago(time.Minute), found[0].Since)
	require.Equal(t, now.Add(time.Second), *found[0].NextRetryAt)
	require.Equal(t, "operation.cancel", found[0].PermissionKey)
	require.Empty(t, Of(working(lifecycle.InstanceDecommission))[0].PermissionKey, "a teardown cannot be canceled")
}

func TestEveryOpenOperationHasABlockerInEveryStateAndStep(t *testing.T) {
	t.Parallel()
	for _, state := range []lifecycle.OperationState{lifecycle.OperationPending, lifecycle.OperationRunning,
		lifecycle.OperationCanceling, lifecycle.OperationCompensating} {
		for _, step := range []string{"", "prepare", "dispatch", "await", "verify", "residue", "withdraw", "finish"} {
			for _, claimed := range []bool{false, true} {
				for _, adapter := range []string{"it", ""} {
					f := working(lifecycle.MemberRemove)
					f.Operation.State, f.Operation.Claimed, f.Operation.Holder.Alive, f.AdapterName = state, claimed,
						true, adapter
					f.Operation.Step.Name = step
					if step == "" {
						f.Operation.Step = nil
					}
					if adapter == "" && state == lifecycle.OperationCanceling {
						f.Operation.CancelAskedAt = &f.Operation.Created
					}
					require.NotEmpty(t, Of(f), "%s %s %v %s", state, step, claimed, adapter)
				}
			}
		}
	}
}

func TestTheKeyOfForceIsTheKindsOwnWhileForceMayBeChosen(t *testing.T) {
	t.Parallel()
	f := working(lifecycle.MemberRemove)
	f.Members = []Member{{ID: "mem_1", Name: "worker 0",
		Node: &Node{ID: "nod_1", Name: "n1", Status: lifecycle.NodeOffline, Seen: ago(time.Hour)}}}
	require.Equal(t, "NODE_OFFLINE", Of(f)[0].Code)
	require.Equal(t, "scheduler.member.remove", Of(f)[0].PermissionKey)
	f.Operation.Kind = lifecycle.InstanceUpgrade
	require.Empty(t, Of(f)[0].PermissionKey, "an upgrade knows no force")
	f.Operation.Targets = []ids.ID{"mem_2"}
	require.Equal(t, []string{"ADAPTER_WORKING"}, codes(Of(f)), "a node of others is none of its business")
	f.Operation.Targets, f.Operation.Force = nil, true
	require.Equal(t, []string{"ADAPTER_WORKING"}, codes(Of(f)), "force waits for no node")
}

func TestForceHasItsGraceAndThenNone(t *testing.T) {
	t.Parallel()
	f := working(lifecycle.MemberRemove)
	began := ago(time.Minute)
	f.Operation.ForcedAt, f.Operation.Deadline = &began, began
	found := Of(f)
	require.Equal(t, "FORCE_GRACE", found[0].Code)
	require.Equal(t, began, found[0].Since)
	require.Equal(t, now.Add(time.Minute), *found[0].NextRetryAt)
	require.Contains(t, found[0].Message, "until 2026-11-20T12:01:00Z")
	began = ago(3 * time.Minute)
	require.NotContains(t, codes(Of(f)), "FORCE_GRACE")
}

func TestADeadlineThatIsNearIsToldLast(t *testing.T) {
	t.Parallel()
	f := working(lifecycle.MemberDrain)
	f.Operation.Deadline = now.Add(30 * time.Second)
	require.Equal(t, []string{"ADAPTER_WORKING", "DEADLINE_NEAR"}, codes(Of(f)))
	f.Operation.Deadline = ago(time.Second)
	require.Equal(t, []string{"DEADLINE_PASSED", "ADAPTER_WORKING"}, codes(Of(f)))
}

func TestAFeedThatIsNotReadIsToldLast(t *testing.T) {
	t.Parallel()
	f := working(lifecycle.MemberDrain)
	seen := ago(2 * time.Minute)
	f.Adapter.Seen = &seen
	found := Of(f)
	require.Equal(t, []string{"ADAPTER_WORKING", "FEED_SILENT"}, codes(found))
	require.Equal(t, seen, found[1].Since)
	f.Adapter.Problem = "adapter it cannot be reached"
	require.Equal(t, []string{"ADAPTER_UNAVAILABLE", "ADAPTER_WORKING"}, codes(Of(f)))
	require.Equal(t, seen, Of(f)[0].Since, "since its last good answer")
}

func TestCompensationStuckOnANodeSaysSoFirst(t *testing.T) {
	t.Parallel()
	f := working(lifecycle.MembersAdd)
	f.Operation.State, f.Operation.Step.Name, f.Operation.Step.Message = lifecycle.OperationCompensating, "undo",
		"tearing down what was added"
	f.Operation.Targets = []ids.ID{"mem_1"}
	f.Members = []Member{{ID: "mem_1", Name: "worker 0",
		Node: &Node{ID: "nod_1", Name: "n1", Status: lifecycle.NodeOnline, Seen: ago(time.Minute)}}}
	found := Of(f)
	require.Equal(t, []string{"NODE_OFFLINE", "COMPENSATING"}, codes(found),
		"a node that is not heard is lost whatever its row says")
	require.Equal(t, "what was partly done is being undone: tearing down what was added", found[1].Message)
}

func TestAProbeFailsSinceTheFirstOfItsFailuresInARow(t *testing.T) {
	t.Parallel()
	f := working(lifecycle.InstanceCreate)
	f.Operation.Step.Name = "verify"
	task := func(ended time.Duration, member ids.ID, good bool, detail string) Task {
		return Task{ID: "tsk", MemberID: member, Kind: lifecycle.TaskProbe, Platform: true, Name: "up",
			State: lifecycle.TaskFailed, Ended: ago(ended), Good: good, Detail: detail}
	}
	f.Ended = []Task{task(1, "mem_1", false, "newest"), task(1, "mem_2", true, ""), task(2, "mem_1", false, "older"),
		task(2, "mem_2", false, "past"),
		task(3, "mem_1", true, ""), task(4, "mem_1", false, "long ago")}
	found := Of(f)
	require.Equal(t, []string{"PROBE_FAILING", "STEP_RUNNING"}, codes(found))
	require.Equal(t, "mem_1", found[0].Subject)
	require.Equal(t, ago(2), found[0].Since)
	require.Contains(t, found[0].Message, "newest")
}

func TestListsAreBoundedAndTellOfASubjectOnce(t *testing.T) {
	t.Parallel()
	f := working(lifecycle.InstanceDecommission)
	for i := range 30 {
		id := fmt.Sprintf("nod_%d", i/2) // two members a node
		f.Members = append(f.Members, Member{ID: ids.ID(fmt.Sprint(i)),
			Node: &Node{ID: id, Status: lifecycle.NodeOffline, Seen: ago(time.Hour)}})
	}
	require.Len(t, Of(f), 16, "fifteen nodes, and the adapter")
	other := *f
	require.Len(t, OfInstance(&Facts{Now: now, Instance: f.Instance, Family: "apps", AdapterName: "it",
		Adapter: f.Adapter, Members: f.Members}, []*Facts{f, &other}), 16)
	for i := range 30 {
		f.Members = append(f.Members, Member{ID: "mem",
			Node: &Node{ID: fmt.Sprintf("other_%d", i), Status: lifecycle.NodeOffline, Seen: ago(time.Hour)}})
	}
	require.Len(t, Of(f), MaxListed)
}

func TestAnInstanceInOrderHasNoBlockers(t *testing.T) {
	t.Parallel()
	seen := ago(time.Second)
	f := &Facts{Now: now, Workers: Pulse{}, Family: "apps", AdapterName: "it",
		Adapter: &Adapter{Name: "it", Seen: &seen},
		Instance: &Instance{ID: "ins_1", Status: lifecycle.InstanceRunning, Health: lifecycle.HealthHealthy,
			Observed: true, Last: &Last{ID: "op_1", State: lifecycle.OperationCanceled, Kind: lifecycle.MemberDrain}}}
	require.Empty(t, OfInstance(f, nil))
	f.Instance.Last.State = lifecycle.OperationFailed
	require.Equal(t, []string{"OPERATION_FAILED"}, codes(OfInstance(f, nil)))
	require.Equal(t, OwnerPlatform, OfInstance(f, nil)[0].Owner, "somebody owns it")
	f.Instance.Open = true
	require.Empty(t, OfInstance(f, nil), "another operation is open")
}

func TestWorkIsWaitedForSinceTheFirstOfItBegan(t *testing.T) {
	t.Parallel()
	f := working(lifecycle.MemberDrain)
	early, late := ago(time.Hour), ago(time.Minute)
	f.Operation.Works = []Work{{ID: "2", Since: &late, MemberID: "mem_1"}, {ID: "1", Since: &early}, {ID: "3"}}
	found := Of(f)
	require.Equal(t, []string{"WORK_RUNNING", "ADAPTER_WORKING"}, codes(found))
	require.Equal(t, early, found[0].Since)
	require.Equal(t, "waits for 3 pieces of work to end, first 2; it is not interrupted", found[0].Message)
	require.Equal(t, "scheduler.node.operate", found[0].PermissionKey)
}
