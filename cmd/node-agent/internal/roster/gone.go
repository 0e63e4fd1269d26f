package roster

import (
	"maps"
	"sync"
	"time"
)

// goneFor is how long a member is known as torn down: no task lasts longer.
const goneFor = time.Hour

// Gone knows the members that were torn down in the last hour, as long as the agent lives. The zero value knows none.
type Gone struct {
	mu sync.Mutex
	at map[string]time.Time
}

// Add notes that a member was torn down.
func (g *Gone) Add(memberID string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at == nil {
		g.at = make(map[string]time.Time)
	}
	maps.DeleteFunc(g.at, func(_ string, at time.Time) bool { return time.Since(at) > goneFor })
	g.at[memberID] = time.Now()
}

// Forget notes that a member is there again.
func (g *Gone) Forget(memberID string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.at, memberID)
}

// Has reports whether a member was torn down and is not there again.
func (g *Gone) Has(memberID string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, gone := g.at[memberID]
	return gone
}
