package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// NetworkSpan is how far the network between an instance's members must reach.
type NetworkSpan string

// The network spans.
const (
	// SpanAllocation keeps all members inside of one allocation.
	SpanAllocation NetworkSpan = "allocation"
	// SpanMultiAllocation spreads members over allocations that are joined one by one, as member operations do.
	SpanMultiAllocation NetworkSpan = "multi_allocation"
	// SpanCrossNetwork needs one network across allocations, which slices do not have.
	SpanCrossNetwork NetworkSpan = "cross_network"
)

// Compatibility is a manifest's gate on capacity.
type Compatibility struct {
	// RequiresCapacityShape are the shapes it runs on, "baremetal" and "gpu_slice", at least one.
	RequiresCapacityShape []string `json:"requires_capacity_shape"`
	// MinGPUCount is the fewest GPUs that each allocation must have.
	MinGPUCount int `json:"min_gpu_count"`
	// RequiresExclusiveNode is true when nothing else may share the nodes.
	RequiresExclusiveNode bool `json:"requires_exclusive_node"`
	// NetworkSpan is how far the network must reach; left out, it follows from the shapes: see spanOf.
	NetworkSpan NetworkSpan `json:"network_span"`
}

// spanOf is the span of an app that states none: slices' networks do not reach beyond their allocation, so an app that
// may run on them stays in one; an app of whole nodes may be joined from several.
func spanOf(shapes []string) NetworkSpan {
	if slices.Contains(shapes, lifecycle.Wire(lifecycle.ShapeGPUSlice)) {
		return SpanAllocation
	}
	return SpanMultiAllocation
}

// AllocationShape is what compatibility depends on in an allocation.
type AllocationShape struct {
	// Shape is how much of a node it takes.
	Shape lifecycle.CapacityShape
	// GPUs it has, real or declared.
	GPUs int
	// Walls are what its node offers; nil when the node has not reported it.
	Walls *isolation.Walls
	// Least is the weakest isolation class that was rented; empty for any.
	Least isolation.Class
	// Settled is true when no member comes to it: those that live there have their walls, whatever the node offers now.
	Settled bool
	// Allowed reports whether policy allows an isolation class; nil for all.
	Allowed func(isolation.Class) bool
}

// Verdict is whether an app fits, and why not.
type Verdict struct {
	// OK is true without a reason.
	OK bool
	// Reasons are everything in the way, with the paths "allocations.0" and "components.KEY".
	Reasons []fault.Reason
}

// Err is nil when the app fits, else INCOMPATIBLE with the verdict's reasons.
func (v Verdict) Err() error {
	if v.OK {
		return nil
	}
	return fault.New(fault.Incompatible, "the app does not fit").With(v.Reasons...)
}

// Compatible says whether an instance of the manifest, with the members wanted of each component (nil for the
// defaults), can be launched into these allocations together. It looks at every rule, so that a caller learns of
// all that is in the way at once.
func Compatible(m *Manifest, allocations []AllocationShape, want map[string]int) Verdict {
	var reasons []fault.Reason
	for i, allocation := range allocations {
		path := "allocations." + strconv.Itoa(i)
		reasons = append(reasons, allocationReasons(m.Compatibility, allocation, path)...)
		if allocation.Settled {
			continue
		}
		_, lacking := m.Grant(allocation, path)
		reasons = append(reasons, lacking...)
	}
	reasons = append(reasons, spanReasons(m.Compatibility, len(allocations))...)
	_, counts := Counts(m, want)
	reasons = append(reasons, counts...)
	return Verdict{OK: len(reasons) == 0, Reasons: reasons}
}

// allocationReasons are why a single allocation does not do.
func allocationReasons(c Compatibility, allocation AllocationShape, path string) []fault.Reason {
	var reasons []fault.Reason
	add := func(code fault.Code, format string, args ...any) {
		reasons = append(reasons, fault.Reason{Code: code, Message: fmt.Sprintf(format, args...), Path: path})
	}
	shape := lifecycle.Wire(allocation.Shape)
	if !slices.Contains(c.RequiresCapacityShape, shape) {
		add(fault.ShapeUnsupported, "the app runs on %s, not on %s",
			strings.Join(c.RequiresCapacityShape, " or "), shape)
	}
	if allocation.GPUs < c.MinGPUCount {
		add(fault.GPUCountTooLow, "the app needs %d GPUs in each allocation, and this one has %d", c.MinGPUCount,
			allocation.GPUs)
	}
	if c.RequiresExclusiveNode && allocation.Shape != lifecycle.ShapeBaremetal {
		add(fault.NodeNotExclusive, "the app needs whole nodes, and an allocation of shape %s shares its node", shape)
	}
	if c.NetworkSpan == SpanCrossNetwork && allocation.Shape == lifecycle.ShapeGPUSlice {
		add(fault.NetworkSpanUnsupported, "the app needs one network across allocations, which %s does not have", shape)
	}
	return reasons
}

// spanReasons are why this number of allocations does not do.
func spanReasons(c Compatibility, allocations int) []fault.Reason {
	switch {
	case allocations == 0:
		return []fault.Reason{{Code: fault.CapacityMissing, Message: "an allocation is needed", Path: "allocations"}}
	case allocations > 1 && c.NetworkSpan == SpanAllocation:
		return []fault.Reason{{
			Code:    fault.NetworkSpanUnsupported,
			Message: fmt.Sprintf("the app runs inside of one allocation, and %d were given", allocations),
			Path:    "allocations",
		}}
	}
	return nil
}

// Counts is how many members each component gets: what is wanted, or its default. The reasons name components
// that the manifest does not have and counts that are out of bounds, at the path "components.KEY".
func Counts(m *Manifest, want map[string]int) (map[string]int, []fault.Reason) {
	counts := make(map[string]int, len(m.Components))
	var reasons []fault.Reason
	for _, component := range m.Components {
		count, given := want[component.Key]
		if !given {
			count = component.Default
		}
		counts[component.Key] = count
		if count < component.Min || count > component.Max {
			reasons = append(reasons, fault.Reason{
				Code:    fault.CountOutOfBounds,
				Message: fmt.Sprintf("must be from %d to %d members, not %d", component.Min, component.Max, count),
				Path:    "components." + component.Key,
			})
		}
	}
	return counts, append(reasons, unknownComponents(m, want)...)
}

// unknownComponents are the wanted components that the manifest does not have, sorted.
func unknownComponents(m *Manifest, want map[string]int) []fault.Reason {
	var reasons []fault.Reason
	for key := range want {
		if _, ok := m.Component(key); !ok {
			reasons = append(reasons, fault.Reason{
				Code: fault.UnknownComponent, Message: "is not a component of this app", Path: join("components", key),
			})
		}
	}
	slices.SortFunc(reasons, func(a, b fault.Reason) int { return strings.Compare(a.Path, b.Path) })
	return reasons
}
