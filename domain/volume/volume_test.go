package volume_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/volume"
)

func TestNamesOfVolumes(t *testing.T) {
	t.Parallel()
	for name, valid := range map[string]bool{
		"a": true, "home": true, "team-data-2": true, strings.Repeat("a", 40): true, "": false, "2nd": false,
		"Home":  false,
		"home-": false, "ho me": false, "../x": false, strings.Repeat("a", 41): false,
	} {
		require.Equal(t, valid, volume.ValidName(name), name)
	}
}

func TestPathsThatAVolumeMayBeMountedAt(t *testing.T) {
	t.Parallel()
	for path, valid := range map[string]bool{
		"/home": true, "/srv/data": true, "/var/lib/state.d": true, "/procedures": true,
		"/" + strings.Repeat("a", 199): true,
		"":                             false, "/": false, "home": false, "/home/": false, "/home/../etc": false,
		"/home//x": false, "/.ssh": false, "/proc": false,
		"/etc/x": false, "/run/gpuaas": false, "/usr": false, "/a b": false, "/" + strings.Repeat("a", 200): false,
	} {
		require.Equal(t, valid, volume.ValidPath(path), path)
	}
}

func TestWhatANodeServes(t *testing.T) {
	t.Parallel()
	reported := []volume.Storage{{Name: "a", Kind: volume.Shared},
		{Name: "b", Kind: volume.Local, Reason: "no loop devices"}}
	require.Empty(t, volume.Serves(reported, "a", volume.Shared))
	require.Contains(t, volume.Serves(reported, "a", volume.Local), "as SHARED")
	require.Equal(t, "no loop devices", volume.Serves(reported, "b", volume.Local))
	require.Contains(t, volume.Serves(nil, "a", volume.Shared), `no storage "a"`)
}

func TestBindingsOfComponents(t *testing.T) {
	t.Parallel()
	all, head := volume.Binding{Slot: "all"}, volume.Binding{Slot: "head", VolumeID: "vol_1", Path: "/x",
		Components: []string{"head"}}
	bound := []volume.Binding{all, head}
	require.Equal(t, bound, volume.Of(bound, "head"))
	require.Equal(t, bound[:1], volume.Of(bound, "worker"))
	require.True(t, head.Equal(head))
	for _, other := range []volume.Binding{
		{Slot: "hea", VolumeID: "vol_1", Path: "/x", Components: []string{"head"}},
		{Slot: "head", VolumeID: "vol_2", Path: "/x", Components: []string{"head"}},
		{Slot: "head", VolumeID: "vol_1", Path: "/y", Components: []string{"head"}},
		{Slot: "head", VolumeID: "vol_1", Path: "/x"},
		{Slot: "head", VolumeID: "vol_1", Path: "/x", ReadOnly: true, Components: []string{"head"}},
	} {
		require.False(t, head.Equal(other), "%+v", other)
	}
}

func TestTheVersionChangesWithTheVolumes(t *testing.T) {
	t.Parallel()
	one := volume.Versioned([]volume.Charge{{ID: "vol_1", Storage: "a", SizeBytes: 1}})
	require.Equal(t, one.Version, volume.Versioned([]volume.Charge{{ID: "vol_1", Storage: "a", SizeBytes: 1}}).Version)
	require.NotEqual(t, one.Version, volume.Versioned([]volume.Charge{{ID: "vol_1", Storage: "a", SizeBytes: 1,
		Gone: true}}).Version)
	require.Regexp(t, `^[0-9a-f]{32}$`, volume.Versioned(nil).Version,
		"128 bits, which no two lists share; an agent names it in each call, where 64 characters are taken")
}
