package isolation

import (
	"slices"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/volume"
)

// Walls is what a node reports of the walls that it puts round members.
type Walls struct {
	// Classes are those that it offers to new members; none when it can start no member at all.
	Classes []Class `json:"classes"`
	// Profiles are those that it offers to new members.
	Profiles []Profile `json:"profiles"`
	// Runtime is the OCI runtime's name, such as "crun", and RuntimeVersion its version; empty without a runtime.
	Runtime        string `json:"runtime"`
	RuntimeVersion string `json:"runtimeVersion"`
	// CgroupVersion is 1 or 2; 0 when members have no cgroup.
	CgroupVersion int `json:"cgroupVersion"`
	// Gaps are what does not hold on the node, and why.
	Gaps []Gap `json:"gaps"`
}

// Gap is a wall that does not hold on a node.
type Gap struct {
	Wall Wall `json:"wall"`
	// Reason says why, for a person, and how it is mended where that is known.
	Reason string `json:"reason"`
}

// Device is a GPU with its identity.
type Device struct {
	// UUID is the vendor's, unique on its node. That of a device which no agent has reported yet begins with
	// "unreported-".
	UUID string `json:"uuid"`
	// Index is its number on the node, from 0, and Minor the number of its device node.
	Index int `json:"index"`
	Minor int `json:"minor"`
	// PCIAddress is such as "0000:3b:00.0"; empty when it is not on that bus.
	PCIAddress string `json:"pciAddress"`
	// Path is its device node, such as /dev/nvidia0.
	Path string `json:"path"`
	// Model and MemoryMiB are the vendor's.
	Model     string `json:"model"`
	MemoryMiB int    `json:"memoryMiB"`
	// Simulated is true of a device that is declared for a lab and not real.
	Simulated bool `json:"simulated"`
	// CDI is its qualified name where the node has a Container Device Interface specification of it.
	CDI string `json:"cdi"`
}

// Binding is how the agent puts walls round a member: what each of the member's tasks carries to its node.
type Binding struct {
	// AllocationID names the capacity whose limits its members share.
	AllocationID ids.ID `json:"allocationId"`
	// Exclusive is true when the allocation holds the whole node.
	Exclusive bool    `json:"exclusive"`
	Profile   Profile `json:"profile"`
	// Class is nil on a node that had reported no walls when the member was seated.
	Class *Class `json:"class"`
	// Devices are the member's; it sees no others.
	Devices []Device `json:"devices"`
	// MemoryMiB and CPUMillis bound the allocation's members together; nil for no bound.
	MemoryMiB *int `json:"memoryMiB"`
	CPUMillis *int `json:"cpuMillis"`
	// Pids bounds the member's processes and threads.
	Pids int `json:"pids"`
	// Volumes are the files that outlast it.
	Volumes []volume.Mount `json:"volumes,omitempty"`
}

// DefaultPids bounds the processes and threads of a member whose manifest names no other bound.
const DefaultPids = 16_384

// Want is what an app and policy demand of a member's walls.
type Want struct {
	// Class is the weakest that will do; empty when nothing is demanded, which is CONTAINER.
	Class Class
	// Allowed reports whether policy allows a class; nil for all.
	Allowed func(Class) bool
	// Profile is the member's.
	Profile Profile
}

// Classes are those that will do, from the weakest to the strongest.
func (w Want) Classes(exclusive bool) (out []Class) {
	for _, class := range w.Class.Least() {
		if (class != WholeNode || exclusive) && (w.Allowed == nil || w.Allowed(class)) {
			out = append(out, class)
		}
	}
	return out
}

// Demanding reports whether a container will not do, so that a node must have reported what it offers.
func (w Want) Demanding() bool { return !slices.Contains(w.Classes(true), Container) }

// Grant returns the class that a member gets on a node: the weakest that the node offers and that will do. A node that
// has never reported its walls, nil, is one with an older agent: it gets no member of which more than a container is
// demanded. Exclusive is true of an allocation that holds the whole node. The reasons have the path.
func (v *Walls) Grant(want Want, exclusive bool, path string) (Class, []fault.Reason) {
	if v == nil {
		return "", want.unreported(exclusive, path)
	}
	if why := v.Startless(); why != "" {
		return "", []fault.Reason{{Code: fault.RuntimeMissing, Path: path,
			Message: "the node can start no member now: " + why +
				"; repair its container runtime, or use an allocation on another node"}}
	}
	var reasons []fault.Reason
	if !slices.Contains(v.Profiles, want.Profile) {
		reasons = append(reasons, v.lacks(fault.ProfileUnavailable, path, "the profile "+string(want.Profile)))
	}
	for _, class := range want.Classes(exclusive) {
		if slices.Contains(v.Classes, class) {
			return class, reasons
		}
	}
	return "", append(reasons, v.lacks(fault.ClassUnavailable, path, want.Text(exclusive)))
}
