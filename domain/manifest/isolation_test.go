package manifest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

func TestAManifestDeclaresItsWalls(t *testing.T) {
	t.Parallel()
	silent := &Manifest{ArtifactKind: "controller"}
	require.Equal(t, isolation.Service, silent.Walls(nil).Profile)
	require.Empty(t, silent.Walls(nil).Class)
	require.Equal(t, isolation.DefaultPids, silent.MaxPids())
	require.Equal(t, isolation.Nesting, (&Manifest{ArtifactKind: "launchable"}).Walls(nil).Profile,
		"its image runs inside of the member")
	spoken := &Manifest{ArtifactKind: "launchable", Isolation: &Isolation{Class: "vm", Profile: "service", MaxPids: 99}}
	require.Equal(t, isolation.VM, spoken.Walls(nil).Class)
	require.Equal(t, isolation.Service, spoken.Walls(nil).Profile)
	require.Equal(t, 99, spoken.MaxPids())
	require.Equal(t, isolation.DefaultPids, (&Manifest{Isolation: &Isolation{Class: "vm"}}).MaxPids(),
		"walls without a bound of their own have the platform's")
}

func TestTheGateAnswersWithWhatTheNodeLacks(t *testing.T) {
	t.Parallel()
	m := needing(Compatibility{RequiresCapacityShape: []string{"gpu_slice"}, NetworkSpan: SpanMultiAllocation})
	m.Isolation = &Isolation{Class: "sandbox", Profile: "nesting"}
	plain := AllocationShape{Shape: lifecycle.ShapeGPUSlice, GPUs: 1,
		Walls: &isolation.Walls{Classes: []isolation.Class{isolation.Container},
			Profiles: []isolation.Profile{isolation.Service}}}
	strong := plain
	strong.Walls = &isolation.Walls{Classes: []isolation.Class{isolation.Sandbox, isolation.VM},
		Profiles: []isolation.Profile{isolation.Nesting}}
	broken := plain
	broken.Walls = &isolation.Walls{Gaps: []isolation.Gap{{Wall: isolation.WallRuntime, Reason: "crun is gone"}}}
	verdict := Compatible(m, []AllocationShape{plain, strong, broken}, nil)
	var found []string
	for _, reason := range verdict.Reasons {
		found = append(found, string(reason.Code)+" "+reason.Path)
	}
	require.Equal(t, []string{"PROFILE_UNAVAILABLE allocations.0", "ISOLATION_UNAVAILABLE allocations.0",
		"RUNTIME_MISSING allocations.2"}, found)
	class, _ := m.Grant(strong, "")
	require.Equal(t, isolation.Sandbox, class)
	strong.Least = isolation.VM
	class, _ = m.Grant(strong, "")
	require.Equal(t, isolation.VM, class, "who rents may demand more than the app")
}

func TestTheSchemaBoundsTheWalls(t *testing.T) {
	t.Parallel()
	for text, path := range map[string]string{
		`{"class": "VM"}`:           "isolation.class",
		`{"profile": "privileged"}`: "isolation.profile",
		`{"max_pids": 63}`:          "isolation.max_pids",
		`{"uid": 0}`:                "isolation.uid",
		`{"class": "whole_node"}`:   "isolation.class",
	} {
		_, err := Parse(walled(t, text))
		refused, _ := fault.As(err)
		require.NotNil(t, refused, text)
		require.Equal(t, path, refused.Reasons[0].Path, text)
	}
	parsed, err := Parse(walled(t, `{"class": "vm", "profile": "nesting", "max_pids": 64}`))
	require.NoError(t, err)
	require.Equal(t, &Isolation{Class: "vm", Profile: "nesting", MaxPids: 64}, parsed.Isolation)
}

// walled is a manifest for slices alone with such an isolation.
func walled(t *testing.T, isolation string) []byte {
	t.Helper()
	text := string(changed(t, `["baremetal", "gpu_slice"]`, `["gpu_slice"]`))
	return []byte(strings.Replace(text, `"components":`, `"isolation": `+isolation+`, "components":`, 1))
}

func TestMembersThatLiveThereKeepTheirWalls(t *testing.T) {
	t.Parallel()
	m := needing(Compatibility{RequiresCapacityShape: []string{"gpu_slice"}, NetworkSpan: SpanMultiAllocation})
	m.Isolation = &Isolation{Class: "vm"}
	gone := AllocationShape{Shape: lifecycle.ShapeGPUSlice, GPUs: 1, Walls: &isolation.Walls{}}
	require.False(t, Compatible(m, []AllocationShape{gone}, nil).OK)
	gone.Settled = true
	require.True(t, Compatible(m, []AllocationShape{gone}, nil).OK,
		"a node that lost its runtime keeps no member from coming elsewhere")
}
