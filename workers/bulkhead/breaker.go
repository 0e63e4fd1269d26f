package bulkhead

import (
	"slices"
	"sync"
	"time"
)

// A breaker opens after tripAfter calls in a row without an answer, and lets one call through every probeEvery.
const (
	tripAfter  = 3
	probeEvery = 2 * time.Second
)

// Breakers has a breaker for each adapter. The zero value is ready to use.
type Breakers struct {
	// Now is time.Now when nil.
	Now func() time.Time

	mu sync.Mutex
	of map[string]*breaker
}

// breaker is what the last calls to an adapter came to.
type breaker struct {
	silent  int       // calls in a row without an answer
	last    error     // what the last of them met
	next    time.Time // when one call may try again
	probing bool      // it is under way
}

// A Pass permits one call to an adapter. Report the result of the call with one of its methods.
type Pass struct {
	breakers *Breakers
	adapter  string
	probe    bool // it goes through an open breaker
}

// Enter lets a call to the adapter through. While the adapter is away it returns the error of the last call instead,
// except to one call at a time, every probeEvery.
func (b *Breakers) Enter(adapter string) (*Pass, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.of[adapter]
	if one == nil || one.silent < tripAfter {
		return &Pass{breakers: b, adapter: adapter}, nil
	}
	if one.probing || b.now().Before(one.next) {
		return nil, one.last
	}
	one.probing = true
	return &Pass{breakers: b, adapter: adapter, probe: true}, nil
}

// Answered reports that the adapter answered, be it with a refusal: it is not away.
func (p *Pass) Answered() {
	p.breakers.mu.Lock()
	defer p.breakers.mu.Unlock()
	delete(p.breakers.of, p.adapter)
}

// Silent reports that the adapter did not answer, and why.
func (p *Pass) Silent(cause error) {
	b := p.breakers
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.of[p.adapter]
	if one == nil {
		one = &breaker{}
		if b.of == nil {
			b.of = make(map[string]*breaker)
		}
		b.of[p.adapter] = one
	}
	one.silent++
	one.last, one.next = cause, b.now().Add(probeEvery)
	one.probing = one.probing && !p.probe
}

// Abandoned reports that the caller gave the call up, which says nothing about the adapter.
func (p *Pass) Abandoned() {
	p.breakers.mu.Lock()
	defer p.breakers.mu.Unlock()
	if one := p.breakers.of[p.adapter]; one != nil && p.probe {
		one.probing = false
	}
}

// Away are the adapters whose breaker is open, in order.
func (b *Breakers) Away() (away []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for adapter, one := range b.of {
		if one.silent >= tripAfter {
			away = append(away, adapter)
		}
	}
	slices.Sort(away)
	return away
}

func (b *Breakers) now() time.Time {
	if b.Now != nil {
		return b.Now()
	}
	return time.Now()
}
