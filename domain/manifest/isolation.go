package manifest

import (
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Isolation is what the app's members need of the walls round them. Policy may demand a stronger class, and forbid a
// profile.
type Isolation struct {
	// Class is the weakest that will do: "container", "sandbox", "vm" or "whole_node"; empty for "container".
	Class string `json:"class,omitempty"`
	// Profile is "service" or "nesting"; empty for "service", and of a launchable manifest for "nesting".
	Profile string `json:"profile,omitempty"`
	// MaxPids bounds the processes and threads of a member, 64 to 4,194,304; 0 for isolation.DefaultPids.
	MaxPids int `json:"max_pids,omitempty"`
}

// launchableKind is the artifact kind of images that an adapter runs in containers.
const launchableKind = "launchable"

// Walls returns what the manifest demands of a member's walls, with policy's answer on each class; nil allows all.
func (m *Manifest) Walls(allowed func(isolation.Class) bool) isolation.Want {
	want := isolation.Want{Profile: isolation.Service, Allowed: allowed}
	if m.ArtifactKind == launchableKind { // its adapter runs the image inside of the member
		want.Profile = isolation.Nesting
	}
	if m.Isolation == nil {
		return want
	}
	want.Class = isolation.Class(strings.ToUpper(m.Isolation.Class))
	if m.Isolation.Profile != "" {
		want.Profile = isolation.Profile(strings.ToUpper(m.Isolation.Profile))
	}
	return want
}

// MaxPids returns the bound on the processes and threads of each member.
func (m *Manifest) MaxPids() int {
	if m.Isolation == nil || m.Isolation.MaxPids == 0 {
		return isolation.DefaultPids
	}
	return m.Isolation.MaxPids
}

// Grant returns the isolation class that members get in an allocation; empty on a node that has not reported its walls.
// The reasons, at the path, are why the node does not do.
func (m *Manifest) Grant(allocation AllocationShape, path string) (isolation.Class, []fault.Reason) {
	want := m.Walls(allocation.Allowed)
	want.Class = isolation.Stronger(want.Class, allocation.Least)
	return allocation.Walls.Grant(want, allocation.Shape == lifecycle.ShapeBaremetal, path)
}

// isolation checks the demand for whole nodes against the capacity that the app runs on.
func (l *linter) isolation(m *Manifest) {
	if m.Isolation == nil || isolation.Class(strings.ToUpper(m.Isolation.Class)) != isolation.WholeNode {
		return
	}
	if !slices.Contains(m.Compatibility.RequiresCapacityShape, lifecycle.Wire(lifecycle.ShapeBaremetal)) {
		l.add(fault.BadValue, "isolation.class",
			"whole_node needs baremetal among compatibility.requires_capacity_shape: only such an allocation has no "+
				"other tenant")
	}
}
