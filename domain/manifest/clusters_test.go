package manifest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// TestTheGateOfTheReferenceClusterNamesTheMissingClass holds the manifest of the reference Kubernetes app against
// capacity of every kind: whole nodes, and slices of nodes that offer one class or another.
func TestTheGateOfTheReferenceClusterNamesTheMissingClass(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../cmd/rke2-self-managed-controller/manifest.json")
	require.NoError(t, err)
	digest := "sha256:" + strings.Repeat("0", 64)
	m, err := Parse([]byte(strings.NewReplacer(`"ref": ""`, `"ref": "registry.test/controller@`+digest+`"`,
		`"digest": ""`,
		`"digest": "`+digest+`"`).Replace(string(text))))
	require.NoError(t, err)
	offers := func(shape lifecycle.CapacityShape, classes ...isolation.Class) AllocationShape {
		return AllocationShape{Shape: shape, GPUs: 1, Walls: &isolation.Walls{Classes: classes, CgroupVersion: 1,
			Profiles: []isolation.Profile{isolation.Service, isolation.Nesting}}}
	}
	whole := offers(lifecycle.ShapeBaremetal, isolation.Container, isolation.WholeNode)
	shared := offers(lifecycle.ShapeGPUSlice, isolation.Container)
	kernel := offers(lifecycle.ShapeGPUSlice, isolation.Container, isolation.VM)
	plain := offers(lifecycle.ShapeBaremetal, isolation.WholeNode)
	dead := AllocationShape{Shape: lifecycle.ShapeGPUSlice, Walls: &isolation.Walls{Gaps: []isolation.Gap{
		{Wall: isolation.WallRuntime, Reason: "crun is gone"}}}}
	var out strings.Builder
	for _, row := range []struct {
		name string
		on   []AllocationShape
	}{
		{"one whole node", []AllocationShape{whole}},
		{"one whole node without containers", []AllocationShape{plain}},
		{"whole nodes of three allocations", []AllocationShape{whole, whole, whole}},
		{"a slice of a node that offers containers", []AllocationShape{shared}},
		{"a slice of a node that offers a kernel of its own", []AllocationShape{kernel}},
		{"a whole node and a slice that offers containers", []AllocationShape{whole, shared}},
		{"a slice of a node without a runtime", []AllocationShape{dead}},
	} {
		fmt.Fprintf(&out, "%s: %s\n", row.name, spell(Compatible(m, row.on, nil)))
	}
	const path = "testdata/clusters.golden"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String(), "run go test ./domain/manifest -update and read the difference")
}
