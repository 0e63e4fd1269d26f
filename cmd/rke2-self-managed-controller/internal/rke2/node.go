package rke2

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const process = "rke2"

// Where RKE2 has its things.
const (
	etc            = "/etc/rancher/rke2"
	configPath     = etc + "/config.yaml"
	tokenPath      = etc + "/token"
	agentTokenPath = etc + "/agent-token"
	supervisorPath = etc + "/supervisor.yaml"
	kubeconfigPath = etc + "/rke2.yaml"
	dataPath       = "/var/lib/rancher/rke2"
	caPath         = dataPath + "/server/tls/server-ca.crt"
)

const (
	// quick bounds a task that a healthy node does at once.
	quick = 20 * time.Second
	// askTime is how long one member may take to be asked while the platform waits for the whole.
	askTime = 5 * time.Second
	// joinTime bounds each of the things that a join waits for.
	joinTime = 10 * time.Minute
)

// root is what every command begins with: members without a root of their own have theirs below another.
const root = `R="${GPUAAS_MEMBER_ROOT:-}"; PATH="$R/usr/local/bin:$R/opt/rke2/bin:/usr/local/bin:/opt/rke2/bin:$PATH"; `

func shell(script string, args ...string) []string {
	return append([]string{"sh", "-c", root + script, "rke2"}, args...)
}

// kubectlScript runs kubectl as the cluster's administrator, on a server. Where RKE2 never ran it exits with 69.
const kubectlScript = `k="$R` + dataPath + `/bin/kubectl"; test -x "$k" || exit 69; ` +
	`exec "$k" --kubeconfig "$R` + kubeconfigPath + `" --request-timeout=10s "$@"`

func kubectl(args ...string) adapter.RunCommand {
	return adapter.RunCommand{Command: shell(kubectlScript, args...)}
}

// etcdctl runs etcdctl in the etcd pod of a server.
func etcdctl(on adapter.Member, args ...string) adapter.RunCommand {
	return kubectl(append(inEtcd(on), args...)...)
}

// inEtcd are the words of kubectl before those of etcdctl.
func inEtcd(on adapter.Member) []string {
	const tls = dataPath + "/server/tls/etcd"
	return []string{"-n", "kube-system", "exec", "etcd-" + nodeName(on), "-c", "etcd", "--", "etcdctl",
		"--cacert=" + tls + "/server-ca.crt", "--cert=" + tls + "/server-client.crt", "--key=" + tls + "/server-client.key"}
}

// nodeName is the member's Node: its id in the letters that Kubernetes allows. An id is never given twice, so that no
// node meets the password of another.
func nodeName(member adapter.Member) string {
	return strings.ReplaceAll(strings.ToLower(member.ID), "_", "-")
}

func nodeNames(members []adapter.Member) string {
	var list []string
	for _, member := range members {
		list = append(list, nodeName(member))
	}
	return strings.Join(list, ", ")
}

// Config is an instance's configuration.
type Config struct {
	// CNI is the network plugin.
	CNI string `json:"cni"`
	// ClusterCIDR and ServiceCIDR are the blocks of pods and services.
	ClusterCIDR string `json:"clusterCidr"`
	ServiceCIDR string `json:"serviceCidr"`
}

// configFile is a member's config.yaml. Values are in JSON, which YAML includes. What is secret lies in files of its
// own.
func configFile(config Config, member adapter.Member, join string) adapter.WriteFile {
	keys := [][2]string{{"node-name", nodeName(member)}, {"node-ip", member.Host()}}
	if member.ComponentKey == server {
		keys = append(keys, [2]string{"bind-address", member.Host()}, [2]string{"advertise-address", member.Host()},
			[2]string{"tls-san", member.Host()}, [2]string{"write-kubeconfig-mode", "0600"})
		for _, key := range [][2]string{
			{"cni", config.CNI}, {"cluster-cidr", config.ClusterCIDR}, {"service-cidr", config.ServiceCIDR},
		} {
			if key[1] != "" {
				keys = append(keys, key)
			}
		}
	}
	if join != "" {
		keys = append(keys, [2]string{"server", "https://" + join + ":9345"})
	}
	var text strings.Builder
	for _, key := range keys {
		value, _ := json.Marshal(key[1]) // text always encodes
		fmt.Fprintf(&text, "%s: %s\n", key[0], value)
	}
	return adapter.WriteFile{Path: configPath, Mode: "0600", Content: text.String(), MakeDirs: true}
}

// start starts RKE2. It stays in the foreground, so that the node's agent supervises it.
func start(member adapter.Member) adapter.StartProcess {
	script := `exec rke2 ` + member.ComponentKey + ` --config "$R` + configPath + `" --data-dir "$R` + dataPath +
		`" --token-file "$R` + tokenPath + `"`
	if member.ComponentKey == server {
		script += ` --agent-token-file "$R` + agentTokenPath + `" --write-kubeconfig "$R` + kubeconfigPath + `"`
	}
	return adapter.StartProcess{
		Name: process, Command: shell(script), StopTimeoutSeconds: 30,
		Restart: adapter.Restart{Policy: "always", MaxRestarts: 1000, BackoffSeconds: 5},
	}
}

// reached are the servers that can be asked about the cluster, without those left out.
func reached(members, out []adapter.Member) (list []adapter.Member) {
	for _, member := range without(members, out) {
		switch adapter.MemberStatus(member.Status) {
		case adapter.MemberActive, adapter.MemberDraining, adapter.MemberDrained:
		default:
			continue // it has not come up, or does not serve
		}
		if member.ComponentKey == server && member.Node.IsReachable() {
			list = append(list, member)
		}
	}
	return list
}

// without returns the members that are not among those left out.
func without(members, out []adapter.Member) (list []adapter.Member) {
	for _, member := range members {
		if !among(out, member) {
			list = append(list, member)
		}
	}
	return list
}

func among(members []adapter.Member, member adapter.Member) bool {
	for _, one := range members {
		if one.ID == member.ID {
			return true
		}
	}
	return false
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
