package isolation

import "strings"

// Share returns the part of a node's processors and memory that belongs to an allocation of some of its GPUs: the same
// part as that of the GPUs, rounded down, and at least a tenth of a processor and 64 MiB. A slice of a node without
// GPUs, or of none of its GPUs, has the part of one GPU.
func Share(cpus, memoryMiB, nodeGPUs, gpus int) (cpuMillis, shareMiB int) {
	parts := max(nodeGPUs, 1)
	mine := min(max(gpus, 1), parts)
	return max(cpus*1_000*mine/parts, 100), max(memoryMiB*mine/parts, 64)
}

// unreported begins the identity of a device that no agent has reported yet. The database writes it.
const unreported = "unreported-"

// Reported reports whether an agent has stated the device's identity.
func (d Device) Reported() bool { return !strings.HasPrefix(d.UUID, unreported) }
