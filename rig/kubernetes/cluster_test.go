package kubernetes_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// TestARealKubernetesLivesAndEnds is one cluster's life: it is launched as one server and one agent, runs a pod, which
// people reach, one of the tenant's own image, and one with a GPU, grows by an agent and by two servers, drains as a
// budget allows, loses a kubelet and a server's programs, shrinks, and ends with nothing left.
func TestARealKubernetesLivesAndEnds(t *testing.T) {
	t.Parallel()
	k := begin(t, 5)
	nodes := k.rent(5)
	k.launch(nodes[0], nodes[1])
	k.runsAPod()
	k.bringsAnImage()
	k.peopleReachIt()
	k.schedulesGPUs()
	k.addsAnAgent(nodes[2])
	k.drainsAsTheBudgetAllows()
	k.hasThreeServers(nodes[3], nodes[4])
	k.losesAKubelet()
	k.losesAServer()
	k.removesAnAgentAndAServer()
	k.ends()
}

func (k *cluster) launch(server, agent string) {
	k.t.Helper()
	launched, err := gql.LaunchInstance(k.ctx, k.c, gql.LaunchInstanceInput{
		ProjectId: k.s.Demo.ProjectID, AppSlug: "rke2", Name: "kubernetes", AllocationIds: []string{server, agent},
		Components: []gql.ComponentInput{{Key: "server", Count: 1, AllocationIds: []string{server}},
			{Key: "agent", Count: 1, AllocationIds: []string{agent}}},
		DeadlineSeconds: 600, Reason: "test", IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	k.instance = launched.LaunchInstance.Instance.Id
	k.succeeds(launched.LaunchInstance.Operation)
	k.nodesReady(2)
	for _, component := range []string{"server", "agent"} {
		for _, member := range k.members(component) {
			require.Equal(k.t, gql.IsolationClassWholeNode, *member.IsolationClass)
		}
	}
	k.t.Log("\n" + k.kubectl("get", "nodes", "-o", "wide"))
	k.t.Log("\n" + k.kubectl("get", "pods", "-A", "-o", "wide"))
}

// deployment is so many pods of the test's image, on agents, with a budget that keeps at least one of them.
func deployment(name string, replicas int) []any {
	labels := map[string]string{"app": name}
	return []any{
		map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"replicas": replicas, "selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
					"terminationGracePeriodSeconds": 1,
					"affinity": map[string]any{"nodeAffinity": map[string]any{
						"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
							"nodeSelectorTerms": []any{map[string]any{
								"matchExpressions": []any{map[string]any{"key": "node-role.kubernetes.io/control-plane",
									"operator": "DoesNotExist"}}}}}}},
					"containers": []any{map[string]any{"name": "web", "image": "docker.io/rancher/rke2-standin-web:1",
						"imagePullPolicy": "Never", "ports": []any{map[string]any{"containerPort": 8080}},
						"readinessProbe": map[string]any{"periodSeconds": 1,
							"httpGet": map[string]any{"port": 8080, "path": "/"}},
					}}}}}},
		map[string]any{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
			"metadata": map[string]any{"name": name + "-stays"},
			"spec":     map[string]any{"minAvailable": 1, "selector": map[string]any{"matchLabels": labels}}},
	}
}

func (k *cluster) ready(name string, pods string) {
	k.t.Helper()
	k.eventually("deployment "+name+" has "+pods+" ready pods", func() bool {
		out, err := k.tryKubectl("", "get", "deployment", name, "-o", "jsonpath={.status.readyReplicas}")
		return err == nil && strings.TrimSpace(out) == pods
	})
}

func (k *cluster) runsAPod() {
	k.t.Helper()
	k.apply(deployment("web", 1)...)
	k.ready("web", "1")
	k.t.Log("\n" + k.kubectl("get", "pods", "-o", "wide"))
	address := k.kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].status.podIP}")
	_, server := one(k.members("server"))
	said, err := k.on(server, "perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(PeerAddr => \""+address+
		":8080\", Timeout => 5) or die $!; print $s \"GET / HTTP/1.0\\r\\n\\r\\n\"; print while <$s>'")
	require.NoError(k.t, err)
	require.Contains(k.t, said, "hello from pod web-", "a pod answers on another node")
	pod := k.kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].metadata.name}")
	require.Contains(k.t, k.kubectl("exec", pod, "--", "/usr/local/bin/web", "say", "hello"), "hello")
	require.Contains(k.t, k.kubectl("logs", pod), "request GET /")
}

func (k *cluster) addsAnAgent(allocation string) {
	k.t.Helper()
	k.adds("agent", allocation)
	k.nodesReady(3)
	require.Len(k.t, k.members("agent"), 2)
}

