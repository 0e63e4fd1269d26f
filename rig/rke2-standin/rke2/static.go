package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"sigs.k8s.io/yaml"
)

// graceful are the controller manager's times: a node that is silent for so long is not ready.
var graceful = []string{"--node-monitor-grace-period=20s", "--node-monitor-period=2s"}

// staticPods writes the pods that the kubelet starts by itself: etcd first, as the others wait for it by trying again.
func (s settings) staticPods() error {
	tls, cidr := s.path("server/tls"), s.critical()
	rootCA := tls + "/server-ca.crt"
	pods := []struct {
		name, command string
		args          []string
		mounts        []string
	}{
		{"etcd", "etcd", []string{"--config-file=" + s.etcdDir() + "/config"}, []string{s.etcdDir()}},
		{"kube-apiserver", "kube-apiserver", append([]string{
			"--advertise-address=" + s.value("advertise-address", s.nodeIP()), "--bind-address=" + s.listens(),
			"--secure-port=" + apiPort, "--authorization-mode=Node,RBAC", "--allow-privileged=true",
			"--client-ca-file=" + tls + "/client-ca.crt", "--enable-admission-plugins=NodeRestriction",
			"--etcd-servers=https://127.0.0.1:2379", "--etcd-cafile=" + tls + "/etcd/server-ca.crt",
			"--etcd-certfile=" + tls + "/etcd/client.crt", "--etcd-keyfile=" + tls + "/etcd/client.key",
			"--kubelet-certificate-authority=" + rootCA, "--kubelet-client-certificate=" + tls +
				"/client-kube-apiserver.crt",
			"--kubelet-client-key=" + tls + "/client-kube-apiserver.key",
			"--kubelet-preferred-address-types=InternalIP",
			"--tls-cert-file=" + tls + "/serving-kube-apiserver.crt",
			"--tls-private-key-file=" + tls + "/serving-kube-apiserver.key",
			"--service-account-issuer=https://kubernetes.default.svc." + cidr["cluster-domain"],
			"--service-account-key-file=" + tls + "/service.key", "--service-account-signing-key-file=" +
				tls + "/service.key",
			"--service-cluster-ip-range=" + cidr["service-cidr"], "--anonymous-auth=false", "--profiling=false",
			"--requestheader-client-ca-file=" + tls + "/request-header-ca.crt",
			"--requestheader-allowed-names=system:auth-proxy", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--requestheader-group-headers=X-Remote-Group", "--requestheader-username-headers=X-Remote-User",
			"--proxy-client-cert-file=" + tls + "/client-auth-proxy.crt",
			"--proxy-client-key-file=" + tls + "/client-auth-proxy.key", "--v=0",
		}, dashed(s.values["kube-apiserver-arg"])...), nil},
		{"kube-controller-manager", "kube-controller-manager", append(append([]string{
			"--kubeconfig=" + s.path("server/cred/controller.kubeconfig"), "--allocate-node-cidrs=true",
			"--authentication-kubeconfig=" + s.path("server/cred/controller.kubeconfig"),
			"--authorization-kubeconfig=" + s.path("server/cred/controller.kubeconfig"), "--bind-address=127.0.0.1",
			"--cluster-cidr=" + cidr["cluster-cidr"], "--service-cluster-ip-range=" + cidr["service-cidr"],
			"--cluster-signing-kube-apiserver-client-cert-file=" + tls + "/client-ca.crt",
			"--cluster-signing-kube-apiserver-client-key-file=" + tls + "/client-ca.key",
			"--cluster-signing-kubelet-client-cert-file=" + tls + "/client-ca.crt",
			"--cluster-signing-kubelet-client-key-file=" + tls + "/client-ca.key",
			"--cluster-signing-kubelet-serving-cert-file=" + tls + "/server-ca.crt",
			"--cluster-signing-kubelet-serving-key-file=" + tls + "/server-ca.key",
			"--cluster-signing-legacy-unknown-cert-file=" + tls + "/server-ca.crt",
			"--cluster-signing-legacy-unknown-key-file=" + tls + "/server-ca.key",
			"--root-ca-file=" + rootCA, "--service-account-private-key-file=" + tls + "/service.key",
			"--tls-cert-file=" + tls + "/serving-kube-controller-manager.crt",
			"--tls-private-key-file=" + tls + "/serving-kube-controller-manager.key",
			"--use-service-account-credentials=true", "--profiling=false", "--v=0",
		}, graceful...), dashed(s.values["kube-controller-manager-arg"])...), nil},
		{"kube-scheduler", "kube-scheduler", append([]string{
			"--kubeconfig=" + s.path("server/cred/scheduler.kubeconfig"), "--bind-address=127.0.0.1",
			"--authentication-kubeconfig=" + s.path("server/cred/scheduler.kubeconfig"),
			"--authorization-kubeconfig=" + s.path("server/cred/scheduler.kubeconfig"), "--profiling=false", "--v=0",
		}, dashed(s.values["kube-scheduler-arg"])...), nil},
	}
	for _, pod := range pods {
		raw, err := yaml.Marshal(s.staticPod(pod.name, pod.command, pod.args, pod.mounts))
		if err != nil {
			return err
		}
		path := s.path("agent/pod-manifests", pod.name+".yaml")
		if kept, err := os.ReadFile(path); err == nil && slices.Equal(kept, raw) {
			continue
		}
		if err := write(path, raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// endStatic deletes the static pods' files and ends what runs of them.
func (s settings) endStatic() error {
	paths, err := filepath.Glob(s.path("agent/pod-manifests/*.yaml"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, dir := range processes {
		line, _ := os.ReadFile(dir + "/cmdline") // one that has ended has none
		name, _, _ := strings.Cut(string(line), "\x00")
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && slices.Contains([]string{"etcd", "kube-apiserver", "kube-controller-manager",
			"kube-scheduler"}, name) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return nil
}

func dashed(args []string) (list []string) {
	for _, arg := range args {
		list = append(list, "--"+strings.TrimLeft(arg, "-"))
	}
	return list
}

// staticPod is a pod in the node's network whose program, and what it reads, are mounted where they lie on the node.
func (s settings) staticPod(name, command string, args, more []string) map[string]any {
	var volumes, mounts []any
	mount := func(id, from, to, kind string, readOnly bool) {
		volumes = append(volumes, map[string]any{"name": id, "hostPath": map[string]any{"path": from, "type": kind}})
		mounts = append(mounts, map[string]any{"name": id, "mountPath": to, "readOnly": readOnly})
	}
	for _, as := range []string{command, "etcdctl"} {
		if as == command || command == "etcd" {
			mount(as, program("kube"), filepath.Join("/usr/local/bin", as), "File", true)
		}
	}
	mount("tls", s.path("server/tls"), s.path("server/tls"), "Directory", true)
	if command != "etcd" {
		mount("cred", s.path("server/cred"), s.path("server/cred"), "Directory", true)
	}
	for _, path := range more {
		mount("data", path, path, "DirectoryOrCreate", false)
	}
	notes := map[string]string{}
	if command == "etcd" { // another first cluster is another pod, as with RKE2
		config, _ := os.ReadFile(s.etcdDir() + "/config") // one that is missing is said by etcd
		notes["etcd.k3s.io/initial"] = digest(string(config))
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "namespace": "kube-system", "annotations": notes,
			"labels": map[string]string{"component": name, "tier": "control-plane"}},
		"spec": map[string]any{
			"hostNetwork": true, "priorityClassName": "system-cluster-critical", "volumes": volumes,
			"containers": []any{map[string]any{
				"name": name, "image": coreImage, "imagePullPolicy": "Never",
				"command":      append([]string{command}, args...),
				"env":          []any{map[string]any{"name": releaseVar, "value": version}},
				"volumeMounts": mounts, "securityContext": map[string]any{"privileged": false},
			}},
		},
	}
}
