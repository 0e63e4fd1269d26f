package calls

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/release"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adapter/controller"
)

// Check refuses what the app does not know or what would cost the cluster its quorum, before anything is done.
func Check(components []adapter.Component, d adapter.Dispatch) error {
	for i, member := range d.Members {
		if member.ComponentKey != machine.Server && member.ComponentKey != machine.Agent {
			return adapter.Reject("UNKNOWN_COMPONENT", fmt.Sprintf("members[%d].componentKey", i),
				"rke2 has no component %q", member.ComponentKey)
		}
	}
	if err := d.CheckChange(); err != nil || d.Kind == adapter.InstanceDecommission {
		return err
	}
	if err := controller.CheckCounts("rke2", "members", components, d.Instance.Components); err != nil {
		return err
	}
	switch d.Kind {
	case adapter.InstanceCreate, adapter.MembersAdd:
		if err := apart(d); err != nil {
			return err
		}
		if err := alone(d); err != nil {
			return err
		}
		return odd(d)
	case adapter.MemberReplace:
		// The new one runs beside the old one for a while, so that it needs another node.
		if err := apart(d); err != nil {
			return err
		}
		return alone(d)
	case adapter.MemberRemove:
		return quorate(d.Members, d.Targets)
	case adapter.InstanceUpgrade, adapter.InstanceRollback:
		return checkVersions(d)
	}
	return nil
}

// checkVersions refuses what no restart changes, and a step between releases that Kubernetes does not allow, as far as
// the two configurations show it; the plan and the operation read what really runs.
func checkVersions(d adapter.Dispatch) error {
	var change adapter.VersionChange
	var from, to machine.Config
	err := decode(d.Change, &change)
	if err = errors.Join(err, decode(change.From.Config, &from), decode(change.To.Config, &to)); err != nil {
		return adapter.Reject("CHANGE_INVALID", "change", "cannot be read: %v", err)
	}
	for _, one := range [][3]string{{"cni", from.CNI, to.CNI}, {"clusterCidr", from.ClusterCIDR, to.ClusterCIDR},
		{"serviceCidr", from.ServiceCIDR, to.ServiceCIDR}} {
		if one[1] != one[2] {
			return adapter.Reject("SETTING_FIXED", "change.to.config."+one[0],
				"a cluster's %s cannot change from %q: launch another cluster for another value", one[0], one[1])
		}
	}
	before, knownBefore := release.Find(from.Release)
	after, known := release.Find(to.Release)
	if !known || !knownBefore {
		return nil
	}
	switch step := before.StepTo(after); {
	case step == release.Skips:
		return adapter.Reject("MINOR_SKIPPED", "change.to.config.release",
			"Kubernetes upgrades by one minor version at a time: go from %s to %s first, then to %s", before,
			before.Next(),
			after)
	case step == release.Back && d.Kind == adapter.InstanceUpgrade:
		return adapter.Reject("DOWNGRADE", "change.to.config.release",
			"%s is older than %s, and etcd does not go back by an upgrade: roll back, which restores a snapshot",
			after, before)
	}
	return nil
}

// decode reads JSON; what is left out stays as it is.
func decode(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, into)
}

// apart refuses a cluster of several allocations where one of them is a slice: the network of slices does not reach
// from one allocation to another.
func apart(d adapter.Dispatch) error {
	if len(d.Members) == 0 {
		return nil
	}
	for i, member := range d.Members {
		first := d.Members[0].Node
		if member.Node.AllocationID != first.AllocationID &&
			(member.Node.Shape == slice || first.Shape == slice) {
			return adapter.Reject("SLICES_APART", fmt.Sprintf("members[%d].node.allocationId", i),
				"slices of several allocations share no network: keep the cluster in one allocation, or use baremetal")
		}
	}
	return nil
}

// slice is the shape of allocations that are a part of a node.
const slice = "gpu_slice"

// odd refuses an even number of servers, which bears the loss of no more servers than one fewer.
func odd(d adapter.Dispatch) error {
	for i, count := range d.Instance.Components {
		if count.Key == machine.Server && count.Count%2 == 0 {
			return adapter.Reject("EVEN_SERVERS", fmt.Sprintf("instance.components[%d].count", i),
				"%d servers tolerate the loss of %d, and so do %d: choose 1, 3 or 5", count.Count, lossOf(count.Count),
				count.Count-1)
		}
	}
	return nil
}

// lossOf is how many of n voting members etcd can lose.
func lossOf(n int) int { return n - machine.Majority(n) }

// quorate refuses a removal that etcd would not live through, with the arithmetic. Servers that do not serve may have
// never joined, so that one of them may leave as long as any serves: whether it has a vote is for etcd to say.
func quorate(members []adapter.Member, targets []string) error {
	var all, up, leaving, staying int
	served := false
	for _, member := range members {
		if member.ComponentKey != machine.Server {
			continue
		}
		all++
		serves := member.Status != string(adapter.MemberFailed) && member.Node.IsReachable()
		leaves := slices.Contains(targets, member.ID)
		if serves {
			up++
		}
		if leaves {
			leaving++
			served = served || serves
		} else if serves {
			staying++
		}
	}
	left := all - leaving
	switch {
	case leaving == 0, !served && staying > 0:
		return nil
	case left == 0:
		return adapter.Reject("LAST_SERVER", "targets",
			"it would remove %d of %d servers: the last one leaves only by a decommission", leaving, all)
	case up < machine.Majority(all):
		return adapter.Reject("QUORUM_LOST", "targets",
			"%d of %d servers serve, and etcd needs %d to let one leave: recover a server first", up, all,
			machine.Majority(all))
	case staying < machine.Majority(left):
		return adapter.Reject("BELOW_QUORUM", "targets",
			"%d - %d = %d servers would be left, of which %d serve, and etcd needs %d", all, leaving, left, staying,
			machine.Majority(left))
	}
	return nil
}

// alone refuses two members on one node: RKE2's ports are fixed, so that the second one would never start. A slice of a
// node is a machine of its own.
func alone(d adapter.Dispatch) error {
	taken := map[string]bool{}
	for i, member := range d.Members {
		if member.Node.ID == "" || member.Node.Shape == slice {
			continue
		}
		if taken[member.Node.ID] {
			return adapter.Reject("NODE_SHARED", fmt.Sprintf("members[%d].node.id", i),
				"two members are on the node %s, "+
					"and RKE2's ports are fixed: give each member an allocation of its own; to keep a member where "+
					"it is, recover it, do not replace it", member.Node.Name)
		}
		taken[member.Node.ID] = true
	}
	return nil
}
