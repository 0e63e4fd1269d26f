package operations

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/platform"
	"github.com/gpuaas/app-platform/rig/bench/reference"
)

// workersBar is the least that three worker processes do of what one does: no less, but for the noise of
// a machine on which all of them, the database, the adapter and the bench share two cores.
const workersBar = 0.95

// measureWorkers carries backlogs out with one worker process and with three.
func measureWorkers(ctx context.Context, b *bench) error {
	adapter, err := b.noop(ctx)
	if err != nil {
		return err
	}
	defer adapter.Stop()
	rate, loop := &kit.Pairs{}, &kit.Pairs{}
	for round := range b.Plan.Rounds {
		one, err := b.drain(ctx, platform.Role, 1, round)
		if err != nil {
			return fmt.Errorf("one process: %w", err)
		}
		three, err := b.drain(ctx, platform.Role, 3, round)
		if err != nil {
			return fmt.Errorf("three processes: %w", err)
		}
		hand, err := b.drain(ctx, reference.Role, 1, round)
		if err != nil {
			return fmt.Errorf("by hand: %w", err)
		}
		loop.Platform, loop.Other = append(loop.Platform, three.throughput), append(loop.Other, hand.throughput)
		rate.Platform, rate.Other = append(rate.Platform, three.throughput), append(rate.Other, one.throughput)
		b.Log.Info("round", "of", "workers", "three", three.throughput, "one", one.throughput, "by hand",
			hand.throughput)
	}
	var seen kit.Counts
	if err := adapter.Ask("counts", nil, &seen); err != nil {
		return err
	}
	b.Sheet.AtLeast("operations a second of three worker processes, beside one", perSecond(kit.Median(rate.Platform)),
		perSecond(kit.Median(rate.Other)), rate.Ratio(), workersBar)
	b.Sheet.Told("the same, beside the hand-written loop", perSecond(kit.Median(loop.Platform)),
		perSecond(kit.Median(loop.Other)), loop.Ratio())
	b.Sheet.Within("operations sent to the adapter more than once", fmt.Sprint(seen.Again), "0", seen.Again == 0)
	return nil
}

func perSecond(v float64) string { return fmt.Sprintf("%.0f/s", v) }
