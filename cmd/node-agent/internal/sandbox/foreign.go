package sandbox

import (
	"path/filepath"
	"slices"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/roster"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// foreign refuses devices that a living member of another allocation has. The platform gives each to one allocation;
// the agent goes by what it has started.
func (m *Manager) foreign(member Member) error {
	files, _ := filepath.Glob(filepath.Join(m.dir, "*", roster.File))
	for _, file := range files {
		known := roster.Read(filepath.Dir(file))
		if known == nil || known.MemberID == member.ID || known.AllocationID == member.Walls.AllocationID {
			continue
		}
		for _, device := range member.Walls.Devices {
			if slices.Contains(known.Devices, device.UUID) && known.Alive() {
				return wire.Errorf(wire.CodeDeviceNotAllocated,
					"device %s is member %s's, of allocation %s; remove that member first",
					device.UUID, known.MemberID, known.AllocationID)
			}
		}
	}
	return nil
}
