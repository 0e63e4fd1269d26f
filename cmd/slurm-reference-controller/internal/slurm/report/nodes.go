package report

import (
	"strings"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// ReasonMark begins every reason that this adapter sets on a node. Another reason was set by
// someone else.
const ReasonMark = "platform "

// Node is one worker as Slurm reports it.
type Node struct {
	Name      string `json:"name"`
	MemberID  string `json:"memberId"`
	State     string `json:"state"`
	CPUs      int    `json:"cpus"`
	MemoryMiB int    `json:"memoryMiB"`
	Partition string `json:"partition"`
	Reason    string `json:"reason"`
	// GPUs is how many it offers; nil where that was not read.
	GPUs *int `json:"gpus,omitempty"`
}

// NodeFormat is the format for sinfo. The reason comes last because only a reason may hold a bar.
const NodeFormat = "%N|%T|%c|%m|%P|%E"

// ParseNodes reads the output of "sinfo -N -h -o" with [NodeFormat]. Members are by node name.
func ParseNodes(text string, members map[string]string) []Node {
	nodes := []Node{}
	seen := make(map[string]bool)
	for _, line := range strings.Split(text, "\n") {
		part := strings.SplitN(strings.TrimSpace(line), "|", 6)
		if len(part) != 6 || seen[part[0]] {
			continue
		}
		seen[part[0]] = true
		nodes = append(nodes, Node{
			Name: part[0], MemberID: members[part[0]], State: part[1], CPUs: layout.Number(part[2]),
			MemoryMiB: layout.Number(
				strings.TrimSuffix(part[3], "+"),
			), Partition: strings.TrimSuffix(part[4], "*"), Reason: NodeReason(part[5]),
		})
	}
	return nodes
}

// GPUFormat is the format for sinfo that [CountGPUs] reads.
const GPUFormat = "%N|%G"

// CountGPUs adds to nodes what "sinfo -N -h -o" prints with [GPUFormat].
func CountGPUs(nodes []Node, text string) {
	counts := make(map[string]int)
	for _, line := range strings.Split(text, "\n") {
		name, gres, _ := strings.Cut(strings.TrimSpace(line), "|")
		counts[name] = layout.GPUCount(gres)
	}
	for i := range nodes {
		count := counts[nodes[i].Name]
		nodes[i].GPUs = &count
	}
}

// NodeReason returns the reason that sinfo printed; empty when it printed "none".
func NodeReason(text string) string {
	if text == "none" {
		return ""
	}
	return text
}

// RecordScript prints the lines of slurm.conf that state which member is which node.
const RecordScript = `sed -nE "s/^(NodeName=w[0-9]+ NodeAddr=[^ ]+) [^#]*/\\1 /p" ` + layout.SlurmConfPath

// MembersByNode reads the output of [RecordScript]. Lines of earlier versions name no member: then
// it is the member whose index is the node's number.
func MembersByNode(lines string, workers []adapter.Member) map[string]string {
	indexes := make(map[int]string, len(workers))
	for _, worker := range workers {
		indexes[worker.Index] = worker.ID
	}
	var cluster layout.Cluster
	for _, line := range strings.Split(lines, "\n") {
		if worker, ok := layout.ParseWorker(line); ok {
			cluster.Workers = append(cluster.Workers, worker)
		}
	}
	cluster.Claim(indexes)
	members := make(map[string]string, len(cluster.Workers))
	for _, worker := range cluster.Workers {
		members[worker.Name()] = worker.MemberID
	}
	return members
}

// Health returns a worker's health by its Slurm state. A trailing * means that the node does not
// answer. A node that the platform drained is as it should be; a node that someone else drained is
// not.
func (one Node) Health() adapter.Health {
	if strings.HasSuffix(one.State, "*") {
		return adapter.Unhealthy
	}
	switch strings.TrimRight(one.State, "+~#!%$@^-") {
	case "idle", "mixed", "allocated", "completing", "reserved":
		return adapter.Healthy
	case "draining", "drained":
		if strings.HasPrefix(one.Reason, ReasonMark) {
			return adapter.Healthy
		}
		return adapter.Degraded
	case "maint", "planned":
		return adapter.Degraded
	}
	return adapter.Unhealthy
}

// silenceReason is the reason that slurmctld itself sets on a node whose slurmd was silent for SlurmdTimeout.
const silenceReason = "Not responding"

// GivenUp reports whether slurmctld has called the node down for its silence. A node that a person called down has that
// person's reason, and is theirs.
func (one Node) GivenUp() bool {
	return strings.HasPrefix(one.State, "down") && one.Reason == silenceReason
}
