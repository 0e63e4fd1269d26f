package edge

import (
	"hash/maphash"
	"sync"
)

// A table has shards × perShard entries at most: 65,536, each of at most some 200 bytes with its place
// in the map, so 13 MiB.
const (
	shards   = 16
	perShard = 4_096
)

// table keeps a V for each of the keys that were used last. Keys are kept as seeded hashes, so that their length costs
// nothing and no caller can make two collide.
type table[V any] struct {
	seed   maphash.Seed
	shards [shards]shard[V]
}

type shard[V any] struct {
	mu      sync.Mutex
	entries map[uint64]*entry[V]
	newest  *entry[V] // of a ring: newest.next is the oldest
}

type entry[V any] struct {
	key        uint64
	prev, next *entry[V]
	value      V
}

func newTable[V any]() *table[V] {
	t := &table[V]{seed: maphash.MakeSeed()}
	for i := range t.shards {
		t.shards[i].entries = make(map[uint64]*entry[V])
	}
	return t
}

// place returns the shard of a key, and the key's hash, which differs by where each part ends.
func (t *table[V]) place(parts []string) (*shard[V], uint64) {
	var hash maphash.Hash
	hash.SetSeed(t.seed)
	for _, part := range parts {
		_, _ = hash.WriteString(part)
		_ = hash.WriteByte(0)
	}
	key := hash.Sum64()
	return &t.shards[key%shards], key
}

// use calls do with the key's value, and creates it when it is missing. It holds the shard's lock.
func (t *table[V]) use(do func(*V), key ...string) {
	s, hash := t.place(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	do(&s.touch(hash).value)
}

// look calls do with the key's value if there is one, and reports whether there is.
func (t *table[V]) look(do func(*V), key ...string) bool {
	s, hash := t.place(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.entries[hash]
	if ok {
		do(&found.value)
	}
	return ok
}

// drop forgets a key.
func (t *table[V]) drop(key ...string) {
	s, hash := t.place(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.entries[hash]; ok {
		delete(s.entries, hash)
		s.unlink(found)
	}
}

// touch returns the key's entry, now the newest; the oldest is deleted when the shard is full.
func (s *shard[V]) touch(key uint64) *entry[V] {
	found, ok := s.entries[key]
	switch {
	case ok:
		s.unlink(found)
	case len(s.entries) >= perShard:
		oldest := s.newest.next
		s.unlink(oldest)
		delete(s.entries, oldest.key)
		fallthrough
	default:
		found = &entry[V]{key: key}
		s.entries[key] = found
	}
	s.link(found)
	return found
}

func (s *shard[V]) link(one *entry[V]) {
	if s.newest == nil {
		one.prev, one.next = one, one
	} else {
		one.prev, one.next = s.newest, s.newest.next
		one.prev.next, one.next.prev = one, one
	}
	s.newest = one
}

func (s *shard[V]) unlink(one *entry[V]) {
	if one.next == one {
		s.newest = nil
		return
	}
	one.prev.next, one.next.prev = one.next, one.prev
	if s.newest == one {
		s.newest = one.prev
	}
}
