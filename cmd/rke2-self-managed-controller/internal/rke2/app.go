// Package rke2 runs Kubernetes clusters of RKE2 as an app of the platform: members of the component server run
// "rke2 server", with etcd and the API, and members of agent run "rke2 agent". Everything is done on the members, by
// the documented commands, files and API, so that the controller needs no route to a tenant's network.
//
// The list of etcd's members is the truth on who is a server, never this program's memory: each step looks first and
// then acts, and may be taken again. Servers join and leave one by one.
package rke2

import (
	"context"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// The components.
const (
	server = "server"
	agent  = "agent"
)

// App returns the app described by this manifest. The directory keeps its master key.
func App(manifest []byte, dir string) (adapter.App, error) {
	keys, err := openKeyring(dir)
	if err != nil {
		return adapter.App{}, err
	}
	app, err := adapter.FromManifest(manifest, map[string]adapter.ActionFunc{
		"nodes.list": listNodes, "pods.list": listPods,
	})
	app.Operations = map[adapter.Kind]adapter.OperationFunc{}
	for kind, do := range map[adapter.Kind]func(context.Context, work) error{
		adapter.InstanceCreate: create, adapter.InstanceDecommission: decommission,
		adapter.MembersAdd: add, adapter.MemberRemove: remove, adapter.MemberReplace: replace,
		adapter.MemberRecover: recoverMembers, adapter.MemberDrain: drain, adapter.MemberCordon: cordon,
		adapter.MemberUncordon: uncordon, adapter.MemberLabel: label,
	} {
		app.Operations[kind] = func(ctx context.Context, run *adapter.Run) error {
			return do(ctx, work{Run: run, keys: keys})
		}
	}
	app.Check = func(_ context.Context, d adapter.Dispatch) error { return check(app.Components, d) }
	app.Plan = plan
	app.Observe = observe
	return app, err
}

// work is an operation under way.
type work struct {
	*adapter.Run

	keys keyring
	// joined are members that this operation has brought in: they can be asked too.
	joined []adapter.Member
}
