package sandbox

import (
	"os"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/oci"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/volume"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// refusesVolumes says why the member's volumes cannot be had. A plain process would see them below a path of the node,
// with ids that are the node's.
func (m *Manager) refusesVolumes(walls Walls) error {
	switch {
	case len(walls.Volumes) == 0:
		return nil
	case m.Isolation().Mode != memberinit.ModeContainer:
		return wire.Errorf(wire.CodeVolumeUnavailable,
			"volume %s: members are plain processes on this node, and volumes are mounted only in containers",
			walls.Volumes[0].ID)
	}
	return m.options.Volumes.Refuses(walls.Volumes)
}

// mountable are the member's volumes as its root takes them.
func (m *Manager) mountable(volumes []volume.Volume) (mounts []oci.Volume) {
	for _, one := range volumes {
		mounts = append(mounts, oci.Volume{Name: one.ID, At: one.Path, Mount: func(users string) (*os.File, error) {
			return m.options.Volumes.Mount(one, users)
		}})
	}
	return mounts
}
