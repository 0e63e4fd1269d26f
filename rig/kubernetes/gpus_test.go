package kubernetes_test

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// devices are the GPUs of a member's allocation, by identity.
func (k *cluster) devices(member gql.Member) (ids []string) {
	k.t.Helper()
	page, err := gql.ListAllocations(k.ctx, k.c, k.s.Demo.ProjectID,
		[]gql.AllocationStatus{gql.AllocationStatusReady}, 100, "")
	require.NoError(k.t, err)
	for _, edge := range page.Allocations.Edges {
		if edge.Node.Id != member.Allocation.Id {
			continue
		}
		for _, device := range edge.Node.Devices {
			ids = append(ids, device.Uuid)
		}
	}
	return ids
}

// schedulesGPUs runs the stand-in of NVIDIA's device plugin on an agent with the devices of its allocation, which are
// simulated: a pod that requests one gets exactly one of them, and one that requests more than there are waits.
func (k *cluster) schedulesGPUs() {
	k.t.Helper()
	name, member := one(k.members("agent"))
	have := k.devices(member)
	require.NotEmpty(k.t, have)
	k.apply(map[string]any{"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "device-plugin", "namespace": "kube-system"},
		"spec": map[string]any{"nodeName": name, "hostNetwork": true, "terminationGracePeriodSeconds": 1,
			"volumes": []any{map[string]any{"name": "sockets", "hostPath": map[string]any{
				"path": "/var/lib/kubelet/device-plugins"}}},
			"containers": []any{map[string]any{"name": "plugin",
				"image":           "docker.io/rancher/rke2-standin-device-plugin:1",
				"imagePullPolicy": "Never", "volumeMounts": []any{map[string]any{"name": "sockets",
					"mountPath": "/var/lib/kubelet/device-plugins"}},
				"env": []any{map[string]any{"name": "SIMULATED_GPUS", "value": strings.Join(have, ",")}}}}}})
	k.eventually("the Node has the allocation's GPUs", func() bool {
		out, err := k.tryKubectl("", "get", "node", name, "-o", `jsonpath={.status.allocatable.nvidia\.com/gpu}`)
		return err == nil && strings.TrimSpace(out) == "4" && len(have) == 4
	})
	k.apply(gpuPod("one-gpu", "1"), gpuPod("too-many-gpus", "5"))
	k.eventually("a pod has a GPU", func() bool {
		out, err := k.tryKubectl("", "get", "pod", "one-gpu", "-o", "jsonpath={.status.phase} {.spec.nodeName}")
		return err == nil && strings.TrimSpace(out) == "Running "+name
	})
	said := k.kubectl("exec", "one-gpu", "--", "/usr/local/bin/web", "say")
	_, given, _ := strings.Cut(strings.TrimSpace(said), "NVIDIA_VISIBLE_DEVICES=")
	require.Contains(k.t, have, given, "exactly one of the allocation's")
	k.t.Logf("the pod has the GPU %s of its allocation's %v", given, have)
	require.Contains(k.t, k.kubectl("get", "pod", "too-many-gpus", "-o", "jsonpath={.status.phase}"), "Pending")
	k.kubectl("delete", "pod", "one-gpu", "too-many-gpus", "--now")
	k.kubectl("-n", "kube-system", "delete", "pod", "device-plugin", "--now")
}

func gpuPod(name, gpus string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"terminationGracePeriodSeconds": 1, "containers": []any{map[string]any{
			"name": "web", "image": "docker.io/rancher/rke2-standin-web:1", "imagePullPolicy": "Never",
			"resources": map[string]any{"limits": map[string]string{"nvidia.com/gpu": gpus}}}}}}
}
