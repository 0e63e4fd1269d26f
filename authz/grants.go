package authz

import (
	"slices"

	"github.com/gpuaas/app-platform/domain/ids"
)

// grants are the keys held by scope. There are few different sets of keys, however many scopes, so
// each is kept once: what a decision touches in a large table stays small.
type grants struct {
	at   map[ids.ID]uint32 // the set's place
	sets []Mask
}

// newGrants returns grants sized for so many scopes.
func newGrants(scopes int) grants { return grants{at: make(map[ids.ID]uint32, scopes)} }

// add gives more keys in a scope.
func (g *grants) add(scope ids.ID, keys Mask) {
	if at, ok := g.at[scope]; ok {
		keys = keys.Union(g.sets[at])
	}
	place := slices.Index(g.sets, keys)
	if place < 0 {
		place = len(g.sets)
		g.sets = append(g.sets, keys)
	}
	g.at[scope] = uint32(place) // #nosec G115 -- bindings of one caller
}

// has reports whether the key is held in the scope.
func (g *grants) has(scope ids.ID, key Key) bool {
	at, ok := g.at[scope]
	return ok && g.sets[at].Has(key)
}

// of are the keys held in the scope.
func (g *grants) of(scope ids.ID) Mask {
	if at, ok := g.at[scope]; ok {
		return g.sets[at]
	}
	return Mask{}
}

// holding are the scopes in which any of the keys is held, sorted.
func (g *grants) holding(wanted Mask) []ids.ID {
	var found []ids.ID
	for scope, at := range g.at {
		if !g.sets[at].Intersect(wanted).Empty() {
			found = append(found, scope)
		}
	}
	slices.Sort(found)
	return found
}
