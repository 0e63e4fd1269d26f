package adapter

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
)

// memberOf is a dispatch of a member operation on the first member.
func (l *lab) memberOf(id string, kind Kind) Dispatch {
	d := l.dispatchOf(id, kind)
	d.Targets = []string{"mem_a"}
	return d
}

func TestForceBeginsARunningOperationAnewAndUndoesNothing(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	l.hold("job")
	d := l.memberOf("op_1", MemberDrain)
	l.dispatch(base, d, http.StatusAccepted)
	status := l.eventually(base, "op_1", "waiting", func(s Status) bool { return len(s.WaitsFor) > 0 })
	require.Len(t, status.WaitsFor[0].Name, contract.MaxWorkText, "a text longer than the bound is cut")

	d.Force = true
	l.dispatch(base, d, http.StatusAccepted)
	require.Equal(t, StateRunning, l.eventually(base, "op_1", "waiting", func(Status) bool { return true }).State,
		"force without a higher attempt is a repeat")

	d.Attempt = 2
	l.dispatch(base, d, http.StatusAccepted)
	status = l.ends(base, "op_1", StateSucceeded)
	require.Equal(t, 2, status.Attempt)
	require.Empty(t, status.WaitsFor, "what has ended waits for nothing")
	require.Equal(t, MemberDrained, status.Members[0].Status)
	require.Equal(t, []string{"shut", "job", "shut"}, l.steps(), "anew, without an undo")
}

func TestHigherAttemptWithoutForceDoesNotTakeForceBack(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	l.hold("shut")
	d := l.memberOf("op_1", MemberDrain)
	d.Force = true
	l.dispatch(base, d, http.StatusAccepted)
	require.Eventually(t, func() bool { return len(l.steps()) == 1 }, patience, tick)
	d.Attempt, d.Force = 2, false
	l.dispatch(base, d, http.StatusAccepted)
	l.release("shut")
	l.ends(base, "op_1", StateSucceeded)
	require.Equal(t, []string{"shut"}, l.steps())
}

func TestForcedOperationIsResumedWithForceAfterAKill(t *testing.T) {
	t.Parallel()
	l, dir := newLab(t), t.TempDir()
	base, kill := child(t, l, dir)
	l.hold("job")
	d := l.memberOf("op_1", MemberDrain)
	l.dispatch(base, d, http.StatusAccepted)
	l.eventually(base, "op_1", "waiting", func(s Status) bool { return len(s.WaitsFor) > 0 })
	l.hold("shut")
	d.Force, d.Attempt = true, 2
	l.dispatch(base, d, http.StatusAccepted)
	require.Eventually(t, func() bool { return len(l.steps()) == 3 }, patience, tick)
	kill()

	base, _ = child(t, l, dir)
	l.release("shut")
	require.Equal(t, 2, l.ends(base, "op_1", StateSucceeded).Attempt)
	require.Equal(t, []string{"shut", "job", "shut"}, l.steps())
}

func TestForceKeepsThePointOfNoReturn(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	l.hold("committed")
	d := l.dispatchOf("op_1", InstanceCreate)
	l.dispatch(base, d, http.StatusAccepted)
	require.Eventually(t, func() bool { return len(l.steps()) == 7 }, patience, tick)
	d.Force, d.Attempt = true, 2
	l.hold("first")
	l.dispatch(base, d, http.StatusAccepted)
	code, body := l.call(base, http.MethodPost, CancelPath("op_1"), CancelRequest{Attempt: 2})
	require.Equal(t, http.StatusOK, code)
	var result CancelResult
	require.NoError(t, json.Unmarshal(body, &result))
	require.Equal(t, CancelTooLate, result.Outcome)
	l.release("first")
	l.release("committed")
	l.ends(base, "op_1", StateSucceeded)
}

