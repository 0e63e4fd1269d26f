package engine

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/domain/lifecycle"
	"github.com/gpuaas/app-platform/service/ledger/event"
	"github.com/gpuaas/app-platform/service/ledger/operation"
	"github.com/gpuaas/app-platform/service/ledger/queue"
)

// Listen begins to hear the adapter's last word on the operation; it comes before what may bring it.
func (c *Context) Listen() {
	if c.word == nil {
		c.word = c.engine.config.Hub.Wait(event.WordTopic(c.Op.ID))
	}
}

// WaitInPlace keeps the operation in hand for a short while until the adapter's last word is stored, or a person's wish,
// and then has it read again, which saves letting go of it and claiming it once more. It answers whether anything came
// since Listen; false at once when too many linger already. A wake-up is only a hint, and sent to all by a process that
// begins to listen: what came is what the operation's row says. Whoever lingers takes no part of the engine's
// concurrency and holds no connection. ErrFenced when the claim is gone.
func (c *Context) WaitInPlace(ctx context.Context, patience time.Duration) (bool, error) {
	if c.word == nil || patience <= 0 {
		return false, nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for c.engine.slots.Linger(c.Op) {
		hinted := false
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-c.word.C:
			hinted = true
		}
		c.engine.slots.Resume(c.Op)
		if !hinted {
			return false, ctx.Err()
		}
		before := wishesOf(c.Op)
		if err := c.Op.Refresh(ctx, c.DB().Worker()); err != nil {
			return false, err
		}
		if wishesOf(c.Op) != before {
			return true, nil
		}
	}
	return false, nil
}

// wishes are what others write to an operation that a worker holds, and wake its worker for.
type wishes struct {
	state   lifecycle.OperationState // a cancel changes it
	attempt int                      // a forced request raises it
	forced  bool
	done    bool // by the adapter's last word
}

func wishesOf(op *queue.Held) wishes {
	status := operation.StoredStatus(op.Operation)
	return wishes{op.State, op.DispatchAttempt, op.ForcedAt != nil, status != nil && status.State.Terminal()}
}

// Calling notes that the step calls the operation's adapter until the returned function is called: a call that takes
// long gives the step's slot back.
func (c *Context) Calling() (done func()) { return c.engine.slots.Calling(c.Op) }
