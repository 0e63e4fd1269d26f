package verdict

import (
	"fmt"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/isolation"
	"github.com/gpuaas/app-platform/domain/manifest"
	"github.com/gpuaas/app-platform/domain/policy"
	"github.com/gpuaas/app-platform/ent/generated/db"
	"github.com/gpuaas/app-platform/service/kit/capacity"
)

// nodeOf returns an allocation's node; nil when it is not known.
func (v *Verdicts) nodeOf(allocation *db.Allocation) *db.ComputeNode {
	if allocation.NodeID == nil {
		return nil
	}
	return v.Nodes[*allocation.NodeID]
}

// rules returns the policy that restricts the change; nil for none.
func (v *Verdicts) rules() *policy.Effective {
	if v.Terms == nil {
		return nil
	}
	return v.Terms.Policy
}

// coming returns the manifest of members that come: that of the launch, or the one that the instance runs.
func (v *Verdicts) coming() *manifest.Manifest {
	if v.Launch != nil {
		return v.Next
	}
	return v.Manifest
}

// Walls are the isolation that a member gets when it is seated.
type Walls struct {
	Profile isolation.Profile
	// Class is nil on a node that has not reported what it offers.
	Class   *isolation.Class
	MaxPids int
}

// WallsOf returns the walls of the member of a seat. Compatibility has refused a seat whose node does not offer them.
func (v *Verdicts) WallsOf(seat Seat) Walls {
	m := v.coming()
	walls := Walls{Profile: m.Walls(nil).Profile, MaxPids: m.MaxPids()}
	if class, _ := m.Grant(Shape(seat.Allocation, v.nodeOf(seat.Allocation), v.rules()), ""); class != "" {
		walls.Class = &class
	}
	return walls
}

// walled returns capacity that the change requests, with what the app demands of its nodes.
func (v *Verdicts) walled(want capacity.Want) capacity.Want {
	demand := v.coming().Walls(nil)
	want.Class, want.Profile = isolation.Stronger(want.Class, demand.Class), demand.Profile
	return want
}

// rebuilt are why members that stay do not fit another version: walls are built when a member is seated and never
// rebuilt under it.
func (v *Verdicts) rebuilt() (reasons []fault.Reason) {
	want := v.Next.Walls(nil)
	add := func(member *db.Member, code fault.Code, wall string, is, needs any) {
		reasons = append(reasons, fault.Reason{Code: code, Path: "input.version", Message: fmt.Sprintf(
			"%s %d has the %s %s, and the version needs %s: launch it as another instance",
			member.ComponentKey, member.Ordinal, wall, is, needs)})
	}
	for _, member := range v.Members {
		if member.Profile != want.Profile {
			add(member, fault.ProfileUnavailable, "profile", member.Profile, want.Profile)
		}
		if class := member.IsolationClass; class != nil && isolation.Stronger(*class, want.Class) != *class {
			add(member, fault.ClassUnavailable, "isolation class", *class, want.Class)
		}
	}
	return reasons
}
