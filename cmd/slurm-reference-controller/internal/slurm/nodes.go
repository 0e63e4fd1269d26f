package slurm

import (
	"context"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// node is one worker as Slurm sees it.
type node struct {
	Name      string `json:"name"`
	MemberID  string `json:"memberId"`
	State     string `json:"state"`
	CPUs      int    `json:"cpus"`
	MemoryMiB int    `json:"memoryMiB"`
	Partition string `json:"partition"`
	Reason    string `json:"reason"`
}

// nodeFormat is sinfo's format; the reason comes last because only it may hold a bar.
const nodeFormat = "%N|%T|%c|%m|%P|%E"

// parseNodes reads what "sinfo -N -h -o nodeFormat" printed. Members are by node name.
func parseNodes(text string, members map[string]string) []node {
	nodes := []node{}
	seen := make(map[string]bool)
	for _, line := range strings.Split(text, "\n") {
		part := strings.SplitN(strings.TrimSpace(line), "|", 6)
		if len(part) != 6 || seen[part[0]] {
			continue
		}
		seen[part[0]] = true
		nodes = append(nodes, node{
			Name: part[0], MemberID: members[part[0]], State: part[1], CPUs: number(part[2]),
			MemoryMiB: number(strings.TrimSuffix(part[3], "+")), Partition: strings.TrimSuffix(part[4], "*"), Reason: nodeReason(part[5]),
		})
	}
	return nodes
}

func nodeReason(text string) string {
	if text == "none" {
		return ""
	}
	return text
}

// linesScript prints the lines of slurm.conf that say which member is which node.
const linesScript = `sed -nE "s/^(NodeName=w[0-9]+ NodeAddr=[^ ]+) [^#]*/\\1 /p" ` + slurmConfPath

// membersByNode reads such lines. Lines of earlier versions name no member: there it is the one whose
// index is the node's number.
func membersByNode(lines string, workers []adapter.Member) map[string]string {
	indexes := make(map[int]string, len(workers))
	for _, worker := range workers {
		indexes[worker.Index] = worker.ID
	}
	var cluster Cluster
	for _, line := range strings.Split(lines, "\n") {
		if worker, ok := parseNodeLine(line); ok {
			cluster.Workers = append(cluster.Workers, worker)
		}
	}
	cluster.claim(indexes)
	members := make(map[string]string, len(cluster.Workers))
	for _, worker := range cluster.Workers {
		members[worker.Name()] = worker.MemberID
	}
	return members
}

// health judges a worker by its Slurm state. A trailing * means that it does not answer. One that was
// drained on the platform's word is as it should be; one that somebody else drained is not.
func health(one node) adapter.Health {
	if strings.HasSuffix(one.State, "*") {
		return adapter.Unhealthy
	}
	switch strings.TrimRight(one.State, "+~#!%$@^-") {
	case "idle", "mixed", "allocated", "completing", "reserved":
		return adapter.Healthy
	case "draining", "drained":
		if strings.HasPrefix(one.Reason, reasonMark) {
			return adapter.Healthy
		}
		return adapter.Degraded
	case "maint", "planned":
		return adapter.Degraded
	}
	return adapter.Unhealthy
}

func listNodes(ctx context.Context, call *adapter.Call) (any, error) {
	script := linesScript + `; echo "=== nodes"; exec timeout 20 sinfo -a -N -h -o "` + nodeFormat + `"`
	result, err := onController(ctx, call, "nodes", shell(script))
	if err != nil {
		return nil, err
	}
	if result.State != adapter.TaskSucceeded {
		return nil, unavailable(result)
	}
	lines, nodes, _ := strings.Cut(result.Stdout, "=== nodes\n")
	return map[string]any{"nodes": parseNodes(nodes, membersByNode(lines, call.Of(componentWorker)))}, nil
}
