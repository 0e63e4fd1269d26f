package node

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/service/kit/check"
)

// Bounds of what an agent reports of walls and devices.
const (
	maxRuntime    = 64
	maxReason     = 500
	maxUUID       = 128
	maxCgroup     = 2
	maxIndex      = 4_095
	maxMinor      = 1 << 20
	maxModel      = 128
	maxDeviceMiB  = 1 << 24 // 16 TiB
	maxDevicePath = 128
)

var (
	uuidPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)
	pciPattern  = regexp.MustCompile(`^([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])?$`)
	pathPattern = regexp.MustCompile(`^/dev/[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`)
)

// checkWalls notes what is wrong with the walls at the path.
func checkWalls(in *check.Input, at string, v *isolation.Walls) {
	once(in, at+".classes", v.Classes)
	once(in, at+".profiles", v.Profiles)
	in.Text(at+".runtime", v.Runtime, 0, maxRuntime)
	in.Text(at+".runtimeVersion", v.RuntimeVersion, 0, maxRuntime)
	whole(in, at+".cgroupVersion", v.CgroupVersion, 0, maxCgroup)
	walls := make([]isolation.Wall, len(v.Gaps))
	for i, gap := range v.Gaps {
		walls[i] = gap.Wall
		in.Text(fmt.Sprintf("%s.gaps.%d.reason", at, i), gap.Reason, 1, maxReason)
	}
	once(in, at+".gaps", walls)
}

// once notes a value that is listed twice.
func once[T comparable](in *check.Input, at string, values []T) {
	seen := make(map[T]bool, len(values))
	for i, value := range values {
		if seen[value] {
			in.Bad(fmt.Sprintf("%s.%d", at, i), "is listed twice: list each once")
		}
		seen[value] = true
	}
}

// checkDevices notes what is wrong with the devices at the path: each of the node's GPUs, once.
func (v *Inventory) checkDevices(in *check.Input, at string) {
	if len(v.Devices) != v.GPUs {
		in.Bad(at, "must be exactly the node's %d GPUs: it lists %d", v.GPUs, len(v.Devices))
	}
	uuids, indices := make([]string, len(v.Devices)), make([]int, len(v.Devices))
	for i, device := range v.Devices {
		checkDevice(in, fmt.Sprintf("%s.%d", at, i), device)
		uuids[i], indices[i] = device.UUID, device.Index
	}
	once(in, at, uuids)
	once(in, at, indices)
}

func checkDevice(in *check.Input, at string, device isolation.Device) {
	in.Text(at+".uuid", device.UUID, 1, maxUUID)
	if !uuidPattern.MatchString(device.UUID) || !device.Reported() {
		in.Bad(at+".uuid", "must be the vendor's identity: letters, digits, dot, dash, colon and underscore")
	}
	whole(in, at+".index", device.Index, 0, maxIndex)
	whole(in, at+".minor", device.Minor, 0, maxMinor)
	if !pciPattern.MatchString(device.PCIAddress) {
		in.Bad(at+".pciAddress", "must be an address such as 0000:3b:00.0, in lower case, or empty")
	}
	if len(device.Path) > maxDevicePath || !pathPattern.MatchString(device.Path) ||
		strings.Contains(device.Path, "..") {
		in.Bad(at+".path", "must be a path below /dev")
	}
	in.Text(at+".model", device.Model, 0, maxModel)
	whole(in, at+".memoryMiB", device.MemoryMiB, 0, maxDeviceMiB)
	in.Text(at+".cdi", device.CDI, 0, maxUUID)
}

// devices is the JSON column's value; null where the agent has not reported them.
func devices(reported []isolation.Device) any {
	if reported == nil {
		return nil
	}
	return reported
}
