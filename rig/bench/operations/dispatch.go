package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/rig/bench/dataset"
	"github.com/gpuaas/app-platform/rig/bench/kit"
	"github.com/gpuaas/app-platform/rig/bench/load"
	"github.com/gpuaas/app-platform/rig/bench/platform"
	"github.com/gpuaas/app-platform/rig/bench/process"
	"github.com/gpuaas/app-platform/rig/bench/reference"
)

// The bars of dispatch: of its latency, and the least of the hand-written loop's launches a second.
const (
	dispatchP50Bar = 1.2
	dispatchP99Bar = 1
	launchesBar    = 0.9
)

const (
	launchers = 16              // callers who launch, each of another tenant if there are as many
	endsIn    = 2 * time.Minute // after which operations that have not ended are a failure
	warmUp    = 25              // operations before anything counts, of throughput
	lookEvery = 50 * time.Millisecond
)

const launchDocument = `mutation Launch($input: LaunchInstanceInput!) { launchInstance(input: $input) { operation { id } } }`

// launches is one side of the dispatch benchmark.
type launches struct {
	role    process.Role
	request func(free dataset.Free, name string) []byte
}

// timing is what a round came to.
type timing struct {
	p50, p99   float64
	throughput float64 // operations a second, accepted to ended, when as many as can be are asked for
	commits    float64 // an operation, beginning to end
	synced     float64 // bytes of write-ahead log an operation
}

// measureDispatch accepts operations at a steady rate and sees when the adapter gets each; then as
// many as can be. The sides take turns, each with the queue to itself.
func measureDispatch(ctx context.Context, b *bench) error {
	dir, err := os.MkdirTemp("", "bench-adapter-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	adapter, err := process.Start(ctx, kit.AdapterRole,
		kit.AdapterConfig{Keys: b.Keys(), Issuer: kit.Issuer, StateDir: filepath.Join(dir, "state")})
	if err != nil {
		return err
	}
	defer adapter.Stop()
	var address string
	if err := adapter.Ask("address", nil, &address); err != nil {
		return err
	}
	if err := b.Set.AdapterAt(ctx, address); err != nil {
		return err
	}
	callers, err := b.Set.Callers(ctx, launchers)
	if err != nil {
		return err
	}
	var ours, theirs []timing
	for round := range b.Plan.Rounds {
		other, err := b.dispatches(ctx, adapter, callers, launches{reference.Role, plainLaunch}, round)
		if err != nil {
			return fmt.Errorf("reference: %w", err)
		}
		mine, err := b.dispatches(ctx, adapter, callers, launches{platform.Role, graphqlLaunch}, round)
		if err != nil {
			return fmt.Errorf("platform: %w", err)
		}
		ours, theirs = append(ours, mine), append(theirs, other)
		b.Log.Info("round", "of", "dispatch", "platform", time.Duration(mine.p50), "reference",
			time.Duration(other.p50))
	}
	b.reportDispatch(ours, theirs)
	return nil
}

func (b *bench) reportDispatch(ours, theirs []timing) {
	take := func(of func(timing) float64) *kit.Pairs {
		p := &kit.Pairs{}
		for i := range ours {
			p.Platform, p.Other = append(p.Platform, of(ours[i])), append(p.Other, of(theirs[i]))
		}
		return p
	}
	show := func(p *kit.Pairs, text func(float64) string) (string, string, float64) {
		return text(kit.Median(p.Platform)), text(kit.Median(p.Other)), p.Ratio()
	}
	duration := func(v float64) string { return kit.Millis(time.Duration(v)) }
	name := fmt.Sprintf("accepted to dispatched at %d operations/s, ", b.Plan.Rate)
	mine, other, ratio := show(take(func(t timing) float64 { return t.p50 }), duration)
	b.Sheet.AtMost(name+"p50", mine, other, ratio, dispatchP50Bar)
	mine, other, ratio = show(take(func(t timing) float64 { return t.p99 }), duration)
	b.Sheet.AtMost(name+"p99", mine, other, ratio, dispatchP99Bar)
	mine, other, ratio = show(take(func(t timing) float64 { return t.throughput }), func(v float64) string {
		return fmt.Sprintf("%.0f/s", v)
	})
	b.Sheet.AtLeast("operations from accepted to ended", mine, other, ratio, launchesBar)
	mine, other, ratio = show(take(func(t timing) float64 { return t.commits }), tenths)
	b.Sheet.Told("transactions an operation, from accepted to ended", mine, other, ratio)
	mine, other, ratio = show(take(func(t timing) float64 { return t.synced }), kit.Kib)
	b.Sheet.Told("write-ahead log an operation", mine, other, ratio)
}

