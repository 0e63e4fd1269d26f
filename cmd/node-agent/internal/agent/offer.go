package agent

import (
	"context"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/device"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/inject"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/oci"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/sandbox"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/text"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// offered is what keeps members apart on this node.
func offered(isolation sandbox.Isolation) *gql.NodeWallsInput {
	walls := &gql.NodeWallsInput{
		Classes: []gql.IsolationClass{}, Profiles: []gql.MemberProfile{}, Runtime: isolation.Runtime,
		RuntimeVersion: isolation.RuntimeVersion,
		CgroupVersion:  isolation.Cgroups, Gaps: []gql.IsolationGapInput{},
	}
	for _, class := range isolation.Classes {
		walls.Classes = append(walls.Classes, gql.IsolationClass(class))
	}
	for _, profile := range isolation.Profiles {
		walls.Profiles = append(walls.Profiles, gql.MemberProfile(profile))
	}
	for _, gap := range isolation.Gaps {
		walls.Gaps = append(walls.Gaps, gql.IsolationGapInput{Wall: gql.IsolationWall(gap.Wall),
			Reason: text.Head(gap.Reason, maxReason)})
	}
	return walls
}

// maxReason bounds the reason of a gap, in bytes; the platform takes 500 characters.
const maxReason = 500

// wallsOf translates what a task says of its member's walls.
func wallsOf(binding *gql.MemberBinding) sandbox.Walls {
	if binding == nil {
		return sandbox.Walls{}
	}
	walls := sandbox.Walls{AllocationID: binding.AllocationId, Profile: oci.Profile(binding.Profile),
		Pids: binding.Pids}
	if binding.IsolationClass != nil {
		walls.Class = string(*binding.IsolationClass)
	}
	if binding.MemoryMiB != nil {
		walls.MemoryMiB = *binding.MemoryMiB
	}
	if binding.CpuMillis != nil {
		walls.CPUMillis = *binding.CpuMillis
	}
	for _, one := range binding.Devices {
		walls.Devices = append(walls.Devices, inject.Device{UUID: one.Uuid, CDI: one.Cdi, Path: one.Path,
			Minor: one.Minor, Simulated: one.Simulated})
	}
	for _, one := range binding.Volumes {
		walls.Volumes = append(walls.Volumes, volume.Volume{ID: one.Id, Storage: one.Storage, Path: one.Path,
			ReadOnly: one.ReadOnly, SizeBytes: int64(one.SizeBytes)})
	}
	return walls
}

// devices are the node's GPUs with their identities; nil when not every one that it declares has one.
func (o Options) devices(ctx context.Context, gpus int) []gql.DeviceInput {
	if o.SimulatedGPUs {
		return device.StandIns(o.Name, o.GPUModel, gpus)
	}
	found := device.Here().List(ctx)
	if len(found) < gpus {
		return nil
	}
	return found[:gpus]
}

// classRuntimes are the runtimes of further classes that are configured.
func (o Options) classRuntimes() map[string]string {
	found := make(map[string]string)
	for class, program := range map[string]string{sandbox.ClassSandbox: o.SandboxRuntime,
		sandbox.ClassVM: o.VMRuntime} {
		if program != "" {
			found[class] = program
		}
	}
	return found
}
