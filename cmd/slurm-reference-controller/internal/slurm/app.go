package slurm

import (
	"context"
	"fmt"
	"regexp"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// App returns the app described by this manifest. The directory keeps its master key.
func App(manifest []byte, dir string) (adapter.App, error) {
	keys, err := openKeyring(dir)
	if err != nil {
		return adapter.App{}, err
	}
	app, err := adapter.FromManifest(manifest, map[string]adapter.ActionFunc{
		"queue.submit": submit, "queue.list": list, "queue.cancel": cancel, "node.list": listNodes, "accounting.jobs": accountingJobs,
	})
	if err != nil {
		return adapter.App{}, err
	}
	desk := newDesk()
	app.Operations = make(map[adapter.Kind]adapter.OperationFunc, len(operations))
	for kind, do := range operations {
		app.Operations[kind] = func(ctx context.Context, run *adapter.Run) error {
			return do(ctx, work{Run: run, keys: keys, desk: desk})
		}
	}
	app.Check = check
	app.Plan = planOperation
	app.Observe = observe
	return app, nil
}

// operations is what the adapter does for each kind.
var operations = map[adapter.Kind]func(context.Context, work) error{
	adapter.InstanceCreate: create, adapter.InstanceDecommission: decommission,
	adapter.InstanceUpgrade: upgrade, adapter.InstanceRollback: upgrade,
	adapter.MembersAdd: addMembers, adapter.MemberDrain: drain, adapter.MemberCordon: cordon, adapter.MemberUncordon: uncordon,
	adapter.MemberLabel: labelMember, adapter.MemberRemove: removeMembers, adapter.MemberReplace: replaceMember,
	adapter.MemberRecover: recoverMember,
}

// hostPattern is what an address or host name must look like to become part of slurm.conf.
var hostPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.:-]{0,252}$`)

// check refuses what cannot be, before anything is done.
func check(_ context.Context, d adapter.Dispatch) error {
	controllers, workers := 0, 0
	for i, member := range d.Members {
		path := fmt.Sprintf("members[%d]", i)
		switch member.ComponentKey {
		case componentController:
			controllers++
		case componentWorker:
			workers++
		default:
			return adapter.Reject("UNKNOWN_COMPONENT", path+".componentKey", "slurm has no component %q", member.ComponentKey)
		}
		if !hostPattern.MatchString(member.Node.Address) || member.Node.SealingKey == "" {
			return adapter.Reject("NODE_INCOMPLETE", path+".node", "an address and a sealing key of the node are needed")
		}
	}
	if workers > maxWorkers {
		return adapter.Reject("TOO_MANY_WORKERS", "members", "a cluster has at most %d workers, not %d", maxWorkers, workers)
	}
	switch {
	case d.Kind == adapter.InstanceDecommission:
		return nil // what never became whole can still be torn down
	case d.Kind == adapter.InstanceCreate && (controllers != 1 || workers == 0), controllers != 1:
		return adapter.Reject("TOPOLOGY_INVALID", "members", "a cluster needs one controller and at least one worker, not %d and %d", controllers, workers)
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
	components := make(map[string]string, len(d.Members))
	for _, member := range d.Members {
		components[member.ID] = member.ComponentKey
	}
	for i, target := range d.Targets {
		if components[target] != componentWorker {
			return adapter.Reject("CONTROLLER_IS_FIXED", fmt.Sprintf("targets[%d]", i),
				"the controller holds the queue and the accounts; it can be recovered, but not added, drained, replaced or removed")
		}
	}
	return nil
}

// checkVersions refuses to rename a cluster: Slurm's saved state and its accounts are bound to the name.
func checkVersions(d adapter.Dispatch) error {
	from, to, err := versions(d.Change)
	if err != nil {
		return err
	}
	if from.ClusterName != to.ClusterName {
		return adapter.Reject("CLUSTER_NAME_FIXED", "change.to.config.clusterName",
			"a cluster keeps its name: its queue and its accounts are bound to %q", from.ClusterName)
	}
	return nil
}