func (k *cluster) adds(component string, allocations ...string) {
	k.t.Helper()
	added, err := gql.AddMembers(k.ctx, k.c, gql.AddMembersInput{
		InstanceId: k.instance, ComponentKey: component, Count: len(allocations), AllocationIds: allocations,
		DeadlineSeconds: 600, Reason: "test", IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	k.succeeds(added.AddMembers.Operation)
}

// drainsAsTheBudgetAllows drains the agent with the only pod, whose budget allows no disruption: the operation waits
// and names both. A second pod on the other agent lets the first one go.
func (k *cluster) drainsAsTheBudgetAllows() {
	k.t.Helper()
	host := k.kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].spec.nodeName}")
	pod := k.kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].metadata.name}")
	member := k.members("agent")[host]
	drained, err := gql.DrainMember(k.ctx, k.c, gql.DrainMemberInput{MemberId: member.Id, DeadlineSeconds: 600,
		Reason: "test", IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	k.eventually("the drain names the pod and the budget that it waits for", func() bool {
		found, err := gql.GetOperation(k.ctx, k.c, drained.DrainMember.Operation.Id)
		require.NoError(k.t, err)
		require.Nil(k.t, found.Operation.EndedAt, "it ended although the budget allows nothing: %s",
			found.Operation.Message)
		for _, work := range found.Operation.WaitsFor {
			if work.Name == "default/"+pod && strings.Contains(work.Message, "default/web-stays") {
				k.t.Logf("it waits for %s %s: %s", work.Kind, work.Name, work.Message)
				blockers := ""
				for _, blocker := range found.Operation.Blockers {
					blockers += blocker.Code + ": " + blocker.Message + "\n"
				}
				k.t.Log("blockers: " + blockers)
				return strings.Contains(blockers, pod) && strings.Contains(blockers, "default/web-stays")
			}
		}
		return false
	})
	k.kubectl("scale", "deployment", "web", "--replicas=2")
	k.succeeds(drained.DrainMember.Operation)
	require.Equal(k.t, gql.MemberStatusDrained, k.members("agent")[host].Status)
	k.ready("web", "2")
	require.NotContains(k.t, k.kubectl("get", "pods", "-l", "app=web", "-o", "wide"), host)
	back, err := gql.UncordonMember(k.ctx, k.c, gql.MemberInput{MemberId: member.Id, DeadlineSeconds: 120,
		IdempotencyKey: client.NewKey()})
	require.NoError(k.t, err)
	k.succeeds(back.UncordonMember.Operation)
	require.Equal(k.t, gql.MemberStatusActive, k.members("agent")[host].Status)
}

// voters are the members of etcd, as etcd itself lists them.
func (k *cluster) voters() string {
	k.t.Helper()
	name, member := one(k.members("server"))
	tls := k.root(member) + "/var/lib/rancher/rke2/server/tls/etcd"
	return k.kubectl("-n", "kube-system", "exec", "etcd-"+name, "-c", "etcd", "--", "etcdctl", "--cacert="+tls+
		"/server-ca.crt", "--cert="+tls+"/server-client.crt", "--key="+tls+"/server-client.key", "member", "list")
}

func (k *cluster) hasThreeServers(allocations ...string) {
	k.t.Helper()
	k.adds("server", allocations...)
	k.nodesReady(5)
	require.Len(k.t, k.members("server"), 3)
	voters := k.voters()
	k.t.Log("\n" + voters)
	require.Equal(k.t, 3, strings.Count(voters, ", started, "), voters)
	require.Equal(k.t, 3, strings.Count(voters, ", false\n"), "all of them vote: %s", voters)
}

// losesAKubelet kills the kubelet of an agent: RKE2 starts another, and the Node and its pods stay.
func (k *cluster) losesAKubelet() {
	k.t.Helper()
	name, member := one(k.members("agent"))
	find := "for d in /proc/[0-9]*; do tr '\\0' ' ' < $d/cmdline 2> /dev/null | grep -q '^kubelet --config' && " +
		"echo ${d#/proc/}; done; true"
	before, err := k.on(member, find)
	require.NoError(k.t, err)
	require.NotEmpty(k.t, strings.TrimSpace(before))
	_, err = k.on(member, "kill -9 "+strings.TrimSpace(before))
	require.NoError(k.t, err)
	k.eventually("another kubelet runs on "+name, func() bool {
		now, err := k.on(member, find)
		return err == nil && strings.TrimSpace(now) != "" && now != before
	})
	k.nodesReady(5)
	k.ready("web", "2")
}

// losesAServer kills all of Kubernetes on a server at once: the others serve on, and the platform starts it again.
func (k *cluster) losesAServer() {
	k.t.Helper()
	name, member := one(k.members("server"))
	const etcd = "for d in /proc/[0-9]*; do tr '\\0' ' ' < $d/cmdline 2> /dev/null | grep -q '^etcd --config' && " +
		"echo ${d#/proc/}; done; true"
	before, err := k.on(member, etcd)
	require.NoError(k.t, err)
	require.NotEmpty(k.t, strings.TrimSpace(before))
	_, err = k.on(member, "for d in /proc/[0-9]*; do tr '\\0' ' ' < $d/cmdline 2> /dev/null | "+
		"grep -Eq '^(/[^ ]*rke2 server|etcd |kube-apiserver |kubelet )' && kill -9 ${d#/proc/}; done; true")
	require.NoError(k.t, err)
	k.apply(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "while-away"}})
	k.eventually("the API of the server answers, on another etcd", func() bool {
		now, err := k.on(member, etcd)
		if err != nil || strings.TrimSpace(now) == "" || now == before {
			return false
		}
		root := k.root(member)
		_, err = k.on(member, root+"/var/lib/rancher/rke2/bin/kubectl --kubeconfig "+root+
			"/etc/rancher/rke2/rke2.yaml --request-timeout=5s get --raw=/readyz")
		return err == nil
	})
	k.nodesReady(5)
	require.Equal(k.t, 3, strings.Count(k.voters(), ", started, "))
	require.Equal(k.t, gql.MemberStatusActive, k.members("server")[name].Status)
}

