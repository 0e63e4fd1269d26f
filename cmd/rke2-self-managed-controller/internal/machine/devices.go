package machine

import (
	"encoding/json"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// gpuLabel marks Nodes whose member has GPUs.
const gpuLabel = "gpuaas.app/gpus"

// nodeLabels are those that a member's Node registers with.
func nodeLabels(member adapter.Member) []string {
	if member.Node.GPUs == 0 {
		return nil
	}
	return []string{gpuLabel + "=true"}
}

// DevicePlugin gives the cluster NVIDIA's device plugin of an image, on the Nodes that have GPUs. What it finds there
// are the allocation's devices: a member has no others. It offers them to the kubelet one by one, so that a pod that
// requests one gets exactly one. It runs in containerd's runtime "nvidia", which RKE2 sets up where it finds it.
func DevicePlugin(image string) (adapter.RunCommand, error) {
	type object map[string]any
	const name, runtime, sockets = "gpuaas-device-plugin", "nvidia", "/var/lib/kubelet/device-plugins"
	labels := object{"app": name}
	container := object{"name": "plugin", "image": image,
		"env":             []object{{"name": "FAIL_ON_INIT_ERROR", "value": "false"}},
		"securityContext": object{"allowPrivilegeEscalation": false, "capabilities": object{"drop": []string{"ALL"}}},
		"volumeMounts":    []object{{"name": "sockets", "mountPath": sockets}}}
	spec := object{"runtimeClassName": runtime, "priorityClassName": "system-node-critical",
		"nodeSelector": object{gpuLabel: "true"}, "tolerations": []object{{"operator": "Exists"}},
		"containers": []object{container},
		"volumes":    []object{{"name": "sockets", "hostPath": object{"path": sockets}}}}
	raw, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": []object{
		{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": object{"name": runtime},
			"handler": runtime},
		{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": object{"name": name, "namespace": "kube-system"},
			"spec": object{"selector": object{"matchLabels": labels},
				"template": object{"metadata": object{"labels": labels}, "spec": spec}}},
	}})
	apply := Kubectl("apply", "-f", "-")
	apply.Stdin = string(raw)
	return apply, err
}
