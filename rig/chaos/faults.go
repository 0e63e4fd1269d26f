package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/gpuaas/app-platform/internal/supervise"
	"github.com/gpuaas/app-platform/rig/install"
	"github.com/gpuaas/app-platform/rig/stack"
)

// fault is something that goes wrong.
type fault struct {
	name string
	do   func(ctx context.Context, rng *rand.Rand) error
}

// possible is the table of what can go wrong. A killed program is started again by its supervisor.
func (s *Suite) possible() []fault {
	table := []fault{
		{"kill a server", func(_ context.Context, rng *rand.Rand) error { return kill(one(rng, s.servers())) }},
		{"stop a server", s.stopServer},
		{"freeze a server", s.freeze},
		{"halt the adapter", s.haltAdapter},
		{"slow the adapter", s.slowAdapter},
		{"halt an agent", s.haltAgent},
		{"kill the adapter", func(context.Context, *rand.Rand) error { return kill(s.stack.Controllers["chaos"]) }},
		{"kill an agent", func(_ context.Context, rng *rand.Rand) error { return kill(one(rng, s.stack.Nodes).Agent) }},
		{"crash the database", func(ctx context.Context, _ *rand.Rand) error {
			// it is there again, also when this was the last fault
			return s.stack.CrashDatabase(context.WithoutCancel(ctx))
		}},
	}
	if len(s.Servers) > 0 {
		table = append(table, fault{"turn a server's clock", s.turnClock})
	}
	if len(s.Builds) > 1 {
		table = append(table, fault{"change a server's build", s.changeBuild})
	}
	if s.stack.Network() != nil {
		table = append(table, fault{"cut a node's network", s.cutNetwork})
	}
	if s.AdapterDisk != nil {
		table = append(table, fault{"fill the adapter's disk", s.fillAdapter})
	}
	if len(s.NodeDisks) > 0 {
		table = append(table, fault{"fill a node's disk", s.fillNode})
	}
	if s.AdapterProgram != "" {
		table = append(table, fault{"take the adapter away", s.loseAdapter})
	}
	if len(s.Servers) > 0 {
		table = append(table, fault{"restore a dump on another database server", s.moveDatabase})
	}
	return table
}

func (s *Suite) servers() []*supervise.Child {
	return append([]*supervise.Child{s.stack.Server}, s.stack.Others...)
}

func kill(child *supervise.Child) error { return child.Signal(syscall.SIGKILL) }

func one[T any](rng *rand.Rand, of []T) T { return of[rng.IntN(len(of))] }

// pause waits, or until ctx ends.
func pause(ctx context.Context, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// freeze halts a server for 2 to 16 seconds: with the longer ones its lease runs out, others take over,
// and it wakes with work in its hands that is not its own any more.
func (s *Suite) freeze(ctx context.Context, rng *rand.Rand) error {
	return s.halt(ctx, one(rng, s.servers()), time.Duration(2_000+rng.IntN(14_000))*time.Millisecond)
}

// cutNetwork takes a node off the network for a while shorter than what makes it count as offline.
func (s *Suite) cutNetwork(ctx context.Context, rng *rand.Rand) error {
	node := one(rng, s.stack.Nodes)
	if s.isLost(node) {
		return nil
	}
	if err := node.CutNetwork(ctx); err != nil {
		return err
	}
	pause(ctx, time.Duration(1+rng.IntN(4))*time.Second)
	if s.isLost(node) {
		return nil // it was lost meanwhile, and comes back with that
	}
	return node.RestoreNetwork(context.WithoutCancel(ctx))
}

func (s *Suite) isLost(node *stack.Node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost == node.Name()
}

// harm does one fault after the other until ctx ends or there were enough: each once in a random order, then any.
func (s *Suite) harm(ctx context.Context) {
	rng, table := s.rng(1), s.possible()
	order := rng.Perm(len(table))
	for round := 0; s.Faults == 0 || round < max(s.Faults, len(table)); round++ {
		pause(ctx, s.Between)
		if ctx.Err() != nil {
			return
		}
		next := one(rng, table)
		if round < len(order) {
			next = table[order[round]]
		}
		begun := time.Now()
		err := next.do(ctx, rng)
		s.say("%s %s, %s: %v", begun.Format(time.TimeOnly), next.name, time.Since(begun).Round(time.Millisecond), err)
		s.mu.Lock()
		s.faults[next.name]++
		s.mu.Unlock()
	}
}

// harmed says whether each fault was done.
func (s *Suite) harmed() bool {
	table := s.possible()
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(table, func(one fault) bool { return s.faults[one.name] == 0 })
}

// heal waits until every part is there again.
func (s *Suite) heal(ctx context.Context) error {
	for _, server := range s.servers() {
		_ = server.Signal(syscall.SIGCONT) // one that is not there is started by its supervisor
	}
	if err := s.restore(ctx); err != nil {
		return err
	}
	for _, node := range s.stack.Nodes {
		if s.stack.Network() == nil {
			break
		}
		if err := node.RestoreNetwork(ctx); err != nil {
			return fmt.Errorf("restore the network of %s: %w", node.Name(), err)
		}
	}
	for _, url := range append([]string{s.stack.URL}, s.stack.OtherURLs...) {
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		err := install.AwaitHTTP(bounded, http.DefaultClient, url+"/readyz")
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}
