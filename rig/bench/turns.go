package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/load"
	"github.com/gpuaas/app-platform/rig/bench/process"
)

// side is one of the servers that answer a query in turns.
type side struct {
	name    string
	role    process.Role
	request func(who dataset.Caller, id string) []byte
	server  *kit.Server // set by open
}

// once sends one request and returns the answer.
func (s *side) once(who dataset.Caller, id string) ([]byte, error) {
	body, err := load.Once(s.server.Address, s.request(who, id))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return body, nil
}

// open starts every side's server. Call stop in any case.
func (b *bench) open(ctx context.Context, sides []side) (stop func(), err error) {
	stop = func() {
		for _, one := range sides {
			if one.server != nil {
				one.server.Stop()
			}
		}
	}
	for i := range sides {
		if sides[i].server, err = b.Serve(ctx, sides[i].role, false); err != nil {
			return stop, fmt.Errorf("%s: %w", sides[i].name, err)
		}
	}
	return stop, nil
}

// came is what a side came to, round by round.
type came struct {
	rates []float64
	slow  []time.Duration
}

func (c came) rate() string { return fmt.Sprintf("%.0f/s", kit.Median(c.rates)) }

func (c came) p99() string { return kit.Millis(kit.Median(c.slow)) }

// beside returns the ratios of requests a second, by pairs, and of p99.
func (c came) beside(other came) (rates, p99 float64) {
	pairs := kit.Pairs{Platform: c.rates, Other: other.rates}
	return pairs.Ratio(), float64(kit.Median(c.slow)) / float64(kit.Median(other.slow))
}

// turns lets the sides answer in turns, round by round. The first round warms up and does not count.
func (b *bench) turns(ctx context.Context, q query, callers []dataset.Caller, sides []side) ([]came, error) {
	all := make([]came, len(sides))
	for round := range b.Plan.Rounds + 1 {
		for i, one := range sides {
			result, err := b.ask(ctx, q, callers, one)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.name, err)
			}
			b.Log.Info("round", "of", q.name, "side", one.name, "rate", int(result.Rate()), "warm-up", round == 0)
			if round > 0 {
				all[i].rates, all[i].slow = append(all[i].rates, result.Rate()), append(all[i].slow, result.P99)
			}
		}
	}
	return all, nil
}

// ask keeps one side busy for a round.
func (b *bench) ask(ctx context.Context, q query, callers []dataset.Caller, one side) (load.Result, error) {
	requests := func(connection, n int) []byte {
		who := callers[connection%len(callers)]
		return one.request(who, q.id(who, n))
	}
	all := load.HTTP{Address: one.server.Address, Connections: b.Plan.Connections, Requests: requests}
	return all.Run(ctx, b.Plan.Span)
}
