package cli

import (
	"context"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// standStill is how long an operation may show nothing new before its blockers are asked for.
const standStill = 5 * time.Second

// whileStill is seen's observer with a watch beside it: whenever nothing new came for a while, the operation is read
// for its blockers, of which the first is shown. What cannot be read is not shown, as the feed tells of outages. The
// watch ends with stop, which may be called twice.
func (t *tool) whileStill(ctx context.Context, c *client.Client, id string, seen observer) (see func(*gql.OperationDetail), stop func()) {
	if seen.stuck == nil {
		return seen.see, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	pause := t.Env.StandStill
	if pause == 0 {
		pause = standStill
	}
	var mu sync.Mutex
	over := false
	moved := make(chan struct{}, 1)
	tell := func(op *gql.OperationDetail) {
		mu.Lock()
		defer mu.Unlock()
		if !over && len(op.Blockers) > 0 && !client.Ended(op.State) {
			seen.stuck(&op.Blockers[0])
		}
	}
	go func() {
		defer close(done)
		for still(ctx, moved, pause) {
			if answer, err := gql.GetOperation(ctx, c, id); err == nil {
				tell(&answer.Operation)
			}
		}
	}()
	see = func(op *gql.OperationDetail) {
		mu.Lock()
		defer mu.Unlock()
		over = client.Ended(op.State)
		seen.see(op)
		select {
		case moved <- struct{}{}:
		default:
		}
	}
	return see, func() {
		cancel()
		<-done
	}
}

// still waits until nothing has moved for the pause; false when the context ended.
func still(ctx context.Context, moved <-chan struct{}, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-moved:
			timer.Reset(pause)
		case <-timer.C:
			return true
		}
	}
}
