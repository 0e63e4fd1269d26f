package slurm

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
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
	// maxWorkers is how many workers a port block has room for, beside slurmctld and slurmdbd.
	maxWorkers = portBlock - 2
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
	// ClusterName is Slurm's ClusterName. It never changes: Slurm's saved state is bound to it.
	ClusterName string `json:"clusterName"`
	// PartitionName is the one partition.
	PartitionName string `json:"partitionName"`
	// CPUsPerNode and MemoryMiBPerNode overrule what a worker gets of its node; 0 means its share.
	CPUsPerNode      int `json:"cpusPerNode"`
	MemoryMiBPerNode int `json:"memoryMiBPerNode"`
	// MaxJobMinutes bounds a job's time; 0 means no bound.
	MaxJobMinutes int `json:"maxJobMinutes"`
	// BackfillSeconds is the pause between two rounds of the backfill scheduler; 0 means 1.
	BackfillSeconds int `json:"backfillSeconds"`
	// BatchDelaySeconds is how long a batch job waits at least before it is looked at.
	BatchDelaySeconds int `json:"batchDelaySeconds"`
	// Accounting says whether jobs are accounted for; nil means yes.
	Accounting *Accounting `json:"accounting"`
}

// Accounting is whether a cluster has slurmdbd and its database.
type Accounting struct {
	// Enabled is nil for yes.
	Enabled *bool `json:"enabled"`
}

func (c Config) withDefaults() Config {
	c.ClusterName = cmp.Or(c.ClusterName, "cluster")
	c.PartitionName = cmp.Or(c.PartitionName, "main")
	c.BackfillSeconds = cmp.Or(c.BackfillSeconds, 1)
	return c
}

// Accounted says whether the cluster accounts for its jobs.
func (c Config) Accounted() bool {
	return c.Accounting == nil || c.Accounting.Enabled == nil || *c.Accounting.Enabled
}

// MaxTime is the partition's time limit as slurm.conf has it.
func (c Config) MaxTime() string {
	if c.MaxJobMinutes > 0 {
		return strconv.Itoa(c.MaxJobMinutes)
	}
	return "INFINITE"
}

// Worker is one slurmd as slurm.conf has it.
type Worker struct {
	// Slot gives its name and its port; it is the member's index where that is free.
	Slot int
	// MemberID is whose it is.
	MemberID string
	// Host and Address are its node.
	Host, Address string
	// CPUs and MemoryMiB are what it offers.
	CPUs, MemoryMiB int
	// Features are the member's labels as Slurm features, sorted.
	Features []string
}

// Name is the worker's name in Slurm.
func (w Worker) Name() string { return workerName(w.Slot) }

// Cluster is everything slurm.conf is rendered from.
type Cluster struct {
	Config
	// Version is the manifest's version it runs.
	Version string
	// Host and Address are the controller's node.
	Host, Address string
	// Port is the first of the cluster's block: slurmctld's.
	Port int
	// Workers are in the order of their slots.
	Workers []Worker

	// busy are ports of the block that other programs have on nodes of members to come.
	busy []int
}

// Of finds a member's worker.
func (c Cluster) Of(memberID string) (Worker, bool) {
	for _, worker := range c.Workers {
		if worker.MemberID == memberID {
			return worker, true
		}
	}
	return Worker{}, false
}

// place gives a member a worker of this cluster, in its old slot if it has one.
func (c *Cluster) place(member adapter.Member, host string, workers []adapter.Member) error {
	slot, err := c.slotFor(member)
	if err != nil {
		return err
	}
	c.remove(member.ID)
	worker := share(c.Config, member, host, workers)
	worker.Slot = slot
	c.Workers = append(c.Workers, worker)
	slices.SortFunc(c.Workers, func(a, b Worker) int { return a.Slot - b.Slot })
	return nil
}

// slotFor is a member's slot: the one it has, else that of its index or, when that is not free
// because indexes have grown beyond the block or another program has its port, the lowest that is.
func (c *Cluster) slotFor(member adapter.Member) (int, error) {
	taken := make(map[int]bool, len(c.Workers))
	for _, held := range c.Workers {
		if held.MemberID == member.ID {
			return held.Slot, nil
		}
		taken[held.Slot] = true
	}
	free := func(slot int) bool { return !taken[slot] && !slices.Contains(c.busy, workerPort(c.Port, slot)) }
	if member.Index >= 0 && member.Index < maxWorkers && free(member.Index) {
		return member.Index, nil
	}
	for slot := range maxWorkers {
		if free(slot) {
			return slot, nil
		}
	}
	return 0, adapter.Fail("NO_FREE_SLOT", adapter.OwnerUser, false, "a cluster has at most %d workers", maxWorkers)
}

// remove takes a member's worker out.
func (c *Cluster) remove(memberID string) {
	c.Workers = slices.DeleteFunc(slices.Clone(c.Workers), func(w Worker) bool { return w.MemberID == memberID })
}

// workerName is a worker's name in Slurm.
func workerName(slot int) string { return "w" + strconv.Itoa(slot) }

// workerSlot reads the slot back from a name; ok is false for any other text.
func workerSlot(name string) (slot int, ok bool) {
	digits, found := strings.CutPrefix(name, "w")
	slot, err := strconv.Atoi(digits)
	return slot, found && err == nil && slot >= 0 && slot < portBlock
}

// workerPort is where a worker's slurmd listens.
func workerPort(base, slot int) int { return base + 1 + slot }

// accountingPort is where slurmdbd listens: the block's last.
func accountingPort(base int) int { return base + portBlock - 1 }

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
	neighbours = max(neighbours, 1)
	return Worker{
		MemberID: member.ID, Host: host, Address: member.Node.Address,
		CPUs:      cmp.Or(config.CPUsPerNode, max(1, member.Node.CPUs/neighbours)),
		MemoryMiB: cmp.Or(config.MemoryMiBPerNode, max(minMemory, member.Node.MemoryMiB/neighbours)),
	}
}

// plan lays out a new cluster. Hosts are the host names of the members' nodes, by member.
func plan(config Config, version string, controller adapter.Member, hosts map[string]string, port int, workers []adapter.Member) (Cluster, error) {
	cluster := Cluster{
		Config: config.withDefaults(), Version: version, Host: hosts[controller.ID], Address: controller.Node.Address, Port: port,
	}
	for _, worker := range workers {
		if err := cluster.place(worker, hosts[worker.ID], workers); err != nil {
			return Cluster{}, err
		}
	}
	return cluster, nil
}

// unfitFeature is every character that means something in an expression over Slurm's features.
var unfitFeature = regexp.MustCompile(`[^A-Za-z0-9_.=/-]`)

// features are labels as Slurm features, "key=value" or "key" for an empty value, sorted.
func features(labels map[string]string) []string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		text := key
		if value := labels[key]; value != "" {
			text += "=" + value
		}
		list = append(list, unfitFeature.ReplaceAllString(text, "_"))
	}
	return list
}
