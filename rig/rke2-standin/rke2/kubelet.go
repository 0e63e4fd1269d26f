package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// kubeletDir is the kubelet's, as with RKE2.
const kubeletDir = "/var/lib/kubelet"

// kubelet starts the kubelet. A node of the lab may have no cgroups of version 2 and no iptables, so that the kubelet
// does without them, and it keeps no part of the node for anybody.
func (s settings) kubelet(ctx context.Context) error {
	raw, err := kubeconfig("https://127.0.0.1:"+proxyPort, s.path("agent/server-ca.crt"),
		s.path("agent/client-kubelet"))
	if err != nil {
		return err
	}
	if err := write(s.path("agent/kubelet.kubeconfig"), raw, 0o600); err != nil {
		return err
	}
	if err := os.MkdirAll(s.path("agent/pod-manifests"), 0o700); err != nil {
		return err
	}
	config, err := yaml.Marshal(map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"authentication": map[string]any{"anonymous": map[string]any{"enabled": false},
			"webhook": map[string]any{"enabled": true},
			"x509":    map[string]any{"clientCAFile": s.path("agent/client-ca.crt")}},
		"authorization": map[string]any{"mode": "Webhook"},
		"tlsCertFile":   s.path("agent/serving-kubelet.crt"), "tlsPrivateKeyFile": s.path("agent/serving-kubelet.key"),
		"staticPodPath": s.path("agent/pod-manifests"), "containerRuntimeEndpoint": "unix://" + runDir +
			"/containerd.sock",
		"clusterDomain": "cluster.local", "resolvConf": s.value("resolv-conf", "/etc/resolv.conf"),
		"failCgroupV1": false, "cgroupDriver": "cgroupfs", "cgroupsPerQOS": false, "enforceNodeAllocatable": []string{},
		"makeIPTablesUtilChains": false, "localStorageCapacityIsolation": false, "failSwapOn": false, "oomScoreAdj": 0,
		"evictionHard": map[string]string{"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
			"imagefs.available": "0%"},
		"nodeStatusUpdateFrequency": "4s", "nodeStatusReportFrequency": "1m", "syncFrequency": "5s",
		"crashLoopBackOff":   map[string]any{"maxContainerRestartPeriod": "3s"},
		"fileCheckFrequency": "5s", "shutdownGracePeriod": "0s",
	})
	if err != nil {
		return err
	}
	if err := write(s.path("agent/etc/kubelet.yaml"), config, 0o600); err != nil {
		return err
	}
	args := []string{"--config=" + s.path("agent/etc/kubelet.yaml"),
		"--kubeconfig=" + s.path("agent/kubelet.kubeconfig"),
		"--root-dir=" + kubeletDir, "--hostname-override=" + s.nodeName(), "--node-ip=" + s.nodeIP(), "--v=0"}
	if labels := s.values["node-label"]; len(labels) > 0 {
		args = append(args, "--node-labels="+strings.Join(labels, ","))
	}
	if taints := s.values["node-taint"]; len(taints) > 0 {
		args = append(args, "--register-with-taints="+strings.Join(taints, ","))
	}
	for _, arg := range s.values["kubelet-arg"] {
		args = append(args, "--"+arg)
	}
	return keep(ctx, "kubelet", s.path("agent/logs/kubelet.log"), []string{releaseVar + "=" + version},
		filepath.Clean(program("kube")), args...)
}
