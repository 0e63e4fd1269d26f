package graph

import (
	"context"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/internal/tx"
	"github.com/gpuaas/app-platform/service/event"
	"github.com/gpuaas/app-platform/service/operation"
)

// progressLook is how often a watcher looks by itself; wake-ups are hints.
const progressLook = 10 * time.Second

// Progress watches single operations.
type Progress struct {
	DB  *tx.DB
	Hub *event.Hub
}

// Watch sends the operation as it is, then each time it has changed, and closes after its end. It
// reads as the caller of ctx each time, so a right that is gone ends it.
func (p *Progress) Watch(ctx context.Context, id ids.ID) (<-chan *operation.View, error) {
	waiter := p.Hub.Wait(event.OperationTopic(id))
	current, err := operation.Get(ctx, p.DB, id)
	if err != nil {
		waiter.Close()
		return nil, err
	}
	out := make(chan *operation.View, 1)
	go func() {
		defer close(out)
		defer waiter.Close()
		p.follow(ctx, current, waiter, out)
	}()
	return out, nil
}

func (p *Progress) follow(ctx context.Context, current *operation.View, waiter *event.Waiter, out chan<- *operation.View) {
	look := time.NewTicker(progressLook)
	defer look.Stop()
	for {
		select {
		case out <- current:
		case <-ctx.Done():
			return
		}
		if current.EndedAt != nil {
			return
		}
		if current = p.next(ctx, current, waiter, look.C); current == nil {
			return
		}
	}
}

// next waits until the operation differs from what was sent; nil when the watch is over.
func (p *Progress) next(ctx context.Context, sent *operation.View, waiter *event.Waiter, look <-chan time.Time) *operation.View {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-waiter.C:
		case <-look:
		}
		now, err := operation.Get(ctx, p.DB, sent.ID)
		if err != nil {
			return nil
		}
		if changed(sent, now) {
			return now
		}
	}
}

// changed says whether a watcher would see a difference.
func changed(before, after *operation.View) bool {
	a, b := before.Operation, after.Operation
	return a.State != b.State || a.Phase != b.Phase || a.Percent != b.Percent || a.Message != b.Message ||
		a.DispatchAttempt != b.DispatchAttempt || a.ClaimEpoch != b.ClaimEpoch || (a.EndedAt == nil) != (b.EndedAt == nil)
}
