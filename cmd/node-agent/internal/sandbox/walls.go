package sandbox

import (
	"cmp"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/inject"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/oci"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
)

// Walls are what the platform wants round a member. The zero value is the service profile, without devices or bounds.
type Walls struct {
	// AllocationID names the capacity whose limits its members share; empty for a member without one.
	AllocationID string
	// Class is such as CONTAINER; empty for any.
	Class string
	// Profile is empty for oci.Service.
	Profile oci.Profile
	// Devices are the member's; it sees no others.
	Devices []inject.Device
	// MemoryMiB and CPUMillis bound the members of the allocation together, Pids the member alone; 0 for no bound.
	MemoryMiB, CPUMillis, Pids int
	// Volumes are mounted in the member, and outlast it.
	Volumes []volume.Volume
}

// Member names who a sandbox is for, and what its walls are.
type Member struct {
	ID, InstanceID string
	Walls          Walls
	// AsFound leaves a member that died, or was torn down, as it is: started with nothing in it, it would seem to live.
	AsFound bool
}

func (w Walls) profile() oci.Profile { return cmp.Or(w.Profile, oci.Service) }

// defaultPids bounds the processes of a member without a bound of its own, so that a fork bomb ends in it.
const defaultPids = 16_384

func (w Walls) limits() oci.Limits {
	return oci.Limits{
		MemoryBytes: int64(w.MemoryMiB) << 20, CPUMillis: int64(w.CPUMillis), Pids: int64(cmp.Or(w.Pids, defaultPids)),
	}
}

// group is the member's cgroup, in that of its allocation.
func (m Member) group() string { return allocationGroup(m.Walls.AllocationID) + "/" + m.ID }

func allocationGroup(id string) string { return cmp.Or(id, "unallocated") }

// The classes of isolation that members can have, and the walls that may not hold on a node.
const (
	ClassContainer = "CONTAINER"
	ClassSandbox   = "SANDBOX"
	ClassVM        = "VM"
	ClassWholeNode = "WHOLE_NODE"

	WallRuntime       = "RUNTIME"
	WallUserNamespace = "USER_NAMESPACE"
	WallSystemCalls   = "SYSTEM_CALLS"
	WallFiles         = "FILES"
	WallDevices       = "DEVICES"
	WallMemory        = "MEMORY"
	WallCPU           = "CPU"
	WallProcesses     = "PROCESSES"
	WallNetwork       = "NETWORK"
	WallEvidence      = "EVIDENCE"
)

// Gap is a wall that does not hold, and why.
type Gap struct{ Wall, Reason string }

// Isolation is how members are kept apart on this node.
type Isolation struct {
	// Mode is memberinit.ModeContainer or memberinit.ModeProcess; empty when the node can start no member.
	Mode string
	// Tmpfs says that members' files lie in memory, because the disk cannot carry an overlay.
	Tmpfs bool
	// Reason says why it is not better; empty when it is the best there is. Refusals without a Mode carry code.
	Reason, code string
	// Classes and Profiles are those that new members can have.
	Classes  []string
	Profiles []oci.Profile
	// Runtime and RuntimeVersion are the OCI runtime's; Cgroups is the version of cgroups, 0 without them.
	Runtime, RuntimeVersion string
	Cgroups                 int
	// Missing says, of each class whose runtime is configured and does not serve, why.
	Missing map[string]string
	// Gaps are the walls that do not hold.
	Gaps []Gap
}

// plainGaps returns the walls that plain processes lack.
func plainGaps(reason string) []Gap {
	reason = "members are plain processes below a folder: " + reason
	var gaps []Gap
	for _, wall := range []string{
		WallRuntime, WallUserNamespace, WallSystemCalls, WallFiles, WallDevices, WallMemory, WallCPU, WallProcesses,
		WallNetwork,
		WallEvidence,
	} {
		gaps = append(gaps, Gap{Wall: wall, Reason: reason})
	}
	return gaps
}
