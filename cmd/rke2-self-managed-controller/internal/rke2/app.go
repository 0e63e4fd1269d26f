// Package rke2 runs Kubernetes clusters of RKE2 as an app of the platform: members of the component server run
// "rke2 server", with etcd and the API, and members of agent run "rke2 agent". Everything is done on the members, by
// the documented commands, files and API, so that the controller needs no route to a tenant's network.
//
// The list of etcd's members is the truth on who is a server, never this program's memory: each step looks first and
// then acts, and may be taken again. Servers join and leave one by one.
package rke2

import (
	"context"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/calls"
	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/meter"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// App returns the app described by this manifest. The directory keeps its master key.
func App(manifest []byte, dir string) (adapter.App, error) {
	keys, err := openKeyring(dir)
	if err != nil {
		return adapter.App{}, err
	}
	counted, err := meter.New(dir)
	if err != nil {
		return adapter.App{}, err
	}
	app, err := adapter.FromManifest(manifest, calls.Actions())
	app.Operations = map[adapter.Kind]adapter.OperationFunc{}
	for kind, do := range map[adapter.Kind]func(context.Context, work) error{
		adapter.InstanceCreate: create, adapter.InstanceDecommission: decommission,
		adapter.InstanceUpgrade: upgrade, adapter.InstanceRollback: rollback,
		adapter.MembersAdd: add, adapter.MemberRemove: remove, adapter.MemberReplace: replace,
		adapter.MemberRecover: recoverMembers, adapter.MemberDrain: drain, adapter.MemberCordon: cordon,
		adapter.MemberUncordon: uncordon, adapter.MemberLabel: label,
	} {
		app.Operations[kind] = func(ctx context.Context, run *adapter.Run) error {
			return do(ctx, work{Run: run, keys: keys, meter: counted})
		}
	}
	app.Check = func(_ context.Context, d adapter.Dispatch) error { return calls.Check(app.Components, d) }
	app.Usage = counted.Page
	app.Plan = calls.Plan
	app.Observe = calls.Observe
	return app, err
}

// work is an operation under way.
type work struct {
	*adapter.Run

	keys  keyring
	meter *meter.Meter
	// joined are members that this operation has brought in: they can answer calls about the cluster too.
	joined []adapter.Member
}
