// Package bulkhead keeps one tenant, or one adapter, from taking a worker process for itself: the slots in which steps
// run, what may be claimed next, and a breaker for each adapter that is away.
package bulkhead

import (
	"slices"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

// maxParked bounds the operations in hand that need no slot, for each slot: those that linger for an adapter's report,
// and those whose call to an adapter takes long.
const maxParked = 4

// slowCall is how long a call to an adapter may take before its step gives the slot back.
const slowCall = 250 * time.Millisecond

// Slots counts the operations that a process has in hand. Make it with NewSlots.
type Slots struct {
	all  int
	poke func()

	mu      sync.Mutex
	running map[*queue.Held]holder
	parked  map[*queue.Held]bool // those of running that need no slot; true while a call takes long
	wanting bool                 // the loop passed work over for want of capacity
}

// holder names an operation in hand; the rest of it belongs to the goroutine that carries it on.
type holder struct {
	id, tenant ids.ID
	adapter    string
	epoch      int
}

// NewSlots returns that many slots. They call poke when one is free that the loop waits for.
func NewSlots(all int, poke func()) *Slots {
	return &Slots{all: all, poke: poke, running: make(map[*queue.Held]holder), parked: make(map[*queue.Held]bool)}
}

// Full are those that have their most, and are passed over by claims.
type Full struct{ Tenants, Adapters []string }

// Room returns how many more steps may run, and who has their most: a tenant with three quarters of all slots, so that
// its slow steps leave slots for others; an adapter that half as many calls as there are slots wait for.
func (s *Slots) Room() (int, Full) {
	s.mu.Lock()
	defer s.mu.Unlock()
	full := s.full()
	room := s.all + len(s.parked) - len(s.running)
	s.wanting = room <= 0 || len(full.Tenants)+len(full.Adapters) > 0
	return max(room, 0), full
}

// Crowded are the adapters that have their most.
func (s *Slots) Crowded() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full().Adapters
}

func (s *Slots) full() Full {
	tenants, adapters := make(map[string]int), make(map[string]int)
	for held, one := range s.running {
		slow, parked := s.parked[held]
		switch {
		case slow:
			adapters[one.adapter]++
		case !parked:
			tenants[string(one.tenant)]++
		}
	}
	return Full{Tenants: atLeast(tenants, s.all*3/4), Adapters: atLeast(adapters, s.all/2)}
}

// atLeast returns who has that many, and at least one, in order.
func atLeast(counts map[string]int, most int) (full []string) {
	for name, count := range counts {
		if count >= max(most, 1) {
			full = append(full, name)
		}
	}
	slices.Sort(full)
	return full
}

// Take notes that an operation is in hand; false when it is already, by the same claim or a later one: the database
// crashed and forgot the claim under which it is carried on here.
func (s *Slots) Take(held *queue.Held) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.running {
		if other.id == held.ID && other.epoch >= held.ClaimEpoch {
			return false
		}
	}
	s.running[held] = holder{id: held.ID, tenant: held.TenantID, adapter: held.AdapterName, epoch: held.ClaimEpoch}
	return true
}

// Give notes that an operation is not in hand any more.
func (s *Slots) Give(held *queue.Held) {
	s.mu.Lock()
	delete(s.running, held)
	delete(s.parked, held)
	wanting := s.wanting
	s.mu.Unlock()
	if wanting {
		s.poke()
	}
}

// Load returns how many operations have a place, and how many wait without one.
func (s *Slots) Load() (running, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running) - len(s.parked), len(s.parked)
}

// InHand are the ids of the operations in hand.
func (s *Slots) InHand() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := make([]string, 0, len(s.running))
	for _, one := range s.running {
		mine = append(mine, string(one.id))
	}
	return mine
}

// Linger gives an operation's slot back while it waits; false when too many do already.
func (s *Slots) Linger(held *queue.Held) bool { return s.park(held, false) }

// Resume takes the slot again.
func (s *Slots) Resume(held *queue.Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.parked, held)
}

// Calling notes that the operation calls its adapter until the returned function is called, once. A call that takes
// long gives the slot back, and counts among those that its adapter lets wait.
func (s *Slots) Calling(held *queue.Held) (done func()) {
	parked := make(chan struct{})
	timer := time.AfterFunc(slowCall, func() {
		defer close(parked)
		s.park(held, true)
	})
	return func() {
		if !timer.Stop() {
			<-parked // else it could be parked after it has resumed
		}
		s.Resume(held)
	}
}

// park gives a slot back, unless the operation is not in hand any more or too many are parked.
func (s *Slots) park(held *queue.Held, slow bool) bool {
	s.mu.Lock()
	_, running := s.running[held]
	fits := running && len(s.parked) < maxParked*s.all
	if fits {
		s.parked[held] = slow
	}
	wanting := s.wanting
	s.mu.Unlock()
	if fits && wanting {
		s.poke()
	}
	return fits
}
