package delivery

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/internal/fetch"
	"github.com/gpuaas/app-platform/service/kit/origin"
)

const (
	// rememberFor is how long an opened credential is remembered, in memory alone.
	rememberFor = time.Minute
	// maxRemembered bounds the credentials that are remembered.
	maxRemembered = 64
)

// credentials remembers what was opened a moment ago, by its envelope: the keeper of secrets is not called for every
// part of every artifact, and a changed credential has another envelope.
type credentials struct {
	mu   sync.Mutex
	held map[[sha256.Size]byte]remembered
}

type remembered struct {
	fetch.Credential
	until time.Time
}

// credential returns the source's credential.
func (s *Service) credential(ctx context.Context, from *origin.Source) (fetch.Credential, error) {
	if from.Sealed == nil || from.Withheld {
		return from.Credential(ctx, s.Vault)
	}
	envelope, now := sha256.Sum256(from.Sealed), s.DB.Now()
	if known, ok := s.opened.recall(envelope, now); ok {
		return known, nil
	}
	opened, err := from.Credential(ctx, s.Vault)
	if err == nil {
		s.opened.remember(envelope, opened, now)
	}
	return opened, err
}

// recall returns a credential that was opened less than rememberFor ago.
func (c *credentials) recall(envelope [sha256.Size]byte, now time.Time) (fetch.Credential, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.held[envelope]
	if ok && now.After(known.until) {
		delete(c.held, envelope)
		return fetch.Credential{}, false
	}
	return known.Credential, ok
}

// remember keeps an opened credential.
func (c *credentials) remember(envelope [sha256.Size]byte, opened fetch.Credential, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil || len(c.held) >= maxRemembered {
		c.held = make(map[[sha256.Size]byte]remembered)
	}
	c.held[envelope] = remembered{opened, now.Add(rememberFor)}
}