// dispatches is one round of one side.
func (b *bench) dispatches(ctx context.Context, adapter *process.Child, callers []dataset.Caller, side launches,
	round int) (timing, error) {
	s, err := b.Serve(ctx, side.role, true)
	if err != nil {
		return timing{}, err
	}
	defer s.Stop()
	// PostgreSQL plans a statement again for each of a connection's first five uses. All connections are past that
	// before anything counts, on both sides.
	warm := b.Plan.Operations / 2
	free, err := b.Set.Allocations(ctx, callers, warm+2*b.Plan.Operations)
	if err != nil {
		return timing{}, err
	}
	l := &launcher{address: s.Address, atOnce: len(callers), request: side.request}
	if err := b.settle(ctx, func() error { return l.flood(ctx, free[:warm]) }); err != nil {
		return timing{}, err
	}
	if err := forget(adapter, s.Child); err != nil {
		return timing{}, err
	}
	free = free[warm:]
	before, err := b.Set.Written(ctx)
	if err != nil {
		return timing{}, err
	}
	paced := func() error {
		return b.settle(ctx, func() error { return l.steady(ctx, free[:b.Plan.Operations], b.Plan.Rate) })
	}
	if round == 0 && side.role == platform.Role {
		err = b.Profiled(s, "dispatch", paced)
	} else {
		err = paced()
	}
	if err != nil {
		return timing{}, err
	}
	after, err := b.Set.Written(ctx)
	if err != nil {
		return timing{}, err
	}
	out, err := latency(adapter, s.Child, b.Plan.Operations)
	if err != nil {
		return timing{}, err
	}
	n := float64(b.Plan.Operations)
	out.commits, out.synced = float64(after.Commits-before.Commits)/n, float64(after.Bytes-before.Bytes)/n
	began := time.Now()
	err = b.settle(ctx, func() error { return l.flood(ctx, free[b.Plan.Operations:]) })
	out.throughput = n / time.Since(began).Seconds()
	return out, errors.Join(err, forget(adapter, s.Child))
}

func forget(adapter, s *process.Child) error {
	return errors.Join(adapter.Ask("arrivals", nil, nil), s.Ask("accepted", nil, nil))
}

// settle runs do and waits until every operation has ended.
func (b *bench) settle(ctx context.Context, do func() error) error {
	if err := do(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, endsIn)
	defer cancel()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		open, err := b.Set.Open(ctx)
		if err != nil {
			return err
		}
		if open == 0 {
			return b.Set.Failed(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d operations have not ended: %w", open, ctx.Err())
		case <-look.C:
		}
	}
}

// latency compares when operations were accepted with when they arrived at the adapter.
func latency(adapter, s *process.Child, want int) (timing, error) {
	var accepted, arrived map[string]int64
	if err := errors.Join(s.Ask("accepted", nil, &accepted), adapter.Ask("arrivals", nil, &arrived)); err != nil {
		return timing{}, err
	}
	var all []time.Duration
	for id, at := range arrived {
		if since, ok := accepted[id]; ok {
			all = append(all, time.Duration(max(at-since, 0)))
		}
	}
	if len(all) != want {
		return timing{}, fmt.Errorf("%d of %d operations were seen on both ends", len(all), want)
	}
	return timing{p50: float64(load.Quantile(all, 0.5)), p99: float64(load.Quantile(all, 0.99))}, nil
}

// launcher sends requests to launch.
type launcher struct {
	address string
	atOnce  int
	request func(free dataset.Free, name string) []byte
}

// steady sends requests at a rate, however long the answers take.
func (l *launcher) steady(ctx context.Context, free []dataset.Free, rate int) error {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	failed := make(chan error, len(free))
	var running sync.WaitGroup
	for i := range free {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		running.Go(func() { failed <- l.launch(free[i]) })
	}
	running.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// flood asks from as many connections as there are callers, each again as soon as it is answered.
func (l *launcher) flood(ctx context.Context, free []dataset.Free) error {
	failed := make([]error, l.atOnce)
	var running sync.WaitGroup
	for c := range l.atOnce {
		running.Go(func() {
			for i := c; i < len(free) && ctx.Err() == nil && failed[c] == nil; i += l.atOnce {
				failed[c] = l.launch(free[i])
			}
		})
	}
	running.Wait()
	return errors.Join(failed...)
}

func (l *launcher) launch(free dataset.Free) error {
	body, err := load.Once(l.address, l.request(free, "l"+string(free.Allocation)[10:]))
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	var answer struct{ Errors json.RawMessage }
	if err := json.Unmarshal(body, &answer); err != nil || answer.Errors != nil {
		return fmt.Errorf("launch: %s: %w", body, err)
	}
	return nil
}

func graphqlLaunch(free dataset.Free, name string) []byte {
	return post("/graphql", free.Caller, map[string]any{"query": launchDocument,
		"variables": map[string]any{"input": map[string]any{
			"projectId": free.Project, "appSlug": dataset.App, "name": name, "allocationIds": []any{free.Allocation},
			"idempotencyKey": name,
		}}})
}

func plainLaunch(free dataset.Free, name string) []byte {
	return post("/launch", free.Caller, reference.Launch{Project: string(free.Project),
		Allocation: string(free.Allocation), Name: name, Key: name})
}

func post(path string, who dataset.Caller, value any) []byte {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // strings always encode
	}
	return fmt.Appendf(nil,
		"POST %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Accept: application/json\r\nContent-Length: %d\r\n\r\n%s", path, who.Token, len(body), body)
}
