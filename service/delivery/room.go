package delivery

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

// How many parts are delivered at once, by one process. A buffer goes with each.
const (
	maxOfNode    = 8
	maxAtOnce    = 256
	maxManifests = 16 // of those, manifests, which are held whole
	comeBack     = 2 * time.Second
)

// room counts the deliveries under way.
type room struct {
	mu     sync.Mutex
	all    int
	ofNode map[ids.ID]int // none at 0, so that it is no larger than all
}

// enter takes a place for a node; leave gives it back. RATE_LIMITED when the node has all that are its, UNAVAILABLE when
// there is none.
func (r *room) enter(node ids.ID) (leave func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ofNode[node] >= maxOfNode:
		return nil, fault.New(fault.RateLimited, "the node fetches %d parts at once already", maxOfNode)
	case r.all >= maxAtOnce:
		return nil, busy()
	}
	if r.ofNode == nil {
		r.ofNode = make(map[ids.ID]int)
	}
	r.all, r.ofNode[node] = r.all+1, r.ofNode[node]+1
	return func() { r.leave(node) }, nil
}

func (r *room) leave(node ids.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all--
	if r.ofNode[node]--; r.ofNode[node] == 0 {
		delete(r.ofNode, node)
	}
}

func busy() error {
	return fault.New(fault.Unavailable, "too much is being delivered just now; try again")
}

// semaphore bounds the manifests in memory.
type semaphore struct{ taken atomic.Int32 }

func (s *semaphore) enter() (leave func(), err error) {
	if s.taken.Add(1) > maxManifests {
		s.taken.Add(-1)
		return nil, busy()
	}
	return func() { s.taken.Add(-1) }, nil
}

// Stats counts what one process delivers.
type Stats struct {
	// Bytes were delivered, Parts whole; UnderWay are being delivered now; Broken ended early, by the source or the node.
	Bytes, Parts, UnderWay, Broken atomic.Int64
}
