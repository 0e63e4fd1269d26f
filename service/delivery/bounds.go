package delivery

import (
	"sync"
	"sync/atomic"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/ids"
)

// How many parts one process delivers at once. Each has a buffer.
const (
	maxOfNode    = 8
	maxAtOnce    = 256
	maxManifests = 16 // of those, manifests, which are in memory as a whole
)

// underWay counts the deliveries under way.
type underWay struct {
	mu     sync.Mutex
	all    int
	ofNode map[ids.ID]int // without zeros, so that it is not larger than all
}

// enter counts a delivery to a node, until leave is called. RATE_LIMITED when the node has maxOfNode, UNAVAILABLE when
// the process has maxAtOnce.
func (u *underWay) enter(node ids.ID) (leave func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.ofNode[node] >= maxOfNode:
		return nil, fault.New(fault.RateLimited, "the node fetches %d parts at once already", maxOfNode)
	case u.all >= maxAtOnce:
		return nil, busy()
	}
	if u.ofNode == nil {
		u.ofNode = make(map[ids.ID]int)
	}
	u.all, u.ofNode[node] = u.all+1, u.ofNode[node]+1
	return func() { u.leave(node) }, nil
}

// leave ends the counting of a delivery.
func (u *underWay) leave(node ids.ID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all--
	if u.ofNode[node]--; u.ofNode[node] == 0 {
		delete(u.ofNode, node)
	}
}

// busy is the refusal while the process delivers as much as it can.
func busy() error {
	return fault.New(fault.Unavailable, "too many deliveries are under way; try again")
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
