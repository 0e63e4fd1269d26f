package token

import (
	"crypto/sha256"
	"sync"
)

// maxSeen bounds the tokens of one sort whose signature is remembered; at some 300 bytes each.
const maxSeen = 4_096

// seen remembers the tokens whose signature is valid, so that many calls with the same token cost one verification.
// Only what a signature has covered is remembered: time, issuer and audience are checked at every call, and a token
// whose key is no longer published is not known.
type seen[T any] struct {
	mu     sync.RWMutex
	tokens map[[sha256.Size]byte]sighting[T]
}

type sighting[T any] struct {
	said  T
	keyID string
}

func (s *seen[T]) recall(sum [sha256.Size]byte) (sighting[T], bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	known, ok := s.tokens[sum]
	return known, ok
}

func (s *seen[T]) remember(sum [sha256.Size]byte, known sighting[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens == nil || len(s.tokens) >= maxSeen {
		s.tokens = make(map[[sha256.Size]byte]sighting[T])
	}
	s.tokens[sum] = known
}