func TestForcedTeardownPassesOverNodesThatCannotBeReached(t *testing.T) {
	t.Parallel()
	l, base := setup(t)
	d := l.dispatchOf("op_1", MemberRemove)
	d.Targets, d.Force = []string{"mem_a", "mem_b"}, true
	d.Members[1].Node.Reachable = new(bool)
	l.dispatch(base, d, http.StatusAccepted)
	status := l.ends(base, "op_1", StateSucceeded)
	require.Equal(t, []string{"teardown"}, l.steps(), "nothing is asked of the node that is away")
	require.JSONEq(t, `["mem_b"]`, string(status.Evidence["notTornDown"]))
	require.JSONEq(t, `{"mem_a":0}`, string(status.Evidence["residue"]))
	for _, member := range status.Members {
		require.Equal(t, MemberRemoved, member.Status)
	}
}

func TestForcedTaskIsNotAwaitedBeyondItsTime(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	app := demoApp()
	failed := make(chan error, 1)
	app.Operations[MemberRecover] = func(ctx context.Context, run *Run) error {
		_, err := run.Do(ctx, run.Targets()[0], "gone", RunCommand{Command: []string{"gone"}}, Within(time.Second))
		failed <- err
		return err
	}
	base, _ := startKit(t, l, l.config(t.TempDir(), app))
	l.hold("gone")
	d := l.memberOf("op_1", MemberRecover)
	d.Force = true
	l.dispatch(base, d, http.StatusAccepted)
	require.True(t, IsUnreachable(<-failed))
	status := l.ends(base, "op_1", StateFailed)
	require.Equal(t, CodeNodeUnreachable, status.Error.Code)
	require.Equal(t, OwnerNode, status.Error.Owner)
}

func TestMembersThatLeftOrNeverCameAreForgotten(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	dir := t.TempDir()
	base, kill := child(t, l, dir)
	seen := func(base string) []string {
		code, body := l.call(base, http.MethodGet, InstancePath("ins_1"), nil, HeaderPlatformToken, "tok-1")
		require.Equal(t, http.StatusOK, code, "body: %s", body)
		var observation Observation
		require.NoError(t, json.Unmarshal(body, &observation))
		ids := []string{}
		for _, member := range observation.Members {
			ids = append(ids, member.ID)
		}
		return ids
	}
	l.dispatch(base, l.memberOf("op_1", MemberRemove), http.StatusAccepted)
	l.ends(base, "op_1", StateSucceeded)
	require.Eventually(t, func() bool { return len(seen(base)) == 1 }, patience, tick)

	add := l.dispatchOf("op_2", MembersAdd)
	add.Members = append(add.Members[1:], Member{ID: "mem_c", ComponentKey: "peer", Index: 2})
	add.Targets = []string{"mem_c"}
	l.dispatch(base, add, http.StatusAccepted)
	require.Equal(t, "NOTHING_TO_ADD", l.ends(base, "op_2", StateFailed).Error.Code)
	require.Eventually(t, func() bool { return len(seen(base)) == 1 }, patience, tick)

	add.OperationID, add.Change = "op_3", json.RawMessage(`{"components":[{"key":"peer","count":1}]}`)
	l.dispatch(base, add, http.StatusAccepted)
	l.ends(base, "op_3", StateSucceeded)
	require.Equal(t, []string{"mem_b", "mem_c"}, seen(base))
	kill()
	base, _ = child(t, l, dir)
	require.Equal(t, []string{"mem_b", "mem_c"}, seen(base), "also by the next process")
}

func TestEveryLookIsANewTaskAndIsNotJournalled(t *testing.T) {
	t.Parallel()
	l, dir := newLab(t), t.TempDir()
	app := demoApp()
	looked := make(chan struct{})
	app.Operations[MemberRecover] = func(ctx context.Context, run *Run) error {
		for range 3 {
			if _, err := run.Look(ctx, run.Targets()[0], "look", RunCommand{Command: []string{"glance"}}); err != nil {
				return err
			}
		}
		close(looked)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	base, kit := startKit(t, l, l.config(dir, app))
	l.dispatch(base, l.memberOf("op_1", MemberRecover), http.StatusAccepted)
	<-looked
	require.Len(t, l.steps(), 3)
	kit.Stop()
	raw, err := os.ReadFile(dir + "/operations/op_1.jsonl")
	require.NoError(t, err)
	require.NotContains(t, string(raw), "glance")
}
