// Package isolation states what keeps a member apart on its node: the classes and profiles that there are, which of
// them a node offers, which one a member gets, and what of a node is the share of an allocation.
package isolation

import "slices"

// Class is what separates a member from the others on its machine, from the weakest to the strongest.
type Class string

// The classes, each at least as strong as the one before.
const (
	// Container shares the node's kernel with other tenants' members, behind namespaces, seccomp and cgroups.
	Container Class = "CONTAINER"
	// Sandbox has a kernel in user space between the member and the node's.
	Sandbox Class = "SANDBOX"
	// VM has a kernel of its own.
	VM Class = "VM"
	// WholeNode has no other tenant on the machine.
	WholeNode Class = "WHOLE_NODE"
)

// classes are all of them, from the weakest to the strongest.
var classes = []Class{Container, Sandbox, VM, WholeNode}

// Values lists every Class as it is stored and published, from the weakest to the strongest.
func (Class) Values() []string { return names(classes...) }

// Least lists the class and every stronger one; of an empty class it lists all.
func (c Class) Least() []Class {
	return slices.Clone(classes[max(slices.Index(classes, c), 0):])
}

// Stronger returns the stronger of two classes; an empty one is the weakest.
func Stronger(a, b Class) Class {
	if slices.Index(classes, a) >= slices.Index(classes, b) {
		return a
	}
	return b
}

// Profile is what a member may do inside of its walls.
type Profile string

// The profiles.
const (
	// Service is for daemons: no new privileges, no mounts, no namespaces of its own.
	Service Profile = "SERVICE"
	// Nesting is for apps that run containers inside of the member.
	Nesting Profile = "NESTING"
)

// Values lists every Profile as it is stored and published.
func (Profile) Values() []string { return names(Service, Nesting) }

// Wall is one part of what keeps members apart; a node names those that do not hold there.
type Wall string

// The walls.
const (
	WallRuntime       Wall = "RUNTIME"
	WallUserNamespace Wall = "USER_NAMESPACE"
	WallSystemCalls   Wall = "SYSTEM_CALLS"
	WallFiles         Wall = "FILES"
	WallDevices       Wall = "DEVICES"
	WallMemory        Wall = "MEMORY"
	WallCPU           Wall = "CPU"
	WallProcesses     Wall = "PROCESSES"
	WallNetwork       Wall = "NETWORK"
	WallEvidence      Wall = "EVIDENCE"
)

// Values lists every Wall as it is stored and published.
func (Wall) Values() []string {
	return names(WallRuntime, WallUserNamespace, WallSystemCalls, WallFiles, WallDevices, WallMemory, WallCPU,
		WallProcesses,
		WallNetwork, WallEvidence)
}

// names lists values as text.
func names[S ~string](values ...S) []string {
	out := make([]string, len(values))
	for i, value := range values {
		out[i] = string(value)
	}
	return out
}
