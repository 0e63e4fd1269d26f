package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// TestAClusterIsChangedRestoredAndRepaired is what becomes of a cluster beside its ordinary life: etcd is saved, its
// configuration changes member by member and goes back, etcd is restored, and the node of an agent is killed for
// good. It waits for the long one: both together are more than a small machine bears.
func TestAClusterIsChangedRestoredAndRepaired(t *testing.T) {
	t.Parallel()
	k := begin(t, 3)
	p := k.launchesByTheGuide()
	k.changesAndGoesBack()
	k.upgradesAndGoesBack(p)
	k.restoresASnapshot()
	k.replacesADeadAgent()
	ended, err := gql.DecommissionInstance(k.ctx, k.c, gql.DecommissionInstanceInput{InstanceId: k.instance,
		DeadlineSeconds: 600, Reason: "test", IdempotencyKey: client.NewKey()})
	require.NoError(t, err)
	k.succeeds(ended.DecommissionInstance.Operation)
}

// note puts something into the cluster that a snapshot has or has not.
func (k *cluster) note(name string) {
	k.t.Helper()
	k.apply(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}})
}

// changesAndGoesBack changes the configuration, for which etcd is saved and every member restarts, and goes back. The
// release stays, so that nothing is restored.
func (k *cluster) changesAndGoesBack() {
	k.t.Helper()
	k.note("before-the-change")
	changed, err := gql.UpgradeInstance(k.ctx, k.c, gql.UpgradeInstanceInput{InstanceId: k.instance,
		Config: json.RawMessage(`{"snapshotsKept":7}`), DeadlineSeconds: 600, Reason: "test",
		IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	evidence := string(k.succeeds(changed.UpgradeInstance.Operation).Evidence)
	require.Contains(k.t, evidence, "pre-v1.")
	k.nodesReady(2)
	k.kubectl("get", "configmap", "before-the-change")
	back, err := gql.RollbackInstance(k.ctx, k.c, gql.RollbackInstanceInput{InstanceId: k.instance,
		DeadlineSeconds: 600, Reason: "test", IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	k.succeeds(back.RollbackInstance.Operation)
	k.nodesReady(2)
	k.kubectl("get", "configmap", "before-the-change")
}

// next is the release after that which the nodes have in the usual place.
const next = "v1.36.3+rke2r2"

// runs requires that all Nodes run a release.
func (k *cluster) runs(release string) {
	k.t.Helper()
	k.nodesReady(2)
	versions := k.kubectl("get", "nodes", "-o", "jsonpath={.items[*].status.nodeInfo.kubeletVersion}")
	require.Equal(k.t, release+" "+release, strings.TrimSpace(versions))
	k.t.Log("\n" + k.kubectl("get", "nodes"))
}

// upgradesAndGoesBack changes the release, under which a pod runs on, and goes back: not by a downgrade, but by the
// snapshot of before, whose loss the plan states.
func (k *cluster) upgradesAndGoesBack(p *person) {
	k.t.Helper()
	k.runs("v1.36.3+rke2r1")
	refused, err := gql.PlanUpgradeInstance(k.ctx, k.c, gql.PlanUpgradeInstanceInput{InstanceId: k.instance,
		Config: json.RawMessage(`{"release":"v1.38.1+rke2r1"}`)})
	require.NoError(k.t, err)
	require.False(k.t, refused.PlanUpgradeInstance.Allowed)
	k.t.Logf("a skipped minor version: %+v", refused.PlanUpgradeInstance.Verdicts)
	for _, component := range []string{"server", "agent"} {
		for _, member := range k.members(component) {
			at := k.root(member) + "/usr/local/lib/rke2"
			_, err := k.on(member, "mkdir -p "+at+" && ln -sfn /opt/rke2/releases/"+next+" "+at+"/"+next)
			require.NoError(k.t, err)
		}
	}
	k.apply(deployment("stays", 1)...)
	k.ready("stays", "1")
	const pod = "jsonpath={.items[0].metadata.uid} {.items[0].status.containerStatuses[0].restartCount}"
	before := k.kubectl("get", "pods", "-l", "app=stays", "-o", pod)
	k.note("before-the-upgrade")
	upgraded, err := gql.UpgradeInstance(k.ctx, k.c, gql.UpgradeInstanceInput{InstanceId: k.instance,
		Config: json.RawMessage(`{"release":"` + next + `"}`), DeadlineSeconds: 600, Reason: "test",
		IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	k.succeeds(upgraded.UpgradeInstance.Operation)
	k.runs(next)
	require.Equal(k.t, before, k.kubectl("get", "pods", "-l", "app=stays", "-o", pod), "pods run on")
	k.note("after-the-upgrade")

	require.Contains(k.t, p.types(k.mentions("appctl instances rollback ")), "etcd is restored from")
	plan, err := gql.PlanRollbackInstance(k.ctx, k.c, gql.PlanRollbackInstanceInput{InstanceId: k.instance,
		DeadlineSeconds: 600})
	require.NoError(k.t, err)
	k.t.Logf("the plan of the way back: %+v", plan.PlanRollbackInstance.Verdicts)
	require.Contains(k.t, fmt.Sprintf("%+v", plan.PlanRollbackInstance.Verdicts),
		"etcd is restored from pre-v1.36.3-rke2r1-")
	require.Equal(k.t, 1, *plan.PlanRollbackInstance.WorkLostTotal)
	back, err := gql.RollbackInstance(k.ctx, k.c, gql.RollbackInstanceInput{InstanceId: k.instance,
		DeadlineSeconds: 600,
		PlanHash:        plan.PlanRollbackInstance.Hash, Reason: "test", IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	k.succeeds(back.RollbackInstance.Operation)
	k.runs("v1.36.3+rke2r1")
	k.kubectl("get", "configmap", "before-the-upgrade")
	out, err := k.tryKubectl("", "get", "configmap", "after-the-upgrade")
	require.Error(k.t, err)
	require.Contains(k.t, out, "NotFound")
	k.ready("stays", "1")
}

// restoresASnapshot saves etcd by the action, and goes back to it: what came later is lost.
func (k *cluster) restoresASnapshot() {
	k.t.Helper()
	var saved struct{ Name string }
	k.acts("snapshot.save", `{"name":"noon"}`, &saved)
	k.note("after-the-snapshot")
	var restored struct{ Recover []string }
	k.acts("snapshot.restore", `{"snapshot":"`+saved.Name+`"}`, &restored)
	require.Empty(k.t, restored.Recover, "there is no other server")
	k.eventually("etcd is what it was", func() bool {
		_, was := k.tryKubectl("", "get", "configmap", "before-the-change")
		out, later := k.tryKubectl("", "get", "configmap", "after-the-snapshot")
		return was == nil && later != nil && strings.Contains(out, "NotFound")
	})
	k.nodesReady(2)
}

// replacesADeadAgent kills the node of an agent for good, under the repair policy AUTOMATIC: the platform rents
// capacity like the agent's own, has another join there, and the dead one is forgotten.
func (k *cluster) replacesADeadAgent() {
	k.t.Helper()
	_, err := gql.SetRepairPolicy(k.ctx, k.c, gql.SetRepairPolicyInput{InstanceId: k.instance,
		Mode: gql.RepairModeAutomatic, Budget: 3, BackOffSeconds: 10, Reason: "test"})
	require.NoError(k.t, err)
	dead, agent := one(k.members("agent"))
	node := k.node(agent)
	began := time.Now()
	require.NoError(k.t, node.Kill())
	k.eventually("the node is not heard any more, and an operator writes it off", func() bool {
		_, err := gql.RetireNode(k.ctx, k.s.Operator, gql.RetireNodeInput{NodeId: agent.Node.Id, Lost: true,
			Reason: "it burned"})
		return err == nil
	})
	k.s.ForgetNode(node.Name())
	k.eventually("another agent is in its place", func() bool {
		name, fresh := one(k.members("agent"))
		return len(k.members("agent")) == 1 && name != dead && fresh.Status == gql.MemberStatusActive
	})
	k.t.Logf("a dead agent was replaced in %s", time.Since(began).Round(time.Second))
	k.nodesReady(2)
	require.NotContains(k.t, k.kubectl("get", "nodes"), dead)
	require.NotContains(k.t, k.kubectl("-n", "kube-system", "get", "secrets"), dead+".node-password")
}
