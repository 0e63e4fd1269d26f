// Package pace is how the agent waits: for a while, until a hint, and ever longer between tries.
package pace

import (
	"context"
	"math/rand/v2"
	"time"
)

// first is the wait before the first repetition.
const first = 200 * time.Millisecond

// Backoff doubles from 200 ms to its limit, each wait jittered between half and the whole, so that many nodes do not
// come back in step. It is for one goroutine.
type Backoff struct{ next, limit time.Duration }

// New starts at the shortest wait.
func New(limit time.Duration) *Backoff { return &Backoff{next: first, limit: limit} }

// Reset goes back to the shortest wait.
func (b *Backoff) Reset() { b.next = first }

// Wait waits for the next step, or gives the cause of ctx's end.
func (b *Backoff) Wait(ctx context.Context) error { return PauseOr(ctx, b.Step(), nil) }

// Step is how long to wait this time.
func (b *Backoff) Step() time.Duration {
	d := b.next/2 + rand.N(b.next/2+1) // #nosec G404 -- jitter
	b.next = min(2*b.next, b.limit)
	return d
}

// Pause waits, or gives the cause of ctx's end.
func Pause(ctx context.Context, d time.Duration) error { return PauseOr(ctx, d, nil) }

// PauseOr is Pause that a hint ends early.
func PauseOr(ctx context.Context, d time.Duration, hint <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-hint:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
