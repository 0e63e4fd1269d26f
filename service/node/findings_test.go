package node_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/node"
)

func found(failure lifecycle.MemberFailure, members ...ids.ID) node.HeartbeatInput {
	in := beat
	for _, id := range members {
		in.MemberFindings = append(in.MemberFindings, node.MemberFinding{MemberID: id, Failure: failure})
	}
	return in
}

func TestAMemberAtRestThatItsAgentFindsLostIsFailedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	here, agent := b.walled()
	instance := b.housed(b.Project(b.Tenant()), "", here, here)
	members := b.members(instance)
	b.SQL(`UPDATE member SET status = 'ACTIVE' WHERE instance_id = $1`, instance.ID)
	b.SQL(`UPDATE instance SET status = 'RUNNING', health = 'HEALTHY' WHERE id = $1`, instance.ID)
	for range 2 {
		_, err := b.Heartbeat(agent, found(lifecycle.FailureInitGone, members[0].ID))
		require.NoError(t, err)
	}
	lost := b.Ent.Member.GetX(b.t.Context(), members[0].ID)
	require.Equal(t, lifecycle.MemberFailed, lost.Status)
	require.Equal(t, lifecycle.HealthUnhealthy, lost.Health)
	require.Equal(t, lifecycle.FailureInitGone, *lost.Failure)
	require.NotNil(t, lost.FailedAt)
	require.Equal(t, 1, b.Count("app_instance_event", `type = 'apps.instance.member_failed' AND member_id = $1
		AND payload->>'cause' = 'INIT_GONE' AND payload->>'foundBy' = 'agent'`, lost.ID))
	now := b.Ent.Instance.GetX(b.t.Context(), instance.ID)
	require.Equal(t, lifecycle.InstanceRunning, now.Status, "the instance runs on")
	require.NotEqual(t, lifecycle.HealthHealthy, now.Health)
	require.Equal(t, lifecycle.MemberActive, b.Ent.Member.GetX(b.t.Context(), members[1].ID).Status)
}

func TestAnInstanceBelowItsManifestsMembersIsUnhealthy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	here, agent := b.walled()
	instance := b.housed(b.Project(b.Tenant()), "", here, here)
	b.SQL(`UPDATE member SET status = 'ACTIVE' WHERE instance_id = $1`, instance.ID)
	b.SQL(`UPDATE instance SET status = 'RUNNING', health = 'HEALTHY' WHERE id = $1`, instance.ID)
	var all []ids.ID
	for _, one := range b.members(instance) {
		all = append(all, one.ID)
	}
	_, err := b.Heartbeat(agent, found(lifecycle.FailureNodeRestarted, all...))
	require.NoError(t, err)
	now := b.Ent.Instance.GetX(b.t.Context(), instance.ID)
	require.Equal(t, lifecycle.InstanceRunning, now.Status)
	require.Equal(t, lifecycle.HealthUnhealthy, now.Health)
	require.NotNil(t, now.UnservedAt)
	require.Equal(t, 1, b.Count("app_instance_event", `instance_id = $1 AND type = 'apps.instance.unhealthy'`,
		instance.ID))
}

func TestFindingsOfMembersThatHaveAnOperationWaitForItsEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	here, agent := b.walled()
	instance := b.housed(b.Project(b.Tenant()), "", here)
	member := b.members(instance)[0]
	b.SQL(`UPDATE member SET status = 'ACTIVE' WHERE instance_id = $1`, instance.ID)
	b.SQL(`UPDATE instance SET status = 'RUNNING' WHERE id = $1`, instance.ID)
	op := b.Operation(instance, lifecycle.InstanceUpgrade, lifecycle.OperationRunning)
	status := func() lifecycle.MemberStatus {
		_, err := b.Heartbeat(agent, found(lifecycle.FailureInitGone, member.ID))
		require.NoError(t, err)
		return b.Ent.Member.GetX(b.t.Context(), member.ID).Status
	}
	require.Equal(t, lifecycle.MemberActive, status(), "the upgrade has its hands on it")
	b.SQL(`UPDATE operation SET state = 'SUCCEEDED', ended_at = now() WHERE id = $1`, op.ID)
	require.Equal(t, lifecycle.MemberActive, status(), "what was seen may be older than the operation's end")
	b.SQL(`UPDATE operation SET ended_at = $2 WHERE id = $1`, op.ID, time.Now().Add(-time.Minute))
	require.Equal(t, lifecycle.MemberFailed, status())
}

func TestFindingsOfOthersMembersChangeNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	here, _ := b.walled()
	_, elsewhere := b.walled()
	instance := b.housed(b.Project(b.Tenant()), "", here)
	b.SQL(`UPDATE member SET status = 'ACTIVE' WHERE instance_id = $1`, instance.ID)
	b.SQL(`UPDATE instance SET status = 'RUNNING' WHERE id = $1`, instance.ID)
	_, err := b.Heartbeat(elsewhere, found(lifecycle.FailureInitGone, b.members(instance)[0].ID, ids.New(ids.Member)))
	require.NoError(t, err)
	require.Equal(t, 0, b.Count("member", "status = 'FAILED'"))
	require.Equal(t, 0, b.Count("app_instance_event", "type = 'apps.instance.member_failed'"))
}

func TestFindingsThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	here, agent := b.walled()
	for path, in := range map[string]node.HeartbeatInput{
		"input.memberFindings.0.failure": found(lifecycle.FailureNodeLost, "mem_1"),
		"input.memberFindings":           {MemberFindings: make([]node.MemberFinding, 1_001)},
		"input.memberFindings.0.message": {MemberFindings: []node.MemberFinding{{MemberID: "mem_1",
			Failure: "INIT_GONE", Message: strings.Repeat("x", 501)}}},
		"input.memberFindings.0.ageSeconds": {MemberFindings: []node.MemberFinding{{MemberID: "mem_1",
			Failure: "INIT_GONE", AgeSeconds: -1}}},
		"input.processRestarts.0.restarts": {ProcessRestarts: []node.ProcessRestarts{{MemberID: "mem_1", Since: "a",
			Process: "p"}}},
	} {
		in.AgentVersion, in.BootID = beat.AgentVersion, beat.BootID
		_, err := b.Heartbeat(agent, in)
		platformtest.Refused(t, err, fault.InvalidArgument, path)
	}
	require.Equal(t, 1, b.Count("compute_node", "id = $1 AND last_seen_at IS NOT DISTINCT FROM $2", here.ID,
		here.LastSeenAt), "nothing is written")
}

func TestRestartsAreCountedAndToldOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	here, agent := b.walled()
	member := b.members(b.housed(b.Project(b.Tenant()), "", here))[0]
	for _, step := range []struct{ restarts, told, all int }{{1, 1, 1}, {1, 1, 1}, {4, 2, 4}} {
		in := beat
		in.ProcessRestarts = []node.ProcessRestarts{{MemberID: member.ID, Since: "a", Process: "slurmd",
			Restarts: step.restarts}}
		_, err := b.Heartbeat(agent, in)
		require.NoError(t, err)
		require.Equal(t, step.told, b.Count("app_instance_event",
			"type = 'apps.instance.member_restarted' AND member_id = $1", member.ID))
		require.Equal(t, step.all, b.Ent.Member.GetX(b.t.Context(), member.ID).Restarts)
	}
}
