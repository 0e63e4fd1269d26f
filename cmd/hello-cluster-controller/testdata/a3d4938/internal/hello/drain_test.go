package hello

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestDrainWaitsForWorkSaysSoAndThenProvesIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	began := time.Now().Add(-2 * time.Second)
	id := c.work("mem_1", 4)
	d := c.op(adapter.MemberDrain, "mem_1")
	c.p.Dispatch(c.base, d)
	status := c.await(d, "waiting", func(s adapter.Status) bool { return len(s.WaitsFor) > 0 || s.State.Terminal() })
	work := status.WaitsFor[0]
	require.Equal(t, adapter.Work{
		Kind: "work", ID: id, Name: "count sheep", MemberID: "mem_1", Owner: "usr_1", Since: work.Since, Message: "takes 4 seconds on peer-1",
	}, work)
	require.True(t, work.Since.After(began))
	require.Equal(t, adapter.MemberDraining, stateOf(status, "mem_1").Status)
	c.refuses("mem_1")
	status = c.await(d, "ended", func(s adapter.Status) bool { return s.State.Terminal() })
	require.Equal(t, adapter.StateSucceeded, status.State, "%+v", status.Error)
	require.Equal(t, adapter.MemberDrained, stateOf(status, "mem_1").Status)
	require.Zero(t, evidence[struct{ WorkLeft int }](t, status, "drained").WorkLeft)
	require.FileExists(t, filepath.Join(c.p.Root("mem_1"), "srv/hello/done"), "the work came to its end")
	c.refuses("mem_1")

	c.members[1].Status = "drained"
	status = c.succeed(c.op(adapter.MemberUncordon, "mem_1"))
	require.Equal(t, adapter.MemberActive, stateOf(status, "mem_1").Status)
	c.work("mem_1", 1)
}

func TestCanceledDrainPutsThePeerBackInServiceAndItsWorkGoesOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	id := c.work("mem_1", 600)
	d := c.op(adapter.MemberDrain, "mem_1")
	c.p.Dispatch(c.base, d)
	c.await(d, "waiting", func(s adapter.Status) bool { return len(s.WaitsFor) > 0 })
	require.Equal(t, adapter.CancelDone, c.cancel(d).Outcome)
	status := c.await(d, "canceled", func(s adapter.Status) bool { return s.State == adapter.StateCanceled })
	require.Equal(t, adapter.MemberActive, stateOf(status, "mem_1").Status)
	require.Empty(t, status.WaitsFor)
	require.Equal(t, []string{id}, c.working())
	c.work("mem_1", 1)
}

func TestDrainOfAPeerThatIsAwayIsNeverReadAsDrained(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	c.p.Away("mem_1")
	d := c.op(adapter.MemberDrain, "mem_1")
	d.Deadline = time.Now().Add(3 * time.Second)
	status := c.run(d)
	require.Equal(t, adapter.StateFailed, status.State)
	require.Equal(t, adapter.CodeDeadline, status.Error.Code)
	require.NotEqual(t, adapter.MemberDrained, stateOf(status, "mem_1").Status)
	require.NotContains(t, status.Evidence, "drained")
}

func TestForcedDrainEndsTheWorkAndSaysWhatWasLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	id := c.work("mem_1", 600)
	d := c.op(adapter.MemberDrain, "mem_1")
	d.Force = true
	status := c.succeed(d)
	require.Equal(t, adapter.MemberDrained, stateOf(status, "mem_1").Status)
	lost := evidence[struct{ Work []adapter.Work }](t, status, "workLost")
	require.Equal(t, id, lost.Work[0].ID)
	require.Empty(t, c.working())
}

func TestCordonKeepsNewWorkOutAndLeavesTheOldAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	id := c.work("mem_0", 600)
	c.succeed(c.op(adapter.MemberCordon, "mem_0"))
	c.refuses("mem_0")
	require.Equal(t, []string{id}, c.working())
	var elsewhere struct{ MemberID string }
	c.p.Action(c.base, "work.start", c.op(adapter.MemberCordon), "anywhere", map[string]any{"seconds": 1}, &elsewhere)
	require.Equal(t, "mem_1", elsewhere.MemberID)
	c.succeed(c.op(adapter.MemberUncordon, "mem_0"))
	c.work("mem_0", 1)
}

func TestDrainDoesNotOpenWhatACordonShut(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	c.work("mem_0", 600)
	c.succeed(c.op(adapter.MemberCordon, "mem_0"))
	d := c.op(adapter.MemberDrain, "mem_0")
	c.p.Dispatch(c.base, d)
	c.await(d, "waiting", func(s adapter.Status) bool { return len(s.WaitsFor) > 0 })
	c.cancel(d)
	c.await(d, "canceled", func(s adapter.Status) bool { return s.State == adapter.StateCanceled })
	c.refuses("mem_0")
}

func TestLabelsAreWrittenToThePeer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	d := c.op(adapter.MemberLabel, "mem_0")
	d.Change = raw(t, adapter.LabelChange{Labels: map[string]string{"zone": "a", "tier": "$(reboot)"}})
	status := c.succeed(d)
	require.Equal(t, "$(reboot)", evidence[map[string]string](t, status, "labels")["tier"])
	written, err := os.ReadFile(filepath.Join(c.p.Root("mem_0"), labelsPath))
	require.NoError(t, err)
	require.JSONEq(t, `{"tier":"$(reboot)","zone":"a"}`, string(written))
}

func TestRepeatedActionStartsOnePieceOfWork(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	d := c.op(adapter.MemberCordon)
	var first, second struct{ ID string }
	c.p.Action(c.base, "work.start", d, "once", map[string]any{"seconds": 600}, &first)
	c.p.Action(c.base, "work.start", d, "once", map[string]any{"seconds": 600}, &second)
	require.Equal(t, first.ID, second.ID)
	require.Equal(t, []string{first.ID}, c.working())
}
