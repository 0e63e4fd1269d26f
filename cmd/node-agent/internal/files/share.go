package files

import (
	"context"
	"sync"
	"time"
)

// patience is how long a request waits for a place. A client that sends one request after the other is ahead of the
// node, which learns a little later that a stream has ended: an ended request must not refuse the next one.
const patience = 2 * time.Second

// share gives the places of a node to tenants; its zero value is ready. A tenant gets another place while it has fewer
// places than are free: alone it gets half of them, and the tenant that comes next finds some.
type share struct {
	mu      sync.Mutex
	open    int
	tenants map[string]int
	left    chan struct{} // closed when a place is given back; nil while nobody waits
}

// wait takes a place as take does, and waits for one at most for patience.
func (s *share) wait(ctx context.Context, tenant string, most int) (leave func(), others, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		left := s.whenLeft()
		if leave, others, ok = s.take(tenant, most); ok {
			return leave, others, ok
		}
		select {
		case <-left:
		case <-ctx.Done():
			return leave, others, ok
		}
	}
}

// whenLeft returns a channel that is closed when the next place is given back.
func (s *share) whenLeft() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == nil {
		s.left = make(chan struct{})
	}
	return s.left
}

// take takes a place, which leave gives back; not ok when none is free, or none for this tenant, which others reports.
func (s *share) take(tenant string, most int) (leave func(), others, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := most - s.open
	if free < 1 || s.tenants[tenant] >= free {
		return nil, free > 0, false
	}
	if s.tenants == nil {
		s.tenants = make(map[string]int)
	}
	s.open++
	s.tenants[tenant]++
	return sync.OnceFunc(func() { s.leave(tenant) }), false, true
}

func (s *share) leave(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.tenants[tenant]--; s.tenants[tenant] == 0 {
		delete(s.tenants, tenant)
	}
	if s.left != nil {
		close(s.left)
		s.left = nil
	}
}
