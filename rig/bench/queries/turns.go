package queries

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/load"
	"github.com/gpuaas/app-platform/rig/bench/platform"
	"github.com/gpuaas/app-platform/rig/bench/process"
)

// side is one of the servers that answer a query in turns.
type side struct {
	name        string
	role        process.Role
	read, write func(of target) []byte
	config      any                             // the platform's, if nil
	compare     func(mine, answer []byte) error // same, if nil
	open        bool                            // it knows no callers, and so refuses no stranger
	bar         float64                         // of requests a second, the platform's beside it
	warm        int                             // how many rounds warm it up; 0 for one
	server      *kit.Server                     // set by open
}

// once sends one request and returns the answer.
func (s *side) once(request []byte) ([]byte, error) {
	body, err := load.Once(s.server.Address, request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return body, nil
}

// open starts every side's server. Call stop in any case.
func (b bench) open(ctx context.Context, sides []side) (stop func(), err error) {
	stop = func() {
		for _, one := range sides {
			if one.server != nil {
				one.server.Stop()
			}
		}
	}
	for i := range sides {
		if sides[i].server, err = b.start(ctx, sides[i]); err != nil {
			return stop, fmt.Errorf("%s: %w", sides[i].name, err)
		}
	}
	return stop, nil
}

func (b bench) start(ctx context.Context, one side) (*kit.Server, error) {
	if one.config == nil {
		return b.Serve(ctx, one.role, false)
	}
	return b.Child(ctx, one.role, one.config)
}

// came is what a side came to, round by round.
type came struct {
	rates       []float64
	slow, wrote []time.Duration
	// before and after are of the platform: its answers when it was warm, and at the end.
	before, after platform.Answers
}

func (c *came) add(r load.Result) {
	c.rates, c.slow, c.wrote = append(c.rates, r.Rate()), append(c.slow, r.P99), append(c.wrote, r.WriteP50)
}

func (c came) rate() string { return fmt.Sprintf("%.0f/s", kit.Median(c.rates)) }

func (c came) p99() string { return kit.Millis(kit.Median(c.slow)) }

func (c came) write() string { return kit.Millis(kit.Median(c.wrote)) }

func (c came) writesBeside(other came) float64 {
	return float64(kit.Median(c.wrote)) / float64(kit.Median(other.wrote))
}

// beside returns the ratios of requests a second, by pairs, and of p99.
func (c came) beside(other came) (rates, p99 float64) {
	pairs := kit.Pairs{Platform: c.rates, Other: other.rates}
	return pairs.Ratio(), float64(kit.Median(c.slow)) / float64(kit.Median(other.slow))
}

// turns lets the sides answer in turns, round by round. The first round warms up and does not count. A side that keeps
// answers warms up several times, since a server that has run for an hour has answered most of its requests before.
func (b bench) turns(ctx context.Context, q query, sides []side) ([]came, error) {
	all := make([]came, len(sides))
	for _, one := range sides {
		for range one.warm - 1 {
			if _, err := b.ask(ctx, q, one); err != nil {
				return nil, fmt.Errorf("%s: %w", one.name, err)
			}
		}
	}
	for round := range b.Plan.Rounds + 1 {
		if round == 1 {
			if err := b.hits(sides[0], &all[0].before); err != nil {
				return nil, err
			}
		}
		for i, one := range sides {
			result, err := b.ask(ctx, q, one)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.name, err)
			}
			b.Log.Info("round", "of", q.name, "side", one.name, "rate", int(result.Rate()), "warm-up", round == 0)
			if round > 0 {
				all[i].add(result)
			}
		}
	}
	return all, b.hits(sides[0], &all[0].after)
}

// hits asks the platform how many answers it has shown again so far.
func (b bench) hits(one side, into *platform.Answers) error {
	return one.server.Ask("answers", nil, into)
}

// hitRate is the part of the answers that can be kept that was shown again while it counted.
func (c came) hitRate() string {
	shown, read := c.after.Shown-c.before.Shown, c.after.Read-c.before.Read
	return fmt.Sprintf("%.0f %%", 100*float64(shown)/float64(max(shown+read, 1)))
}

// ask keeps one side busy for a round.
func (b bench) ask(ctx context.Context, q query, one side) (load.Result, error) {
	requests := func(int, int) load.Request {
		of := q.pick()
		if q.writes && rand.IntN(100) < writing {
			return load.Request{Bytes: one.write(of), Writes: true}
		}
		return load.Request{Bytes: one.read(of)}
	}
	all := load.HTTP{Address: one.server.Address, Connections: b.Plan.Connections, Requests: requests}
	return all.Run(ctx, b.Plan.Span)
}

// smallest is the shortest answer that has rows in it, in bytes.
const smallest = 200

// sameAnswers proves that all sides say the same, up to white space and the order of keys, before and after each has
// changed an instance, and returns the length of an answer of the platform, in bytes. A stranger must get nothing of
// the references.
func (b bench) sameAnswers(q query, sides []side) (size int, err error) {
	for n := range max(b.Plan.Callers, len(sides)) {
		of := q.pick()
		mine, err := agree(of, sides)
		if err != nil {
			return 0, err
		}
		writer := &sides[n%len(sides)]
		if q.writes {
			if _, err := writer.once(writer.write(of)); err != nil {
				return 0, err
			}
			after, err := agree(of, sides)
			if err != nil {
				return 0, fmt.Errorf("after a write by %s: %w", writer.name, err)
			}
			if of.id == of.instance && same(mine, after) == nil {
				return 0, fmt.Errorf("%s answers a write that changes nothing", writer.name)
			}
		}
		if size = len(mine); size < smallest {
			return 0, fmt.Errorf("the answer is nearly empty: %s", mine)
		}
	}
	if q.everybody {
		return size, nil
	}
	return size, b.refused(q, sides[1:])
}

// agree has all sides answer one request, and returns the answer.
func agree(of target, sides []side) (mine []byte, err error) {
	if mine, err = sides[0].once(sides[0].read(of)); err != nil {
		return nil, err
	}
	for _, other := range sides[1:] {
		answer, err := other.once(other.read(of))
		if err != nil {
			return nil, err
		}
		compare := same
		if other.compare != nil {
			compare = other.compare
		}
		if err := compare(mine, answer); err != nil {
			return nil, fmt.Errorf("%s: %w", other.name, err)
		}
	}
	return mine, nil
}

// refused sends what another tenant's caller may not read, nor change.
func (b bench) refused(q query, sides []side) error {
	of := q.pick()
	stranger := of
	for b.Set.Tenant(stranger.who) == b.Set.Tenant(of.who) {
		stranger = q.pick()
	}
	of.who = stranger.who
	for _, one := range sides {
		if one.open || one.role == platform.Role { // that refuses within an answer, which its own tests see
			continue
		}
		for _, request := range [][]byte{one.read(of), one.write(of)} {
			if _, err := one.once(request); err == nil {
				return fmt.Errorf("%s answers a caller without access", one.name)
			}
		}
	}
	return nil
}
