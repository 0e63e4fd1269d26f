package engine

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Listen begins to hear the adapter's last word on the operation; it comes before what may bring it.
func (c *Context) Listen() {
	if c.word == nil {
		c.word = c.engine.config.Hub.Wait(event.WordTopic(c.Op.ID))
	}
}

// WaitInPlace keeps the operation in hand for a short while until the adapter's last word is stored, and
// then reads it again, which saves letting go of it and claiming it once more. It answers whether the
// word came since Listen; false at once when too many linger already. Whoever lingers takes no part of
// the engine's concurrency and holds no connection. ErrFenced when the claim is gone.
func (c *Context) WaitInPlace(ctx context.Context, patience time.Duration) (bool, error) {
	if c.word == nil || patience <= 0 || !c.engine.slots.Linger(c.Op) {
		return false, nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	told := false
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-c.word.C:
		told = true
	}
	c.engine.slots.Resume(c.Op)
	if !told {
		return false, ctx.Err()
	}
	return true, c.Op.Refresh(ctx, c.DB().Worker())
}

// Calling notes that the step calls the operation's adapter until the returned function is called: a call that takes
// long gives the step's slot back.
func (c *Context) Calling() (done func()) { return c.engine.slots.Calling(c.Op) }
