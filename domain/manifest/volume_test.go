package manifest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/volume"
)

func TestSlotsThatDoNotHoldTogether(t *testing.T) {
	t.Parallel()
	m := &Manifest{Components: []Component{{Key: "head"}}, Volumes: []VolumeSlot{
		{Name: "home", Path: "/home", Components: []string{"head"}},
		{Name: "home", Path: "/home/data", Components: []string{"tail"}},
		{Name: "etc", Path: "/etc"},
	}}
	l := &linter{}
	l.volumes(m)
	var paths []string
	for _, reason := range l.reasons {
		paths = append(paths, reason.Path)
	}
	require.Equal(t, []string{"volumes.1.name", "volumes.1.components", "volumes.1.path", "volumes.2.path"}, paths)
}

func TestASlotBindsAVolume(t *testing.T) {
	t.Parallel()
	slot := VolumeSlot{Name: "data", Path: "/srv", Access: volume.ReadOnly, Components: []string{"head"}}
	require.Equal(t, volume.Binding{Slot: "data", VolumeID: "vol_1", Path: "/srv", ReadOnly: true,
		Components: []string{"head"}},
		slot.Bind(volume.Binding{VolumeID: "vol_1"}))
	open := VolumeSlot{Name: "data", Path: "/srv"}
	require.Equal(t, []string{}, open.Bind(volume.Binding{}).Components)
}
