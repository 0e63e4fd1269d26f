package operations

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/process"
)

// What operations that wait for their adapter may cost, however many there are.
const (
	waitingGoroutines  = 100 // beyond those of a worker without operations
	waitingConnections = 20  // of the workers to the database, and to the adapter
	waitingQuestions   = 20  // to the adapter for the status of single operations, a second
	waitingPolls       = 2   // to the adapter for its feed, a second
)

// cost is what a worker takes at a moment.
type cost struct {
	goroutines, connections int
	adapter                 kit.Counts
}

// measureWaiting has operations accepted by an adapter that does not end them, and sees what they cost
// while they wait; then the adapter ends them all.
func measureWaiting(ctx context.Context, b *bench, m machine) error {
	idle, err := b.cost(ctx, m.server.Child, m.adapter)
	if err != nil {
		return err
	}
	if err := m.adapter.Ask("hold", true, nil); err != nil {
		return err
	}
	if err := b.backlog(ctx, b.Plan.Waiting); err != nil {
		return err
	}
	if err := b.allWait(ctx, m.adapter, idle.adapter.Dispatches+int64(b.Plan.Waiting)); err != nil {
		return err
	}
	began := time.Now()
	before, err := b.cost(ctx, m.server.Child, m.adapter)
	if err != nil {
		return err
	}
	if err := pause(ctx, b.Plan.Wait); err != nil {
		return err
	}
	after, err := b.cost(ctx, m.server.Child, m.adapter)
	if err != nil {
		return err
	}
	b.reportWaiting(idle, before, after, time.Since(began))
	if err := m.adapter.Ask("hold", false, nil); err != nil {
		return err
	}
	if err := b.down(ctx, 0); err != nil {
		return err
	}
	return nil
}

// allWait waits until so many operations were dispatched and no worker holds any.
func (b *bench) allWait(ctx context.Context, adapter *process.Child, dispatched int64) error {
	ctx, cancel := context.WithTimeout(ctx, 2*endsIn)
	defer cancel()
	for {
		var seen kit.Counts
		if err := adapter.Ask("counts", nil, &seen); err != nil {
			return err
		}
		held, err := b.Set.Held(ctx)
		if err != nil {
			return err
		}
		if seen.Dispatches == dispatched && held == 0 {
			return nil
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("%d of %d operations dispatched, %d claimed: %w", seen.Dispatches, dispatched, held, err)
		}
	}
}

func (b *bench) cost(ctx context.Context, worker, adapter *process.Child) (c cost, err error) {
	if err = worker.Ask("goroutines", nil, &c.goroutines); err == nil {
		err = adapter.Ask("counts", nil, &c.adapter)
	}
	if err == nil {
		c.connections, err = b.Set.WorkerConnections(ctx)
	}
	return c, err
}

func (b *bench) reportWaiting(idle, before, after cost, span time.Duration) {
	n, extra := b.Plan.Waiting, max(before.goroutines, after.goroutines)-idle.goroutines
	name := func(what string) string { return fmt.Sprintf("%d operations that wait for an adapter: %s", n, what) }
	b.Sheet.Within(name("goroutines more than with none"), fmt.Sprint(extra), fmt.Sprintf("≤ %d", waitingGoroutines),
		extra <= waitingGoroutines)
	b.Sheet.Within(name("connections to the database"), fmt.Sprint(after.connections),
		fmt.Sprintf("≤ %d", waitingConnections), after.connections <= waitingConnections)
	b.Sheet.Within(name("connections to the adapter"), fmt.Sprint(after.adapter.Connections),
		fmt.Sprintf("≤ %d", waitingConnections),
		after.adapter.Connections <= waitingConnections)
	questions := float64(after.adapter.Questions-before.adapter.Questions) / span.Seconds()
	polls := float64(after.adapter.Polls-before.adapter.Polls) / span.Seconds()
	b.Sheet.Within(name("questions to the adapter"), fmt.Sprintf("%.1f/s", questions),
		fmt.Sprintf("≤ %d/s", waitingQuestions), questions <= waitingQuestions)
	b.Sheet.Within(name("polls of its feed"), fmt.Sprintf("%.1f/s", polls), fmt.Sprintf("≤ %d/s", waitingPolls),
		polls <= waitingPolls)
}

// pause waits for a while.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
