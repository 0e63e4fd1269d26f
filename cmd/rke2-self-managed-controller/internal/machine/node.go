// Package machine is what RKE2 looks like from its members: where its files lie, the commands that act on it and how
// their output reads. It runs nothing itself.
package machine

import (
	"context"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// The components.
const (
	Server = "server"
	Agent  = "agent"
)

// Process is the name under which RKE2 runs in a member.
const Process = "rke2"

// Where RKE2 has its things.
const (
	Etc            = "/etc/rancher/rke2"
	ConfigPath     = Etc + "/config.yaml"
	TokenPath      = Etc + "/token"
	AgentTokenPath = Etc + "/agent-token"
	SupervisorPath = Etc + "/supervisor.yaml"
	KubeconfigPath = Etc + "/rke2.yaml"
	DataPath       = "/var/lib/rancher/rke2"
	CaPath         = DataPath + "/server/tls/server-ca.crt"
)

const (
	// Quick bounds a task that a healthy node does at once.
	Quick = 20 * time.Second
	// AskTime bounds the poll of one member: the platform waits for the answer about the whole instance.
	AskTime = 5 * time.Second
	// JoinTime bounds each of the things that a join waits for.
	JoinTime = 10 * time.Minute
)

// root is what every command begins with: members without a root of their own have theirs below another.
const root = `R="${GPUAAS_MEMBER_ROOT:-}"; PATH="$R/usr/local/bin:$R/opt/rke2/bin:/usr/local/bin:/opt/rke2/bin:$PATH"; `

// EtcdPath is what etcd keeps, below a server's data.
const EtcdPath = databasePath + "/etcd"

// Shell is a command that runs a script in the member, with the rest as its arguments.
func Shell(script string, args ...string) []string {
	return append([]string{"sh", "-c", root + script, "rke2"}, args...)
}

// kubectlScript runs kubectl as the cluster's administrator, on a server. Where RKE2 never ran it exits with 69.
const kubectlScript = `k="$R` + DataPath + `/bin/kubectl"; test -x "$k" || exit 69; ` +
	`exec "$k" --kubeconfig "$R` + KubeconfigPath + `" --request-timeout=10s "$@"`

// Kubectl runs kubectl on a server as the cluster's administrator.
func Kubectl(args ...string) adapter.RunCommand {
	return adapter.RunCommand{Command: Shell(kubectlScript, args...)}
}

// Etcdctl runs etcdctl in the etcd pod of a server.
func Etcdctl(on adapter.Member, args ...string) adapter.RunCommand {
	return adapter.RunCommand{Command: Shell(KubectlHead+"exec "+Plain+" "+InEtcd(on)+` "$@"`, args...)}
}

// InEtcd are the words of kubectl before those of etcdctl, for a shell: RKE2 mounts its files into the pod where they
// lie on the node.
func InEtcd(on adapter.Member) string {
	const tls = `"$R` + DataPath + `/server/tls/etcd/`
	return "-n kube-system exec etcd-" + Name(on) + " -c etcd -- etcdctl --cacert=" + tls + `server-ca.crt" --cert=` +
		tls +
		`server-client.crt" --key=` + tls + `server-client.key"`
}

// KillAll ends everything that RKE2 runs on a node, by RKE2's own program for that, where the node has it.
func KillAll() adapter.RunCommand {
	return adapter.RunCommand{Command: Shell(`command -v rke2-killall.sh > /dev/null || exit 0; RKE2_DATA_DIR="$R` +
		DataPath +
		`" exec rke2-killall.sh`)}
}

// Name is the member's Node: its id in the letters that Kubernetes allows. An id is never given twice, so that no
// node meets the password of another.
func Name(member adapter.Member) string {
	return strings.ReplaceAll(strings.ToLower(member.ID), "_", "-")
}

// Names are the Nodes of members, in one line.
func Names(members []adapter.Member) string {
	var list []string
	for _, member := range members {
		list = append(list, Name(member))
	}
	return strings.Join(list, ", ")
}

// Reached are the servers that can be reached for calls about the cluster, without those in out.
func Reached(members, out []adapter.Member) (list []adapter.Member) {
	for _, member := range Without(members, out) {
		switch adapter.MemberStatus(member.Status) {
		case adapter.MemberActive, adapter.MemberDraining, adapter.MemberDrained:
		default:
			continue // it has not come up, or does not serve
		}
		if member.ComponentKey == Server && member.Node.IsReachable() {
			list = append(list, member)
		}
	}
	return list
}

// Asked is the server that an action asks.
func Asked(call *adapter.Call) (adapter.Member, error) {
	if servers := Reached(call.Of(Server), nil); len(servers) > 0 {
		return servers[0], nil
	}
	return adapter.Member{}, adapter.Fail("NO_SERVER", adapter.OwnerNode, true, "no server of the cluster is reachable")
}

// Without returns the members that are not among those left out.
func Without(members, out []adapter.Member) (list []adapter.Member) {
	for _, member := range members {
		if !Among(out, member) {
			list = append(list, member)
		}
	}
	return list
}

// Among reports whether a member is one of these.
func Among(members []adapter.Member, member adapter.Member) bool {
	for _, one := range members {
		if one.ID == member.ID {
			return true
		}
	}
	return false
}

// Pause waits, unless ctx ends first.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

const (
	// Plain calls kubectl in a script that goes on.
	Plain = `"$k" --kubeconfig "$R` + KubeconfigPath + `" --request-timeout=10s`
	// KubectlHead finds kubectl for such a script.
	KubectlHead = `k="$R` + DataPath + `/bin/kubectl"; test -x "$k" || exit 69; `
	// NodesTemplate prints a line for each Node: its name, whether it is Ready, why, whether cordoned, its version.
	NodesTemplate = `{{range .items}}{{.metadata.name}}{{range .status.conditions}}{{if eq .type "Ready"}} {{.status}} ` +
		`{{.reason}}{{end}}{{end}} {{.spec.unschedulable}} {{.status.nodeInfo.kubeletVersion}}{{"\n"}}{{end}}`
)

// Quoted is the template between double quotes of a shell.
func Quoted(template string) string { return strings.ReplaceAll(template, `"`, `\"`) }
