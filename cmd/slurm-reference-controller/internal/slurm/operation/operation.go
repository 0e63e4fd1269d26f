// Package operation carries out the operations on a cluster: create, add, drain, replace, remove,
// upgrade, recover and decommission. Each reads the cluster's slurm.conf from its controller first and
// changes it by compare and swap.
package operation

import (
	"context"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/accounts"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// All returns what the adapter does for each kind of operation. The keyring derives the clusters'
// secrets; the meter counts jobs before their cluster ends; the turns are those of the app's actions too.
func All(keys daemons.Keyring, meter *accounts.Meter, turns *Turns) map[adapter.Kind]adapter.OperationFunc {
	funcs := make(map[adapter.Kind]adapter.OperationFunc, len(operations))
	for kind, do := range operations {
		funcs[kind] = func(ctx context.Context, run *adapter.Run) error {
			return do(ctx, work{Work: daemons.Work{Run: run, Keys: keys}, turns: turns, meter: meter})
		}
	}
	return funcs
}

// operations are the functions of the kinds.
var operations = map[adapter.Kind]func(context.Context, work) error{
	adapter.InstanceCreate: create, adapter.InstanceDecommission: decommission,
	adapter.InstanceUpgrade: upgrade, adapter.InstanceRollback: upgrade,
	adapter.MembersAdd: addMembers, adapter.MemberRemove: removeMembers,
	adapter.MemberReplace: replaceMember, adapter.MemberRecover: recoverMember,
	adapter.MemberDrain: drain, adapter.MemberCordon: cordon, adapter.MemberUncordon: uncordon,
	adapter.MemberLabel: labelMember,
}

// work is an operation under way, with what all operations of the adapter share.
type work struct {
	daemons.Work
	turns *Turns
	meter *accounts.Meter
}
