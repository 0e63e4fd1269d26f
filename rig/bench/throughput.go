package main

import (
	"context"
	"fmt"

	"github.com/gpuaas/app-platform/rig/bench/platform"
	"github.com/gpuaas/app-platform/rig/bench/process"
	"github.com/gpuaas/app-platform/rig/bench/reference"
)

// throughputBar is the least of the hand-written loop's operations a second.
const throughputBar = 0.5

// measureThroughput carries a backlog of accepted launches out: to the adapter, which does nothing,
// and to their end. The sides take turns, each with the queue to itself.
func measureThroughput(ctx context.Context, b *bench) error {
	adapter, err := b.noop(ctx)
	if err != nil {
		return err
	}
	defer adapter.Stop()
	rate, commits, log := &pairs{}, &pairs{}, &pairs{}
	for round := range b.plan.rounds {
		for _, side := range []process.Role{reference.Role, platform.Role} {
			out, err := b.drain(ctx, side, 1, round)
			if err != nil {
				return fmt.Errorf("%s: %w", side, err)
			}
			if side == platform.Role {
				rate.platform, commits.platform, log.platform = append(rate.platform, out.throughput), append(commits.platform, out.commits), append(log.platform, out.synced)
			} else {
				rate.other, commits.other, log.other = append(rate.other, out.throughput), append(commits.other, out.commits), append(log.other, out.synced)
			}
		}
		b.log.Info("round", "of", "throughput", "platform", rate.platform[round], "reference", rate.other[round])
	}
	b.sheet.atLeast("operations from accepted to succeeded, one worker process", perSecond(median(rate.platform)), perSecond(median(rate.other)), rate.ratio(), throughputBar)
	b.sheet.told("its transactions an operation", fmt.Sprintf("%.1f", median(commits.platform)), fmt.Sprintf("%.1f", median(commits.other)), commits.ratio())
	b.sheet.told("its write-ahead log an operation", kib(median(log.platform)), kib(median(log.other)), log.ratio())
	return nil
}

// noop starts the adapter that does nothing and registers it.
func (b *bench) noop(ctx context.Context) (*process.Child, error) {
	child, err := process.Start(ctx, noopRole, adapterConfig{Keys: b.keys(), Issuer: issuer})
	if err != nil {
		return nil, err
	}
	var address string
	if err = child.Ask("address", nil, &address); err == nil {
		err = b.set.AdapterAt(ctx, address)
	}
	if err != nil {
		child.Stop()
		return nil, err
	}
	return child, nil
}

// drain carries a backlog out with so many processes of a side.
func (b *bench) drain(ctx context.Context, side process.Role, processes, round int) (timing, error) {
	var first *server
	for i := range processes {
		s, err := b.serve(ctx, side, true)
		if err != nil {
			return timing{}, err
		}
		defer s.Stop()
		if i == 0 {
			first = s
		}
	}
	if err := b.settle(ctx, func() error { return b.backlog(ctx, b.plan.backlog/5) }); err != nil {
		return timing{}, err
	}
	var out timing
	run := func() (err error) {
		out, err = b.drainOnce(ctx)
		return err
	}
	if round == 0 {
		return out, b.profiled(first, fmt.Sprintf("drain-%s-%d", side, processes), run)
	}
	return out, run()
}

func (b *bench) backlog(ctx context.Context, n int) error {
	_, err := b.set.Backlog(ctx, n, 0, b.set.Size.ProjectsInAll())
	return err
}

// drainOnce times one backlog.
func (b *bench) drainOnce(ctx context.Context) (out timing, err error) {
	made, err := b.set.Backlog(ctx, b.plan.backlog, 0, b.set.Size.ProjectsInAll())
	if err != nil {
		return out, err
	}
	before, err := b.set.Written(ctx)
	if err != nil {
		return out, err
	}
	if err := b.settle(ctx, func() error { return nil }); err != nil {
		return out, err
	}
	after, err := b.set.Written(ctx)
	if err != nil {
		return out, err
	}
	took, err := b.set.Span(ctx, made)
	n := float64(len(made))
	out.throughput, out.commits, out.synced = n/took.Seconds(), float64(after.Commits-before.Commits)/n, float64(after.Bytes-before.Bytes)/n
	return out, err
}
