package kept

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/gpuaas/app-platform/authz"
	"github.com/gpuaas/app-platform/graph/plain"
	"github.com/gpuaas/app-platform/internal/tx"
)

// overhead is what an answer takes beside its texts, in bytes: its entries in map and list, and what the texts' own
// sizes are rounded up to.
const overhead = 512

// largest bounds a single answer, as a part of all memory: a few large ones must not push all others out.
const largest = 64

// maxCallers bounds the callers whose rights are known.
const maxCallers = 4096

// key names an answer. A plan that is compiled again is another key; the old one's answers become the least recent.
type key struct {
	plan              *plain.Plan
	variables, rights string // as proved
}

// answer is what was answered. It is never modified.
type answer struct {
	data   []byte
	proof  tx.Proof
	object authz.Object // that the request was about
}

// store keeps the most recently used answers within a bound of bytes. A nil store keeps none.
type store struct {
	mu           sync.Mutex
	kept         *simplelru.LRU[key, *answer]
	callers      *simplelru.LRU[string, string] // the rights that a credential was last proved to have
	bytes, bound int
}

func newStore(bound int) *store {
	if bound <= 0 {
		return nil
	}
	s := &store{bound: bound}
	kept, err := simplelru.NewLRU(bound/overhead+1, func(k key, gone *answer) { s.bytes -= weight(k, gone) })
	if err != nil {
		panic(err) // of a size below 1 alone
	}
	s.kept = kept
	if s.callers, err = simplelru.NewLRU[string, string](maxCallers, nil); err != nil {
		panic(err)
	}
	return s
}

func weight(k key, a *answer) int {
	return len(a.data) + a.proof.Size() + len(k.variables) + len(k.rights) + overhead
}

// rightsOf returns the rights that a credential was last proved to have, which may be others by now.
func (s *store) rightsOf(credential string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	rights, _ := s.callers.Get(credential)
	return rights
}

// learn notes the rights that a credential was proved to have.
func (s *store) learn(credential, rights string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callers.Add(credential, rights)
}

func (s *store) get(k key) *answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, _ := s.kept.Get(k)
	return found
}

// put keeps an answer in place of the one before, and lets the least recently used go until all fit.
func (s *store) put(k key, a *answer) {
	if weight(k, a) > s.bound/largest {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.Remove(k)
	s.kept.Add(k, a)
	for s.bytes += weight(k, a); s.bytes > s.bound; {
		s.kept.RemoveOldest()
	}
}

func (s *store) size() (answers, bytes int) {
	if s == nil {
		return 0, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept.Len(), s.bytes
}
