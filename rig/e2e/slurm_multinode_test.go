package e2e_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// TestARealClusterOverSeveralNodesLosesNoJob is one cluster's life: it grows, drains, is upgraded and
// rolled back, loses a slurmd and a whole node, and shrinks, while one job runs all the time.
func TestARealClusterOverSeveralNodesLosesNoJob(t *testing.T) {
	needsRoot(t)
	ctx, c := bounded(t), automation(t)
	k := &clusterUnderTest{t: t, ctx: ctx, c: c}
	instance, operation := launch(t, ctx, c, "slurm", "slurm-nodes", rentNode(t, ctx, c))
	k.instance = instance
	succeeds(t, ctx, c, operation)
	k.long = k.submit("#!/bin/sh\nsleep 900\n") // at once: there is no moment in which accounts are not known yet
	k.began = k.job(k.long, "RUNNING").StartedAt

	k.grows(rentNode(t, ctx, c), rentNode(t, ctx, c))
	k.drainsWithAJob()
	k.isUpgradedAndRolledBack()
	k.getsItsControllerBack()
	k.replacesADeadDaemon()
	k.replacesADeadNode(rentNode(t, ctx, c))
	k.shrinks()

	k.isAccountedFor()

	members := memberIDs(t, ctx, c, instance)
	requireProof(t, decommission(t, ctx, c, instance), k.present(members))
	requireCleanNodes(t, ctx)
}

// isAccountedFor requires that slurmdbd has every job of the cluster's life, the long one as running.
func (k *clusterUnderTest) isAccountedFor() {
	k.t.Helper()
	var accounts struct {
		Jobs []struct{ JobID, Account, State string }
	}
	act(k.t, k.ctx, k.c, k.instance, "accounting.jobs", map[string]any{}, &accounts)
	states := make(map[string]string)
	for _, job := range accounts.Jobs {
		require.NotEmpty(k.t, job.Account)
		states[job.JobID] = job.State
	}
	require.Equal(k.t, "RUNNING", states[k.long])
	require.GreaterOrEqual(k.t, len(states), 3)
}

// present drops members that had left before.
func (k *clusterUnderTest) present(members []string) (left []string) {
	k.t.Helper()
	for _, id := range members {
		found, err := gql.GetMember(k.ctx, k.c, id)
		require.NoError(k.t, err)
		if at := found.Member.LastOperation; at == nil || at.Kind == gql.OperationKindInstanceDecommission {
			left = append(left, id)
		}
	}
	return left
}

