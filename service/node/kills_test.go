package node_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/node"
)

func TestMemoryKillsOfAMemberAreOnItsInstancesTimelineOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	project := b.Project(b.Tenant())
	here, agent := b.walled()
	_, elsewhere := b.walled()
	members := b.members(b.housed(project, "", here, here))
	tells := func(since string, kills int) node.HeartbeatInput {
		in := beat
		in.MemoryKills = []node.MemoryKills{{MemberID: members[0].ID, Since: since, Kills: kills}}
		return in
	}
	const events = "type = 'apps.instance.member_out_of_memory' AND member_id = $1"
	for _, step := range []struct {
		since              string
		kills, killed, all int
	}{{"a", 1, 1, 1}, {"a", 1, 1, 1}, {"a", 3, 2, 2}, {"a", 2, 2, 2}, {"b", 1, 1, 3}} {
		_, err := b.Heartbeat(agent, tells(step.since, step.kills))
		require.NoError(t, err)
		require.Equal(t, step.all, b.Count("app_instance_event", events, members[0].ID), "%+v", step)
		require.Equal(t, 1, b.Count("app_instance_event", events+` AND payload->>'since' = $2
			AND payload->>'killed' = $3
			AND message LIKE '% had no memory left: the kernel of its node killed ' || $3 || ' of its processes'
			AND seq = (SELECT max(seq) FROM app_instance_event e WHERE e.member_id
			= $1)`, members[0].ID, step.since, string(rune('0'+step.killed))), "%+v", step)
	}
	_, err := b.Heartbeat(elsewhere, tells("a", 9))
	require.NoError(t, err, "a member that is not on the node is no news of it")
	unknown := tells("a", 1)
	unknown.MemoryKills[0].MemberID = ids.New(ids.Member)
	_, err = b.Heartbeat(agent, unknown)
	require.NoError(t, err)
	require.Equal(t, 3, b.Count("app_instance_event", "type = 'apps.instance.member_out_of_memory'"),
		"the others' members are not told of")
}

func TestMemoryKillsThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	here, agent := b.walled()
	for path, kills := range map[string][]node.MemoryKills{
		"input.memoryKills":         make([]node.MemoryKills, 1_001),
		"input.memoryKills.0.kills": {{MemberID: "mem_1", Since: "a"}},
		"input.memoryKills.0.since": {{MemberID: "mem_1", Since: strings.Repeat("a", 65), Kills: 1}},
	} {
		in := beat
		in.MemoryKills = kills
		_, err := b.Heartbeat(agent, in)
		platformtest.Refused(t, err, fault.InvalidArgument, path)
	}
	require.Equal(t, 1, b.Count("compute_node", "id = $1 AND last_seen_at IS NOT DISTINCT FROM $2", here.ID,
		here.LastSeenAt), "nothing is written")
}
