package operations

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/command"
	"github.com/gpuaas/app-platform/sdk/client"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// standStill is how long an operation may show nothing new before its blockers are read.
const standStill = 5 * time.Second

// whileStill returns seen's observer with a watch beside it: whenever nothing new came for a while, the operation is
// read for its blockers, of which the first is shown. What cannot be read is not shown, as the feed reports outages
// itself. The watch ends with stop, which may be called twice.
func whileStill(
	ctx context.Context, t *command.Tool, id string, seen observer,
) (see func(*gql.OperationDetail), stop func()) {
	if seen.stuck == nil {
		return seen.see, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	watched := stillness{seen: seen, moved: make(chan struct{}, 1)}
	go func() {
		defer close(done)
		for still(ctx, watched.moved, cmp.Or(t.Env.StandStill, standStill)) {
			if answer, err := gql.GetOperation(ctx, t, id); err == nil {
				watched.tell(&answer.Operation)
			}
		}
	}()
	return watched.see, func() {
		cancel()
		<-done
	}
}

// A stillness is an operation that is watched for standing still. Its mutex keeps a blocker from being shown after the
// operation's end.
type stillness struct {
	seen  observer
	moved chan struct{}

	mu   sync.Mutex
	over bool
}

// tell passes the operation's first blocker to the observer, unless the operation has ended.
func (s *stillness) tell(op *gql.OperationDetail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over && len(op.Blockers) > 0 && !client.Ended(op.State) {
		s.seen.stuck(&op.Blockers[0])
	}
}

// see shows the operation's change, and begins the pause again.
func (s *stillness) see(op *gql.OperationDetail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = client.Ended(op.State)
	s.seen.see(op)
	select {
	case s.moved <- struct{}{}:
	default:
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
