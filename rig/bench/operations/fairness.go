package operations

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/load"
)

// lonelyBar is the longest that a tenant's only operation may take, median, while another tenant's
// backlog runs, beside the time that the backlog takes by itself; and the least time that it may take
// anyway.
const (
	lonelyBar   = 0.02
	lonelyFloor = 500 * time.Millisecond
	lonely      = 15 // operations, one after the other
)

// measureFairness lets one tenant have a backlog and another now and then a single operation.
func measureFairness(ctx context.Context, b *bench, _ machine) error {
	alone, err := b.lonely(ctx, 0)
	if err != nil {
		return err
	}
	big, err := b.Set.Backlog(ctx, b.Plan.Waiting, 0, 1)
	if err != nil {
		return err
	}
	if err := b.down(ctx, len(big)-1); err != nil { // it has begun
		return err
	}
	beside, err := b.lonely(ctx, 1)
	if err != nil {
		return err
	}
	if err := b.down(ctx, 0); err != nil {
		return err
	}
	took, err := b.Set.Span(ctx, big)
	if err != nil {
		return err
	}
	b.Log.Info("fairness", "backlog took", took, "lonely operations", beside)
	bar := max(time.Duration(lonelyBar*float64(took)), lonelyFloor)
	b.Sheet.Within(fmt.Sprintf("a tenant's only operation, accepted to succeeded, while another's %d take %s", len(big),
		took.Round(time.Second)),
		kit.Millis(load.Quantile(beside, 0.5))+", "+kit.Millis(load.Quantile(beside, 1))+" at most",
		"≤ "+kit.Millis(bar),
		load.Quantile(beside, 0.5) <= bar)
	b.Sheet.Told("the same without other operations", kit.Millis(load.Quantile(alone, 0.5)), "", 0)
	return nil
}

// lonely has single operations of another tenant carried out, one after the other, while at least so
// many others are open, and answers how long each took.
func (b *bench) lonely(ctx context.Context, others int) (took []time.Duration, err error) {
	project := b.Set.Size.ProjectsInAll() - 1 // the last tenant's
	for range lonely {
		open, err := b.Set.Open(ctx)
		if err != nil {
			return nil, err
		}
		if open < others {
			return took, nil // the backlog is done: what was seen so far counts
		}
		one, err := b.Set.Backlog(ctx, 1, project, 1)
		if err != nil {
			return nil, err
		}
		if err := b.Set.Wake(ctx); err != nil {
			return nil, err
		}
		span, err := b.Set.Ended(ctx, one[0], endsIn)
		if err != nil {
			return nil, err
		}
		took = append(took, span)
	}
	return took, nil
}
