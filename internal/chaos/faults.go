package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/internal/supervise"
)

// fault is something that goes wrong.
type fault struct {
	name string
	do   func(ctx context.Context, rng *rand.Rand) error
}

// possible is the table of what can go wrong. A killed program is started again by its supervisor.
func (s *Suite) possible() []fault {
	servers := append([]*supervise.Child{s.stack.Server}, s.stack.Others...)
	table := []fault{
		{"kill a server", func(_ context.Context, rng *rand.Rand) error { return kill(servers[rng.IntN(len(servers))]) }},
		{"stop a server", func(ctx context.Context, rng *rand.Rand) error { return servers[rng.IntN(len(servers))].Restart(ctx) }},
		{"kill the adapter", func(context.Context, *rand.Rand) error { return kill(s.stack.Controllers["chaos"]) }},
		{"kill an agent", func(_ context.Context, rng *rand.Rand) error {
			return kill(s.stack.Nodes[rng.IntN(len(s.stack.Nodes))].Agent)
		}},
		{"crash the database", func(ctx context.Context, _ *rand.Rand) error { return s.stack.CrashDatabase(ctx) }},
	}
	if s.stack.Network() != nil {
		table = append(table, fault{"cut a node's network", s.cutNetwork})
	}
	return table
}

func kill(child *supervise.Child) error { return child.Signal(syscall.SIGKILL) }

// cutNetwork takes a node off the network for a while shorter than what makes it count as offline, or
// a little longer.
func (s *Suite) cutNetwork(ctx context.Context, rng *rand.Rand) error {
	node := s.stack.Nodes[rng.IntN(len(s.stack.Nodes))]
	if err := node.CutNetwork(ctx); err != nil {
		return err
	}
	timer := time.NewTimer(time.Duration(1+rng.IntN(4)) * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return node.RestoreNetwork(context.WithoutCancel(ctx))
}

// harm does one fault after the other until ctx ends: each once in a random order, then any.
func (s *Suite) harm(ctx context.Context) {
	rng, table := s.rng(1), s.possible()
	order := rng.Perm(len(table))
	pause := time.NewTicker(s.Between)
	defer pause.Stop()
	for round := 0; ; round++ {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		next := table[rng.IntN(len(table))]
		if round < len(order) {
			next = table[order[round]]
		}
		err := next.do(ctx, rng)
		s.mu.Lock()
		s.faults = append(s.faults, next.name)
		s.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			s.say("fault %q: %v", next.name, err)
		}
	}
}

// heal waits until every part is there again.
func (s *Suite) heal(ctx context.Context) error {
	for _, node := range s.stack.Nodes {
		if s.stack.Network() == nil {
			break
		}
		if err := node.RestoreNetwork(ctx); err != nil {
			return fmt.Errorf("restore the network of %s: %w", node.Name(), err)
		}
	}
	return s.stack.AwaitReady(ctx)
}
