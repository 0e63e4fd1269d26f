package node_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/rig/platformtest"
	"github.com/gpuaas/app-platform/service/node"
)

// walled is an enrolment with walls and devices.
func walled(name string, change func(*node.Inventory)) node.EnrolInput {
	in := enrolment(name)
	in.Inventory.Walls = &isolation.Walls{
		Classes:  []isolation.Class{isolation.Container, isolation.WholeNode},
		Profiles: []isolation.Profile{isolation.Service},
		Runtime:  "crun", RuntimeVersion: "1.8.1", CgroupVersion: 1,
		Gaps: []isolation.Gap{{Wall: isolation.WallCPU, Reason: "no quota"}},
	}
	in.Inventory.Devices = []isolation.Device{
		{UUID: "SIM-1-0", Path: "/dev/nvidia0", Simulated: true},
		{UUID: "SIM-1-1", Index: 1, Minor: 1, Path: "/dev/nvidia1", Simulated: true},
	}
	if change != nil {
		change(&in.Inventory)
	}
	return in
}

func TestANodeReportsItsWallsAndDevices(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, _ := b.invite("")
	in := walled("gpu-1", nil)
	out, err := b.Enrol(ctx, in)
	require.NoError(t, err)
	require.Equal(t, in.Inventory.Walls, out.Node.Walls)
	require.Equal(t, in.Inventory.Devices, out.Node.Devices)
	agent := b.With(out.Token)
	changed := beat
	changed.Inventory = &in.Inventory
	changed.Inventory.Walls = &isolation.Walls{Classes: []isolation.Class{}, Profiles: []isolation.Profile{},
		Gaps: []isolation.Gap{{Wall: isolation.WallRuntime, Reason: "crun is not in PATH"}}}
	after, err := b.Heartbeat(agent, changed)
	require.NoError(t, err)
	require.Equal(t, "crun is not in PATH", after.Walls.Startless())
	older := enrolment("gpu-1").Inventory
	changed.Inventory = &older
	after, err = b.Heartbeat(agent, changed)
	require.NoError(t, err)
	require.Nil(t, after.Walls, "an older agent knows of none")
	require.Nil(t, after.Devices)
}

func TestWallsAndDevicesThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, _ := b.invite("")
	for path, change := range map[string]func(*node.Inventory){
		"walls.classes.1": func(v *node.Inventory) { v.Walls.Classes[1] = v.Walls.Classes[0] },
		"walls.profiles.1": func(v *node.Inventory) {
			v.Walls.Profiles = append(v.Walls.Profiles, v.Walls.Profiles[0])
		},
		"walls.cgroupVersion":  func(v *node.Inventory) { v.Walls.CgroupVersion = 3 },
		"walls.gaps.0.reason":  func(v *node.Inventory) { v.Walls.Gaps[0].Reason = "" },
		"walls.gaps.1":         func(v *node.Inventory) { v.Walls.Gaps = append(v.Walls.Gaps, v.Walls.Gaps[0]) },
		"devices":              func(v *node.Inventory) { v.Devices = v.Devices[:1] },
		"devices.1":            func(v *node.Inventory) { v.Devices[1].UUID = v.Devices[0].UUID },
		"devices.0.uuid":       func(v *node.Inventory) { v.Devices[0].UUID = "unreported-0" },
		"devices.1.path":       func(v *node.Inventory) { v.Devices[1].Path = "/dev/../etc/shadow" },
		"devices.1.pciAddress": func(v *node.Inventory) { v.Devices[1].PCIAddress = "3b:00" },
		"devices.1.index":      func(v *node.Inventory) { v.Devices[1].Index = -1 },
	} {
		_, err := b.Enrol(ctx, walled("gpu-1", change))
		platformtest.Refused(t, err, fault.InvalidArgument, "input.inventory."+path)
	}
	require.Zero(t, b.Count("compute_node", ""))
}
