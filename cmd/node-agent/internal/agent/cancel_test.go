package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCancelEndsWaitingAndRunningTasks(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		running := shell("tsk_a", "echo begun; sleep 7797")
		r.give(running)
		r.eventually(func() bool { return r.seen("tsk_a").output["STDOUT"] == "begun\n" }, "the command has begun")
		running.CancelRequested = true
		r.push(running)
		require.Equal(t, "CANCELED", r.ended("tsk_a").State)
		unseen := shell("tsk_b", "echo never")
		unseen.CancelRequested = true
		done := r.do(unseen)
		require.Equal(t, "CANCELED", done.State)
		require.Empty(t, done.output["STDOUT"])
	})
}

func TestWhatWasTakenBeforeACutAndWithdrawnSinceIsNotBegun(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		r.mu.Lock()
		r.refuse = func(operation string) bool { return operation == "ReportNodeTask" }
		r.mu.Unlock()
		r.give(shell("tsk_a", "echo late > "+root+"/var/late"))
		r.give(shell("tsk_b", "echo wanted"))
		for _, id := range []string{"tsk_a", "tsk_b"} {
			r.eventually(func() bool {
				return strings.Contains(r.log.text(), `"msg":"task taken","task_id":"`+id)
			}, id+" is taken")
		}
		r.mu.Lock()
		r.tasks["tsk_a"].CancelRequested = true // and no stream tells the agent
		r.refuse = nil
		r.mu.Unlock()
		done := r.ended("tsk_a")
		require.Equal(t, "CANCELED", done.State)
		require.Equal(t, "canceled before it started", done.message)
		require.Equal(t, "SUCCEEDED", r.ended("tsk_b").State)
		look := r.do(shell("tsk_c", "test -e "+root+"/var/late"))
		require.Equal(t, "FAILED", look.State, "nothing was done")
	})
}

func TestCancelOfARunThatAnEarlierAgentStarted(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, r *rig) {
		running := shell("tsk_a", "echo begun; sleep 7798")
		r.give(running)
		r.eventually(func() bool { return r.seen("tsk_a").output["STDOUT"] == "begun\n" }, "the command has begun")
		r.kill()
		r.mu.Lock()
		r.tasks["tsk_a"].CancelRequested = true
		r.mu.Unlock()
		r.run()
		require.Equal(t, "CANCELED", r.ended("tsk_a").State)
		left, err := r.manager().Residue(member)
		require.NoError(t, err)
		require.NotContains(t, fmt.Sprint(left.Processes), "sleep")
	})
}
