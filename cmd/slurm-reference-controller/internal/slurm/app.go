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
		"queue.submit": submit, "queue.list": list, "queue.cancel": cancel, "node.list": listNodes,
	})
	if err != nil {
		return adapter.App{}, err
	}
	app.Operations = map[adapter.Kind]adapter.OperationFunc{
		adapter.InstanceCreate: func(ctx context.Context, run *adapter.Run) error {
			return creation{Run: run, keys: keys}.do(ctx)
		},
		adapter.InstanceDecommission: decommission,
	}
	app.Check = check
	app.Observe = observe
	return app, nil
}

// hostPattern is what an address or host name must look like to become part of slurm.conf.
var hostPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.:-]{0,252}$`)

// check refuses what cannot be a cluster, before anything is done.
func check(_ context.Context, d adapter.Dispatch) error {
	controllers, workers := 0, 0
	for i, member := range d.Members {
		path := fmt.Sprintf("members[%d]", i)
		switch member.ComponentKey {
		case componentController:
			controllers++
		case componentWorker:
			workers++
			if member.Index < 0 || member.Index > maxIndex {
				return adapter.Reject("INDEX_OUT_OF_RANGE", path+".index", "a cluster has workers 0 to %d", maxIndex)
			}
		default:
			return adapter.Reject("UNKNOWN_COMPONENT", path+".componentKey", "slurm has no component %q", member.ComponentKey)
		}
		if !hostPattern.MatchString(member.Node.Address) || member.Node.SealingKey == "" {
			return adapter.Reject("NODE_INCOMPLETE", path+".node", "an address and a sealing key of the node are needed")
		}
	}
	if d.Kind == adapter.InstanceCreate && (controllers != 1 || workers == 0) {
		return adapter.Reject("TOPOLOGY_INVALID", "members", "a cluster needs one controller and at least one worker, not %d and %d", controllers, workers)
	}
	return nil
}
