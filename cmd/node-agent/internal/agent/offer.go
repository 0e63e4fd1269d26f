package agent

import (
	"context"
	"os/exec"
	"path/filepath"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/device"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// offered is what keeps members apart on this node. Plain processes are for one tenant at a time: such a node offers
// itself as a whole, and slices of it only where the operator vouches that they are one tenant's.
func (o Options) offered(isolation sandbox.Isolation) *gql.NodeWallsInput {
	gap := func(wall gql.IsolationWall, reason string) gql.IsolationGapInput {
		return gql.IsolationGapInput{Wall: wall, Reason: reason}
	}
	if isolation.Mode != memberinit.ModeNamespace {
		classes := []gql.IsolationClass{gql.IsolationClassWholeNode}
		if o.SingleTenant {
			classes = append(classes, gql.IsolationClassContainer)
		}
		return &gql.NodeWallsInput{
			Classes: classes, Profiles: []gql.MemberProfile{gql.MemberProfileService},
			Gaps: []gql.IsolationGapInput{
				gap(gql.IsolationWallUserNamespace, "members are plain processes of the agent's user: start the agent as root"),
				gap(gql.IsolationWallFiles, "members are plain processes and read what the agent's user reads"),
				gap(gql.IsolationWallEvidence, "only what the member's init adopts is found again"),
			},
		}
	}
	return &gql.NodeWallsInput{
		Classes:  []gql.IsolationClass{gql.IsolationClassContainer, gql.IsolationClassWholeNode},
		Profiles: []gql.MemberProfile{gql.MemberProfileService, gql.MemberProfileNesting},
		Gaps: []gql.IsolationGapInput{
			gap(gql.IsolationWallUserNamespace, "a member's root has the node's user id"),
			gap(gql.IsolationWallSystemCalls, "system calls are not filtered"),
			gap(gql.IsolationWallFiles, "members read the node's own files"),
			gap(gql.IsolationWallDevices, "members see every GPU of the node"),
			gap(gql.IsolationWallMemory, "memory is not bounded"),
			gap(gql.IsolationWallCpu, "processor time is not bounded"),
			gap(gql.IsolationWallProcesses, "processes are not bounded"),
			gap(gql.IsolationWallNetwork, "members share the node's network"),
		},
	}
}

// devices are the node's GPUs with their identities; nil when not every one that it declares has one.
func (o Options) devices(ctx context.Context, gpus int) []gql.DeviceInput {
	if o.SimulatedGPUs {
		return device.StandIns(o.Name, o.GPUModel, gpus)
	}
	smi, _ := exec.LookPath("nvidia-smi")
	found := device.Source{Root: string(filepath.Separator), SMI: smi}.List(ctx)
	if len(found) < gpus {
		return nil
	}
	return found[:gpus]
}
