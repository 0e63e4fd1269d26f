package slurm

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// The component keys of the app.
const (
	componentController = "controller"
	componentWorker     = "worker"
)

const (
	// maxIndex is the highest index a worker may have: a port block has room for 127 workers.
	maxIndex = 126
	// portFirst, portBlock and portBlocks are where the blocks lie: below the ports that Linux
	// gives to outgoing connections.
	portFirst  = 21000
	portBlock  = 128
	portBlocks = 88
	// minMemory is what a worker is given when its node says nothing, in MiB.
	minMemory = 256
)

// Config is an instance's configuration, valid against the manifest's schema.
type Config struct {
	// ClusterName is Slurm's ClusterName.
	ClusterName string `json:"clusterName"`
	// PartitionName is the one partition.
	PartitionName string `json:"partitionName"`
	// CPUsPerNode and MemoryMiBPerNode overrule what a worker gets of its node; 0 means its share.
	CPUsPerNode      int `json:"cpusPerNode"`
	MemoryMiBPerNode int `json:"memoryMiBPerNode"`
	// MaxJobMinutes bounds a job's time; 0 means no bound.
	MaxJobMinutes int `json:"maxJobMinutes"`
}

func (c Config) withDefaults() Config {
	c.ClusterName = cmp.Or(c.ClusterName, "cluster")
	c.PartitionName = cmp.Or(c.PartitionName, "main")
	return c
}

// Worker is one slurmd as slurm.conf has it.
type Worker struct {
	// Index is the member's index; it gives name and port.
	Index int
	// Host and Address are its node.
	Host, Address string
	// CPUs and MemoryMiB are what it offers.
	CPUs, MemoryMiB int
}

// Cluster is everything slurm.conf is rendered from.
type Cluster struct {
	Config
	// Host and Address are the controller's node.
	Host, Address string
	// Port is the first of the cluster's block: slurmctld's.
	Port int
	// Workers are the workers known when the file is written, in the order of their indexes.
	Workers []Worker
}

// workerName is a worker's name in Slurm.
func workerName(index int) string { return "w" + strconv.Itoa(index) }

// workerIndex reads the index back from a name; ok is false for any other text.
func workerIndex(name string) (index int, ok bool) {
	digits, found := strings.CutPrefix(name, "w")
	index, err := strconv.Atoi(digits)
	return index, found && err == nil && index >= 0 && index <= maxIndex
}

// workerPort is where a worker's slurmd listens.
func workerPort(base, index int) int { return base + 1 + index }

// portCandidates lists the bases of the blocks in the order in which a cluster tries them: its own
// order, so that two clusters created at once rarely want the same.
func portCandidates(instanceID string) []int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(instanceID))
	start := int(hash.Sum32() % portBlocks)
	bases := make([]int, portBlocks)
	for i := range bases {
		bases[i] = portFirst + (start+i)%portBlocks*portBlock
	}
	return bases
}

// freeBlock is the first block in which nothing listens.
func freeBlock(instanceID string, listening []int) (int, error) {
	for _, base := range portCandidates(instanceID) {
		if !slices.ContainsFunc(listening, func(port int) bool { return port >= base && port < base+portBlock }) {
			return base, nil
		}
	}
	return 0, errors.New("no block of ports is free")
}

// parsePorts reads local ports in hexadecimal, one a line, as /proc/net/tcp has them.
func parsePorts(text string) ([]int, error) {
	var ports []int
	for _, word := range strings.Fields(text) {
		port, err := strconv.ParseUint(word, 16, 16)
		if err != nil {
			return nil, fmt.Errorf("listening port %q is not hexadecimal", word)
		}
		ports = append(ports, int(port))
	}
	return ports, nil
}

// share is what a worker offers: its config's word, or its part of the node it shares with others.
func share(config Config, member adapter.Member, host string, workers []adapter.Member) Worker {
	neighbours := 0
	for _, other := range workers {
		if other.Node.ID == member.Node.ID {
			neighbours++
		}
	}
	return Worker{
		Index: member.Index, Host: host, Address: member.Node.Address,
		CPUs:      cmp.Or(config.CPUsPerNode, max(1, member.Node.CPUs/neighbours)),
		MemoryMiB: cmp.Or(config.MemoryMiBPerNode, max(minMemory, member.Node.MemoryMiB/neighbours)),
	}
}

// plan lays out a cluster. Hosts are the host names of the members' nodes, by member.
func plan(config Config, controller adapter.Member, hosts map[string]string, port int, workers []adapter.Member) Cluster {
	cluster := Cluster{Config: config.withDefaults(), Host: hosts[controller.ID], Address: controller.Node.Address, Port: port}
	for _, worker := range workers {
		cluster.Workers = append(cluster.Workers, share(config, worker, hosts[worker.ID], workers))
	}
	slices.SortFunc(cluster.Workers, func(a, b Worker) int { return a.Index - b.Index })
	return cluster
}