func (k *cluster) removes(member gql.Member) {
	k.t.Helper()
	plan, err := gql.PlanRemoveMember(k.ctx, k.c, gql.PlanMemberInput{MemberId: member.Id, DeadlineSeconds: 600})
	require.NoError(k.t, err)
	require.True(k.t, plan.PlanRemoveMember.Allowed, "%+v", plan.PlanRemoveMember.Verdicts)
	removed, err := gql.RemoveMember(k.ctx, k.c, gql.RemoveMemberInput{
		MemberId: member.Id, PlanHash: plan.PlanRemoveMember.Hash, DeadlineSeconds: 600, Reason: "test",
		IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	k.succeeds(removed.RemoveMember.Operation)
	k.clean(member)
}

func (k *cluster) removesAnAgentAndAServer() {
	k.t.Helper()
	name, agent := one(k.members("agent"))
	k.removes(agent)
	require.NotContains(k.t, k.kubectl("get", "nodes"), name)
	k.ready("web", "2")
	name, server := one(k.members("server"))
	k.removes(server)
	voters := k.voters()
	require.NotContains(k.t, voters, name)
	require.Equal(k.t, 2, strings.Count(voters, ", started, "), voters)
	require.NotContains(k.t, k.kubectl("get", "nodes"), name)
	require.NotContains(k.t, k.kubectl("-n", "kube-system", "get", "secrets"), name+".node-password")
}

// clean requires that nothing of Kubernetes is left on a node: the test's own look, beside the agent's evidence.
func (k *cluster) clean(member gql.Member) {
	k.t.Helper()
	left, err := k.on(member, "for d in /proc/[0-9]*; do tr '\\0' ' ' < $d/cmdline 2> /dev/null | "+
		"grep -E '^([^ ]*rke2 (server|agent)|etcd |kube|containerd)' | cut -c 1-120; done; "+
		"grep -E ' (/run/k3s|/var/lib/kubelet|/run/netns)' /proc/self/mounts; "+
		"ip -br link | grep -E '^(cni0|veth)'; ls -d /var/lib/kubelet /run/k3s /etc/rancher/rke2 2> /dev/null; true")
	require.NoError(k.t, err)
	require.Empty(k.t, left, "on %s", member.Node.Name)
}

func (k *cluster) ends() {
	k.t.Helper()
	members := []gql.Member{}
	for _, component := range []string{"server", "agent"} {
		for _, member := range k.members(component) {
			members = append(members, member)
		}
	}
	ended, err := gql.DecommissionInstance(k.ctx, k.c, gql.DecommissionInstanceInput{
		InstanceId: k.instance, DeadlineSeconds: 600, Reason: "test", IdempotencyKey: client.NewKey(),
	})
	require.NoError(k.t, err)
	evidence := string(k.succeeds(ended.DecommissionInstance.Operation).Evidence)
	require.Len(k.t, members, 3)
	for _, member := range members {
		require.Contains(k.t, evidence, member.Id, "the node's agent reports what is left of it")
		k.clean(member)
	}
	k.t.Log("evidence: " + evidence)
}
