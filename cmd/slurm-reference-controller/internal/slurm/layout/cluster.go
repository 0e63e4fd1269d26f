// Package layout lays a Slurm cluster out: its configuration, its workers with their slots and ports,
// and the slurm.conf that all of it is written to and read back from.
package layout

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// ValidHost reports whether an address or host name may become part of slurm.conf.
func ValidHost(text string) bool { return hostPattern.MatchString(text) }

// hostPattern has no blank, line break or character with a meaning in slurm.conf.
var hostPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.:-]{0,252}$`)

// Worker is one slurmd as slurm.conf describes it.
type Worker struct {
	// Slot gives its name and its port; it is the member's index where that is free.
	Slot int
	// MemberID is the id of its member.
	MemberID string
	// Host and Address are its node.
	Host, Address string
	// CPUs and MemoryMiB are the size that it offers to jobs.
	CPUs, MemoryMiB int
	// GPUs is how many GPUs it offers, and Devices are their device nodes; none where the member has no such nodes, and
	// the GPUs are only counted.
	GPUs    int
	Devices []string
	// Prolog is whether its member has the task prolog; members of before version 1.4 get it by an upgrade.
	Prolog bool
	// Features are the member's labels as Slurm features, sorted.
	Features []string
}

// Name returns the worker's name in Slurm.
func (w Worker) Name() string { return WorkerName(w.Slot) }

// Cluster holds everything that slurm.conf is rendered from.
type Cluster struct {
	Config
	// Version is the manifest's version that it runs.
	Version string
	// Host and Address are the controller's node.
	Host, Address string
	// Port is the first port of the cluster's block: slurmctld's.
	Port int
	// Workers are in the order of their slots.
	Workers []Worker
	// FirstJob is the number below which slurmctld gives none, since a restore of its state; 0 for none.
	FirstJob int

	// Busy are the ports of the block that other programs use on the nodes of members to come.
	Busy []int
}

// ConfServer returns the address that serves slurm.conf.
func (c Cluster) ConfServer() string { return fmt.Sprintf("%s:%d", c.Address, c.Port) }

// Of returns a member's worker; ok is false when it has none.
func (c Cluster) Of(memberID string) (Worker, bool) {
	for _, worker := range c.Workers {
		if worker.MemberID == memberID {
			return worker, true
		}
	}
	return Worker{}, false
}

// Place gives a member a worker of this cluster, in its old slot if it has one.
func (c *Cluster) Place(member adapter.Member, host string, workers []adapter.Member) error {
	slot, err := c.slotFor(member)
	if err != nil {
		return err
	}
	held, known := c.Of(member.ID)
	c.Remove(member.ID)
	worker := share(c.Config, member, host, workers)
	worker.Slot, worker.GPUs, worker.Devices = slot, held.GPUs, held.Devices
	worker.Prolog = !known || held.Prolog
	c.Workers = append(c.Workers, worker)
	slices.SortFunc(c.Workers, func(a, b Worker) int { return a.Slot - b.Slot })
	return nil
}

// slotFor returns a member's slot: the one it has, else the slot of its index. That one is not free
// when indexes have grown beyond the block or another program uses its port; then it is the lowest
// free slot.
func (c *Cluster) slotFor(member adapter.Member) (int, error) {
	taken := make(map[int]bool, len(c.Workers))
	for _, held := range c.Workers {
		if held.MemberID == member.ID {
			return held.Slot, nil
		}
		taken[held.Slot] = true
	}
	free := func(slot int) bool { return !taken[slot] && !slices.Contains(c.Busy, WorkerPort(c.Port, slot)) }
	if member.Index >= 0 && member.Index < MaxWorkers && free(member.Index) {
		return member.Index, nil
	}
	for slot := range MaxWorkers {
		if free(slot) {
			return slot, nil
		}
	}
	return 0, adapter.Fail("NO_FREE_SLOT", adapter.OwnerUser, false, "a cluster has at most %d workers", MaxWorkers)
}

// Remove deletes a member's worker.
func (c *Cluster) Remove(memberID string) {
	c.Workers = slices.DeleteFunc(slices.Clone(c.Workers), func(w Worker) bool { return w.MemberID == memberID })
}

// WorkerName returns a worker's name in Slurm.
func WorkerName(slot int) string { return "w" + strconv.Itoa(slot) }

// workerSlot reads the slot back from a name; ok is false for any other text.
func workerSlot(name string) (slot int, ok bool) {
	digits, found := strings.CutPrefix(name, "w")
	slot, err := strconv.Atoi(digits)
	return slot, found && err == nil && slot >= 0 && slot < PortBlock
}

// share returns a worker with the size it offers: the configured one, or its part of the node that
// it shares with other workers of its allocation.
func share(config Config, member adapter.Member, host string, workers []adapter.Member) Worker {
	neighbours := max(len(beside(member, workers)), 1)
	return Worker{
		MemberID: member.ID, Host: host, Address: member.Host(),
		CPUs:      cmp.Or(config.CPUsPerNode, max(1, member.Node.CPUs/neighbours)),
		MemoryMiB: cmp.Or(config.MemoryMiBPerNode, max(minMemory, member.Node.MemoryMiB/neighbours)),
	}
}

// New returns the layout of a new cluster. Hosts are the host names of the members' nodes, by
// member.
func New(
	config Config, version string, controller adapter.Member, hosts map[string]string, port int,
	workers []adapter.Member,
) (Cluster, error) {
	cluster := Cluster{
		Config: config.WithDefaults(), Version: version,
		Host: hosts[controller.ID], Address: controller.Host(), Port: port,
	}
	if HasVolume(controller, SlotState) {
		cluster.Address = ControllerName
	}
	for _, worker := range workers {
		if err := cluster.Place(worker, hosts[worker.ID], workers); err != nil {
			return Cluster{}, err
		}
	}
	return cluster, nil
}

// unfitFeature matches every character that has a meaning in an expression over Slurm's features.
var unfitFeature = regexp.MustCompile(`[^A-Za-z0-9_.=/-]`)

// Features returns labels as Slurm features, "key=value" or "key" for an empty value, sorted.
func Features(labels map[string]string) []string {
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

// Label gives a member's worker its labels as features.
func (c *Cluster) Label(memberID string, labels map[string]string) {
	for i, worker := range c.Workers {
		if worker.MemberID == memberID {
			c.Workers[i].Features = Features(labels)
		}
	}
}
