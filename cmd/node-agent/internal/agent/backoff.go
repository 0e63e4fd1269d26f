package agent

import (
	"context"
	"math/rand/v2"
	"time"
)

// firstBackoff is the wait before the first repetition.
const firstBackoff = 200 * time.Millisecond

// backoff doubles from firstBackoff to its limit, each wait jittered between half and the whole, so
// that many nodes do not come back in step.
type backoff struct{ next, limit time.Duration }

func newBackoff(limit time.Duration) *backoff { return &backoff{next: firstBackoff, limit: limit} }

func (b *backoff) reset() { b.next = firstBackoff }

func (b *backoff) wait(ctx context.Context) error { return pauseOr(ctx, b.step(), nil) }

func (b *backoff) step() time.Duration {
	d := b.next/2 + rand.N(b.next/2+1) // #nosec G404 -- jitter
	b.next = min(2*b.next, b.limit)
	return d
}

// pause waits, or gives the cause of ctx's end.
func pause(ctx context.Context, d time.Duration) error { return pauseOr(ctx, d, nil) }

// pauseOr is pause that a hint ends early.
func pauseOr(ctx context.Context, d time.Duration, hint <-chan struct{}) error {
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
