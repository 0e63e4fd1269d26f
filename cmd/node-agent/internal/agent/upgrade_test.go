package agent_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// networkGap is why the node says that members have no network of their own; empty when it reports no such gap.
func (s *standin) networkGap() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inventory == nil || s.inventory.Walls == nil {
		return ""
	}
	for _, gap := range s.inventory.Walls.Gaps {
		if gap.Wall == gql.IsolationWallNetwork {
			return gap.Reason
		}
	}
	return ""
}

// again kills the agent and starts it after change, and waits until it has reported the node's inventory.
func (r *rig) again(change func()) {
	r.t.Helper()
	r.kill()
	r.mu.Lock()
	r.inventory = nil
	r.mu.Unlock()
	change()
	before := r.count(&r.opened)
	r.run()
	r.eventually(func() bool {
		return r.count(&r.opened) > before && r.networkGap() != ""
	}, "the agent is back, and says why there is no network")
}

// An agent without networks is upgraded to one that gives them: what it has started goes on as it was, and the node
// reports why members share its network until the last of them has been removed.
func TestMembersFromBeforeNetworksGoOnAndAreWhyThereIsNone(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("networks need root")
	}
	r := newRig(t, memberinit.ModeContainer)
	started := r.do(newTask("tsk_start", "START_PROCESS",
		map[string]any{"name": "p", "command": []string{"sleep", "7731"}}))
	require.Equal(t, "SUCCEEDED", started.State, started.message)
	type inspected struct {
		Process struct {
			State string
			PID   int
		}
	}
	inspect := func(id string) inspected {
		return resultOf[inspected](t, r.do(newTask(id, "INSPECT_PROCESS", map[string]any{"name": "p"})))
	}
	before := inspect("tsk_before")
	require.Equal(t, "running", before.Process.State)

	r.again(func() { r.options.MemberNetwork = true })
	require.Contains(t, r.networkGap(),
		"1 members of an earlier agent use the node's network, "+member+" among them: remove or replace "+
			"them, then start the agent again")
	require.Equal(t, before, inspect("tsk_after"), "the process is the same one")
	result := resultOf[runResult](t, r.do(shell("tsk_run",
		"readlink /proc/self/ns/net; echo 127.0.0.1 > /scratch/kept; cat /scratch/kept")))
	own, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	require.Equal(t, own+"\n127.0.0.1\n", result.Stdout, "commands run in it, in the network that it began with")
	r.again(func() {})
	require.Contains(t, r.networkGap(), member, "as long as it is there")

	require.Equal(t, "SUCCEEDED", r.do(newTask("tsk_down", "TEARDOWN", struct{}{})).State)
	require.Contains(t, r.networkGap(), member, "rules are made when an agent starts")
	r.again(func() {})
	require.NotContains(t, r.networkGap(), member)
	require.Contains(t, r.networkGap(), "127.0.0.1",
		"what is left to say is that the address is none that others reach")
}