func (k *clusterUnderTest) grows(allocations ...string) {
	k.t.Helper()
	added, err := gql.AddMembers(k.ctx, k.c, gql.AddMembersInput{
		InstanceId: k.instance, ComponentKey: "worker", Count: 2, AllocationIds: allocations, DeadlineSeconds: 120,
		IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	k.survivesTheAdapter(added.AddMembers.Operation)
	workers := k.workers()
	require.Len(k.t, workers, 3)
	nodes := make(map[string]bool)
	for name, worker := range workers {
		require.Equal(k.t, gql.MemberStatusActive, worker.Status, name)
		nodes[worker.Node.Name] = true
	}
	require.Len(k.t, nodes, 3, "each worker has a node of its own")
	wide := k.submit("#!/bin/sh\n#SBATCH --nodes=3\nsrun -N3 -n3 hostname\n")
	require.Equal(k.t, "w[0-2]", k.job(wide, "COMPLETED").NodeList)
	k.untouched()
}

// survivesTheAdapter kills the adapter in the middle of an operation, which must succeed all the same.
func (k *clusterUnderTest) survivesTheAdapter(operation gql.Operation) *gql.OperationDetail {
	k.t.Helper()
	awaitWork(k.t, k.ctx, k.c, operation.Id)
	at := kill(k.t, shared.Controllers["slurm"])
	ended := k.succeeds(operation)
	require.True(k.t, ended.EndedAt.After(at), "the operation was over before the fault; nothing is shown")
	require.Equal(k.t, 1, ended.DispatchAttempt)
	return ended
}

func (k *clusterUnderTest) drainsWithAJob() {
	k.t.Helper()
	worker := k.workers()["w1"]
	labelled, err := gql.LabelMember(k.ctx, k.c, gql.LabelMemberInput{
		MemberId: worker.Id, Labels: json.RawMessage(`{"pool":"blue"}`), IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	k.succeeds(labelled.LabelMember.Operation)
	job := k.submit("#!/bin/sh\n#SBATCH --constraint=pool=blue\nuntil test -e /run/let-go; do sleep 0.1; done\n")
	require.Equal(k.t, "w1", k.job(job, "RUNNING").NodeList)
	plan, err := gql.PlanRemoveMember(k.ctx, k.c, gql.PlanMemberInput{MemberId: worker.Id, Force: true})
	require.NoError(k.t, err)
	require.Len(k.t, plan.PlanRemoveMember.WorkLost, 1, "force would lose the job, and the plan says so")
	require.Equal(k.t, job, plan.PlanRemoveMember.WorkLost[0].WorkId)
	require.False(k.t, plan.PlanRemoveMember.Reversible)

	drained, err := gql.DrainMember(k.ctx, k.c, gql.DrainMemberInput{MemberId: worker.Id, DeadlineSeconds: 120,
		Reason: "end-to-end test", IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	k.waitsFor(drained.DrainMember.Operation.Id, job, worker.Id)
	// Only now may the job end: on a slow machine, too, the drain has been seen to wait for it.
	k.toSlurmd(worker, "nsenter -t $pid -U -m touch /run/let-go")
	require.Contains(k.t, string(k.succeeds(drained.DrainMember.Operation).Evidence), `"drained"`)
	k.job(job, "COMPLETED")
	require.Equal(k.t, gql.MemberStatusDrained, k.workers()["w1"].Status)

	k.returns(worker.Id)
	k.drainIsClearedInTwoClicks(worker.Id)
}

// waitsFor requires that an operation says what it waits for while it does.
func (k *clusterUnderTest) waitsFor(operation, job, member string) {
	k.t.Helper()
	require.Eventually(k.t, func() bool {
		found, err := gql.GetOperation(k.ctx, k.c, operation)
		require.NoError(k.t, err)
		require.Nil(k.t, found.Operation.EndedAt, "the drain ended before its job: %s", found.Operation.Message)
		for _, work := range found.Operation.WaitsFor {
			return work.Kind == "job" && work.WorkId == job && work.MemberId == member
		}
		return false
	}, 30*time.Second, 100*time.Millisecond, "the drain does not say what it waits for")
}

func (k *clusterUnderTest) isUpgradedAndRolledBack() {
	k.t.Helper()
	found, err := gql.GetInstance(k.ctx, k.c, k.instance)
	require.NoError(k.t, err)
	before := found.Instance
	upgraded, err := gql.UpgradeInstance(k.ctx, k.c, gql.UpgradeInstanceInput{
		InstanceId: k.instance, Config: json.RawMessage(`{"maxJobMinutes":77}`), DeadlineSeconds: 120,
		Reason: "end-to-end test", IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	require.Contains(k.t, string(k.survivesTheAdapter(upgraded.UpgradeInstance.Operation).Evidence), "01:17:00")
	k.untouched()
	back, err := gql.RollbackInstance(k.ctx, k.c, gql.RollbackInstanceInput{
		InstanceId: k.instance, DeadlineSeconds: 120, Reason: "end-to-end test", IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	require.Contains(k.t, string(k.succeeds(back.RollbackInstance.Operation).Evidence), "UNLIMITED")
	k.untouched()
	found, err = gql.GetInstance(k.ctx, k.c, k.instance)
	require.NoError(k.t, err)
	require.Equal(k.t, before.AppVersion, found.Instance.AppVersion)
	require.JSONEq(k.t, string(before.Config), string(found.Instance.Config))
}

// getsItsControllerBack kills the init of the controller's member: it fails within 30 s, the instance runs on as
// UNHEALTHY and says what brings it back, and a recovery has queue and accounts as they were.
func (k *clusterUnderTest) getsItsControllerBack() {
	k.t.Helper()
	controller := k.controller()
	killInit(k.t, k.ctx, k.node(controller), controller.Id)
	killed := time.Now()
	require.Eventually(k.t, func() bool { return k.controller().Status == gql.MemberStatusFailed }, 30*time.Second,
		100*time.Millisecond, "the loss of the init is not seen")
	failed := k.controller()
	require.Equal(k.t, gql.MemberFailureInitGone, *failed.Failure)
	require.Less(k.t, failed.FailedAt.Sub(killed), 30*time.Second)
	found, err := gql.GetInstance(k.ctx, k.c, k.instance)
	require.NoError(k.t, err)
	require.Equal(k.t, gql.InstanceStatusRunning, found.Instance.Status)
	require.Equal(k.t, gql.HealthUnhealthy, found.Instance.Health)
	recovered, err := gql.RecoverMember(k.ctx, k.c, gql.MemberInput{MemberId: controller.Id, DeadlineSeconds: 120,
		IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	k.succeeds(recovered.RecoverMember.Operation)
	require.Equal(k.t, gql.MemberStatusActive, k.controller().Status)
	k.untouched()
	k.isAccountedFor()
}

// killSlurmd ends every slurmd on a node for good: what its members see as the program is deleted.
const killSlurmd = `for dir in /proc/[0-9]*; do
    test "$(cat $dir/comm 2> /dev/null)" = slurmd || continue
    nsenter -t "${dir#/proc/}" -m rm -f /usr/sbin/slurmd
    kill -9 "${dir#/proc/}"
done`

func (k *clusterUnderTest) replacesADeadDaemon() {
	k.t.Helper()
	worker := k.workers()["w2"]
	_, err := k.node(worker).Exec(k.ctx, "/bin/sh", "-c", killSlurmd)
	require.NoError(k.t, err)
	replaced, err := gql.ReplaceMember(k.ctx, k.c, gql.ReplaceMemberInput{
		MemberId: worker.Id, DeadlineSeconds: 180, Reason: "its slurmd was killed", IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	k.succeeds(replaced.ReplaceMember.Operation)
	workers := k.workers()
	require.Len(k.t, workers, 3)
	require.Equal(k.t, gql.MemberStatusActive, workers["w3"].Status)
	require.Equal(k.t, worker.Node.Name, workers["w3"].Node.Name, "no other allocation was named")
	k.untouched()
}

func (k *clusterUnderTest) replacesADeadNode(spare string) {
	k.t.Helper()
	worker := k.workers()["w1"]
	node := k.node(worker)
	require.NoError(k.t, node.Kill())
	require.Eventually(k.t, func() bool { return k.isOffline(worker.Node.Id) }, 90*time.Second, 200*time.Millisecond,
		"the platform does not notice that a node is gone")
	replaced, err := gql.ReplaceMember(k.ctx, k.c, gql.ReplaceMemberInput{
		MemberId: worker.Id, AllocationId: spare, Force: true, DeadlineSeconds: 120, Reason: "its node is gone",
		IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	ended := k.succeeds(replaced.ReplaceMember.Operation)
	require.NotNil(k.t, ended.Outcome)
	require.Equal(k.t, gql.OutcomeUnverified, *ended.Outcome, "nobody has seen that the node is clean")
	require.Equal(k.t, gql.MemberStatusActive, k.workers()["w4"].Status)
	k.untouched()
	require.NotEmpty(k.t, k.orphans(), "what may be left on the node is listed")

	require.NoError(k.t, shared.ReviveNode(k.ctx, node.Name()))
	require.Eventually(k.t, func() bool { return len(k.orphans()) == 0 }, 90*time.Second, 300*time.Millisecond,
		"the node that came back is not cleaned")
}

func (k *clusterUnderTest) isOffline(node string) bool {
	k.t.Helper()
	page, err := gql.ListNodes(k.ctx, shared.Operator, 100, "")
	require.NoError(k.t, err)
	for _, edge := range page.Nodes.Edges {
		if edge.Node.Id == node {
			return edge.Node.Status == gql.NodeStatusOffline
		}
	}
	return false
}

func (k *clusterUnderTest) orphans() (open []gql.Orphan) {
	k.t.Helper()
	found, err := gql.GetInstance(k.ctx, k.c, k.instance)
	require.NoError(k.t, err)
	for _, orphan := range found.Instance.Orphans {
		if orphan.ResolvedAt == nil {
			open = append(open, orphan)
		}
	}
	return open
}

func (k *clusterUnderTest) shrinks() {
	k.t.Helper()
	for name, worker := range k.workers() {
		if name == "w0" {
			continue
		}
		plan, err := gql.PlanRemoveMember(k.ctx, k.c, gql.PlanMemberInput{MemberId: worker.Id, DeadlineSeconds: 120})
		require.NoError(k.t, err)
		require.True(k.t, plan.PlanRemoveMember.Allowed, "%s: %+v", name, plan.PlanRemoveMember.Verdicts)
		require.Empty(k.t, plan.PlanRemoveMember.WorkLost)
		removed, err := gql.RemoveMember(k.ctx, k.c, gql.RemoveMemberInput{
			MemberId: worker.Id, PlanHash: plan.PlanRemoveMember.Hash, DeadlineSeconds: 120, Reason: "end-to-end test",
			IdempotencyKey: client.NewKey(),
		})
		require.NoError(k.t, err)
		k.succeeds(removed.RemoveMember.Operation)
	}
	require.Len(k.t, k.workers(), 1)
	require.Equal(k.t, 1, clusterNodes(k.t, k.ctx, k.c, k.instance))
	k.untouched()
}
