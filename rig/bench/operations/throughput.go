package operations

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/platform"
	"github.com/gpuaas/app-platform/rig/bench/process"
	"github.com/gpuaas/app-platform/rig/bench/reference"
)

// The bars of throughput: the least of the hand-written loop's operations a second, and the most transactions that
// write, and bytes of write-ahead log, that an operation may cost.
const (
	throughputBar = 0.95
	commitsBar    = 2.0
	logBar        = 12 << 10
)

// measureThroughput carries a backlog of accepted launches out: to the adapter, which does nothing,
// and to their end. The sides take turns, each with the queue to itself.
func measureThroughput(ctx context.Context, b *bench) error {
	adapter, err := b.noop(ctx)
	if err != nil {
		return err
	}
	defer adapter.Stop()
	rate, commits, log := &kit.Pairs{}, &kit.Pairs{}, &kit.Pairs{}
	for round := range b.Plan.Rounds {
		for _, side := range []process.Role{reference.Role, platform.Role} {
			out, err := b.drain(ctx, side, 1, round)
			if err != nil {
				return fmt.Errorf("%s: %w", side, err)
			}
			if side == platform.Role {
				rate.Platform, commits.Platform, log.Platform = append(rate.Platform, out.throughput),
					append(commits.Platform, out.commits), append(log.Platform, out.synced)
			} else {
				rate.Other, commits.Other, log.Other = append(rate.Other, out.throughput),
					append(commits.Other, out.commits), append(log.Other, out.synced)
			}
		}
		b.Log.Info("round", "of", "throughput", "platform", rate.Platform[round], "reference", rate.Other[round])
	}
	b.Sheet.AtLeast("operations from accepted to succeeded, one worker process", perSecond(kit.Median(rate.Platform)),
		perSecond(kit.Median(rate.Other)), rate.Ratio(), throughputBar)
	b.Sheet.Bounded("its transactions an operation", commits, tenths, commitsBar)
	b.Sheet.Bounded("its write-ahead log an operation", log, kit.Kib, logBar)
	return nil
}

// tenths writes a count with one decimal.
func tenths(v float64) string { return fmt.Sprintf("%.1f", v) }

// noop starts the adapter that does nothing and registers it.
func (b *bench) noop(ctx context.Context) (*process.Child, error) {
	child, err := process.Start(ctx, kit.NoopRole, kit.AdapterConfig{Keys: b.Keys(), Issuer: kit.Issuer})
	if err != nil {
		return nil, err
	}
	var address string
	if err = child.Ask("address", nil, &address); err == nil {
		err = b.Set.AdapterAt(ctx, address)
	}
	if err != nil {
		child.Stop()
		return nil, err
	}
	return child, nil
}

// drain carries a backlog out with so many processes of a side.
func (b *bench) drain(ctx context.Context, side process.Role, processes, round int) (timing, error) {
	var first *kit.Server
	for i := range processes {
		s, err := b.Serve(ctx, side, true)
		if err != nil {
			return timing{}, err
		}
		defer s.Stop()
		if i == 0 {
			first = s
		}
	}
	if err := b.settle(ctx, func() error { return b.backlog(ctx, b.Plan.Backlog/5) }); err != nil {
		return timing{}, err
	}
	var out timing
	run := func() (err error) {
		out, err = b.drainOnce(ctx)
		return err
	}
	if round == 0 {
		return out, b.Profiled(first, fmt.Sprintf("drain-%s-%d", side, processes), run)
	}
	return out, run()
}

func (b *bench) backlog(ctx context.Context, n int) error {
	_, err := b.Set.Backlog(ctx, n, 0, b.Set.Size.ProjectsInAll())
	return err
}

// drainOnce times one backlog.
func (b *bench) drainOnce(ctx context.Context) (out timing, err error) {
	made, err := b.Set.Backlog(ctx, b.Plan.Backlog, 0, b.Set.Size.ProjectsInAll())
	if err != nil {
		return out, err
	}
	before, err := b.Set.Written(ctx)
	if err != nil {
		return out, err
	}
	if err := b.settle(ctx, func() error { return nil }); err != nil {
		return out, err
	}
	after, err := b.Set.Written(ctx)
	if err != nil {
		return out, err
	}
	took, err := b.Set.Span(ctx, made)
	n := float64(len(made))
	out.throughput, out.commits, out.synced = n/took.Seconds(), float64(after.Commits-before.Commits)/n,
		float64(after.Bytes-before.Bytes)/n
	return out, err
}
