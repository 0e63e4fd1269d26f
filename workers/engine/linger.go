package engine

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/service/ledger/event"
)

// Listen subscribes to the adapter's last report on the operation. Call it before what may bring that report.
func (c *Context) Listen() {
	if c.word == nil {
		c.word = c.engine.config.Hub.Wait(event.WordTopic(c.Op.ID))
	}
}

// WaitInPlace keeps the operation in hand for a short while, and reports whether it has read news of it since Listen;
// false at once when too many linger already. A wake-up alone is not news: a process that begins to listen wakes all.
// A step that lingers takes no part of the engine's concurrency and no connection. ErrFenced when the claim has ended.
func (c *Context) WaitInPlace(ctx context.Context, patience time.Duration) (bool, error) {
	if c.word == nil || patience <= 0 {
		return false, nil
	}
	waiting, over := context.WithTimeout(ctx, patience)
	defer over()
	for c.engine.slots.Linger(c.Op) {
		select {
		case <-waiting.Done():
			c.engine.slots.Resume(c.Op)
			return false, ctx.Err()
		case <-c.word.C: // what came in time counts, though the time may be over by now
			c.engine.slots.Resume(c.Op)
		}
		if news, err := c.Op.News(ctx, c.DB().Worker()); news || err != nil {
			return news, err
		}
	}
	return false, nil
}

// Calling notes that the step calls the operation's adapter until the returned function is called: a call that takes
// long gives the step's slot back.
func (c *Context) Calling() (done func()) { return c.engine.slots.Calling(c.Op) }
