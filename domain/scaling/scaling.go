// Package scaling is the platform's rule of which members leave when a component gets fewer of them and its adapter
// names none.
package scaling

import (
	"cmp"
	"slices"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// Candidate is a member that may leave.
type Candidate struct {
	ID ids.ID
	// Index is its number in the component.
	Index    int
	Status   lifecycle.MemberStatus
	Health   lifecycle.Health
	Cordoned bool
}

// Rank returns how early a member leaves, 0 first: what does not serve leaves before what still serves.
//
//	0 FAILED · 1 not in service yet, or half removed · 2 DRAINED · 3 DRAINING or cordoned · 4 UNHEALTHY · 5 all others
func (c Candidate) Rank() int {
	switch {
	case c.Status == lifecycle.MemberFailed:
		return 0
	case c.Status == lifecycle.MemberPending, c.Status == lifecycle.MemberJoining, c.Status == lifecycle.MemberRemoving:
		return 1
	case c.Status == lifecycle.MemberDrained:
		return 2
	case c.Status == lifecycle.MemberDraining, c.Cordoned:
		return 3
	case c.Health == lifecycle.HealthUnhealthy:
		return 4
	}
	return 5
}

// Order returns the candidates in the order in which they leave: those that the adapter prefers, in its order, then by
// rank, and among equals the highest index first.
func Order(candidates []Candidate, preferred []ids.ID) []Candidate {
	place := func(c Candidate) int {
		if at := slices.Index(preferred, c.ID); at >= 0 {
			return at
		}
		return len(preferred)
	}
	ordered := slices.Clone(candidates)
	slices.SortStableFunc(ordered, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.Rank(), b.Rank()), cmp.Compare(b.Index, a.Index))
	})
	return ordered
}
