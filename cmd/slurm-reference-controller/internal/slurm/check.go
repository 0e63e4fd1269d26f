package slurm

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// check refuses an impossible dispatch before anything is done.
func check(_ context.Context, d adapter.Dispatch) error {
	controllers, workers := 0, 0
	for i, member := range d.Members {
		path := fmt.Sprintf("members[%d]", i)
		switch member.ComponentKey {
		case layout.ComponentController:
			controllers++
		case layout.ComponentWorker:
			workers++
		case layout.ComponentLogin:
		default:
			return adapter.Reject("UNKNOWN_COMPONENT", path+".componentKey", "slurm has no component %q",
				member.ComponentKey)
		}
		if !layout.ValidHost(member.Host()) || member.Node.SealingKey == "" {
			return adapter.Reject("NODE_INCOMPLETE", path+".node",
				"the member or its node needs an address, and the node a sealing key")
		}
	}
	if workers > layout.MaxWorkers {
		return adapter.Reject(
			"TOO_MANY_WORKERS", "members", "a cluster has at most %d workers, not %d", layout.MaxWorkers, workers,
		)
	}
	if d.Kind == adapter.MemberReplace && controllers == 2 { // one of them leaves
		controllers = 1
	}
	switch {
	case d.Kind == adapter.InstanceDecommission:
		return nil // what never became whole can still be torn down
	case d.Kind == adapter.InstanceCreate && (controllers != 1 || workers == 0), controllers != 1:
		return adapter.Reject(
			"TOPOLOGY_INVALID", "members", "a cluster needs one controller and at least one worker, not %d and %d",
			controllers, workers,
		)
	}
	return checkKind(d)
}

// checkKind refuses what an operation of this kind cannot do.
func checkKind(d adapter.Dispatch) error {
	switch d.Kind {
	case adapter.InstanceUpgrade, adapter.InstanceRollback:
		return checkVersions(d)
	case adapter.InstanceCreate, adapter.MemberRecover:
		return nil
	}
	members := make(map[string]adapter.Member, len(d.Members))
	for _, member := range d.Members {
		members[member.ID] = member
	}
	for i, target := range d.Targets {
		member := members[target]
		moves := d.Kind == adapter.MemberReplace && layout.HasVolume(member, layout.SlotState)
		if member.ComponentKey == layout.ComponentController && !moves {
			return adapter.Reject("CONTROLLER_IS_FIXED", fmt.Sprintf("targets[%d]", i),
				"the controller keeps the queue and the accounts; it can be recovered, and replaced where they are on "+
					"a volume, but not added, drained or removed")
		}
	}
	return nil
}

// checkVersions refuses to rename a cluster: Slurm's saved state and its accounts are bound to the name.
func checkVersions(d adapter.Dispatch) error {
	from, to, err := layout.Versions(d.Change)
	if err != nil {
		return err
	}
	if from.ClusterName != to.ClusterName {
		return adapter.Reject("CLUSTER_NAME_FIXED", "change.to.config.clusterName",
			"a cluster keeps its name: its queue and its accounts are bound to %q", from.ClusterName)
	}
	return nil
}
