package manifest

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// needing is a manifest of one component with this gate.
func needing(c Compatibility) *Manifest {
	return &Manifest{Compatibility: c, Components: []Component{
		{Key: "main", Min: 1, Max: 4, Default: 1}, {Key: "extra", Min: 0, Max: 2, Default: 0},
	}}
}

// anyShape is a gate that only the network span narrows.
func anyShape(span NetworkSpan) Compatibility {
	return Compatibility{RequiresCapacityShape: []string{"baremetal", "gpu_slice"}, MinGPUCount: 1, NetworkSpan: span}
}

// profiles are the app profiles of the published compatibility table, with how many allocations each spans.
var profiles = []struct {
	name        string
	span        NetworkSpan
	allocations int
	slice, bare bool
}{
	{"launchable, notebook or model server, single node", SpanAllocation, 1, true, true},
	{"scheduler, single node", SpanAllocation, 1, true, true},
	{"scheduler, multi-allocation (remote workers)", SpanMultiAllocation, 3, true, true},
	{"scheduler, multi-node (cross-network cluster)", SpanCrossNetwork, 2, false, true},
	{"self-managed container cluster, single allocation", SpanAllocation, 1, true, true},
	{"container cluster, multi-node", SpanCrossNetwork, 2, false, true},
}

// The published sample of the block has three members. What it says nothing of follows from the shapes: slices'
// networks do not reach beyond their allocation.
func TestThePublishedBlockIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	for shapes, want := range map[string]NetworkSpan{
		`["baremetal", "gpu_slice"]`: SpanAllocation, `["gpu_slice"]`: SpanAllocation,
		`["baremetal"]`: SpanMultiAllocation,
	} {
		var document map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(full(t), &document))
		document["compatibility"] = json.RawMessage(`{"requires_capacity_shape": ` + shapes +
			`, "min_gpu_count": 1, "requires_exclusive_node": false}`)
		encoded, err := json.Marshal(document)
		require.NoError(t, err)
		m, err := Parse(encoded)
		require.NoError(t, err, shapes)
		require.Equal(t, want, m.Compatibility.NetworkSpan, shapes)
		m, err = Stored(encoded)
		require.NoError(t, err, shapes)
		require.Equal(t, want, m.Compatibility.NetworkSpan, shapes)
	}
}

func TestCompatibilityIsThePublishedTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, p := range profiles {
		m := needing(anyShape(p.span))
		slice := Compatible(m, several(lifecycle.ShapeGPUSlice, p.allocations), nil)
		bare := Compatible(m, several(lifecycle.ShapeBaremetal, p.allocations), nil)
		require.Equal(t, p.slice, slice.OK, p.name)
		require.Equal(t, p.bare, bare.OK, p.name)
		fmt.Fprintf(&out, "%s (%s)\n  gpu_slice: %s\n  baremetal: %s\n", p.name, p.span, spell(slice), spell(bare))
	}
	const path = "testdata/compatibility.golden"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String(), "run go test ./domain/manifest -update and read the difference")
}

// several is n allocations of two GPUs.
func several(shape lifecycle.CapacityShape, n int) []AllocationShape {
	allocations := make([]AllocationShape, n)
	for i := range allocations {
		allocations[i] = AllocationShape{Shape: shape, GPUs: 2}
	}
	return allocations
}

// spell is a verdict in one line.
func spell(v Verdict) string {
	if v.OK {
		return "✓"
	}
	text := "✗"
	for _, reason := range v.Reasons {
		text += fmt.Sprintf(" [%s at %s: %s]", reason.Code, reason.Path, reason.Message)
	}
	return text
}

func TestEveryRuleInTheWayIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	bare := AllocationShape{Shape: lifecycle.ShapeBaremetal, GPUs: 4}
	slice := AllocationShape{Shape: lifecycle.ShapeGPUSlice, GPUs: 1}
	strict := Compatibility{RequiresCapacityShape: []string{"baremetal"}, MinGPUCount: 2, RequiresExclusiveNode: true,
		NetworkSpan: SpanCrossNetwork}
	for name, c := range map[string]struct {
		gate        Compatibility
		allocations []AllocationShape
		want        map[string]int
		reasons     []string
	}{
		"fits": {strict, []AllocationShape{bare, bare}, map[string]int{"main": 4}, nil},
		"slice of a strict": {strict, []AllocationShape{bare, slice}, nil,
			[]string{"SHAPE_UNSUPPORTED allocations.1", "GPU_COUNT_TOO_LOW allocations.1",
				"NODE_NOT_EXCLUSIVE allocations.1", "NETWORK_SPAN_UNSUPPORTED allocations.1"}},
		"none": {strict, nil, nil, []string{"CAPACITY_MISSING allocations"}},
		"two for one": {anyShape(SpanAllocation), []AllocationShape{bare, bare}, nil,
			[]string{"NETWORK_SPAN_UNSUPPORTED allocations"}},
		"too few": {anyShape(SpanAllocation), []AllocationShape{bare}, map[string]int{"main": 0},
			[]string{"COUNT_OUT_OF_BOUNDS components.main"}},
		"too many": {anyShape(SpanAllocation), []AllocationShape{bare}, map[string]int{"extra": 3},
			[]string{"COUNT_OUT_OF_BOUNDS components.extra"}},
		"negative": {anyShape(SpanAllocation), []AllocationShape{bare}, map[string]int{"extra": -1},
			[]string{"COUNT_OUT_OF_BOUNDS components.extra"}},
		"unknown": {anyShape(SpanAllocation), []AllocationShape{bare}, map[string]int{"z": 1, "a": 1},
			[]string{"UNKNOWN_COMPONENT components.a", "UNKNOWN_COMPONENT components.z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict := Compatible(needing(c.gate), c.allocations, c.want)
			var got []string
			for _, reason := range verdict.Reasons {
				got = append(got, string(reason.Code)+" "+reason.Path)
			}
			require.Equal(t, c.reasons, got)
			require.Equal(t, len(got) == 0, verdict.OK)
			require.Equal(t, !verdict.OK, fault.Is(verdict.Err(), fault.Incompatible))
		})
	}
}

func TestCountsFallBackToDefaults(t *testing.T) {
	t.Parallel()
	counts, reasons := Counts(needing(anyShape(SpanAllocation)), map[string]int{"extra": 2})
	require.Empty(t, reasons)
	require.Equal(t, map[string]int{"main": 1, "extra": 2}, counts)
}
