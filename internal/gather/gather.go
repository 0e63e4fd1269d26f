// Package gather joins the requests that come while others are served, so that one round trip, or one commit, serves
// all of them. The first to come is served alone and waits for no other.
package gather

import (
	"slices"
	"sync"
)

// Group serves elements, those together that came while others were served. New creates one, safe for concurrent use.
type Group[T any] struct {
	most, atOnce int
	serve        func([]T)
	gone         func(T) bool

	mu      sync.Mutex
	waiting []T
	leading int // calls of serve under way
}

// New returns a group that calls serve for at most so many elements, and at most so often at once. Elements whose
// caller has given up, for which gone is true, are passed over; a nil gone passes over none.
func New[T any](most, atOnce int, serve func([]T), gone func(T) bool) *Group[T] {
	return &Group[T]{most: most, atOnce: atOnce, serve: serve, gone: gone}
}

// Add has an element served by a call that begins from now on. It does not wait for that.
func (g *Group[T]) Add(one T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, one)
	if g.leading < g.atOnce {
		g.leading++
		go g.lead()
	}
}

// Waiting returns how many elements wait for the next call.
func (g *Group[T]) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// lead serves what waits until nothing does.
func (g *Group[T]) lead() {
	for some := g.next(); some != nil; some = g.next() {
		g.serve(some)
	}
}

// next takes what is served next; nil ends the leading.
func (g *Group[T]) next() []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	var some []T
	taken := 0
	for taken < len(g.waiting) && len(some) < g.most {
		if one := g.waiting[taken]; g.gone == nil || !g.gone(one) {
			some = append(some, one)
		}
		taken++
	}
	g.waiting = slices.Delete(g.waiting, 0, taken)
	if some == nil {
		g.leading--
	}
	return some
}
