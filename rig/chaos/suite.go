// Package chaos is the crash suite: on a whole installation with several servers it runs operations
// and subscribers, kills parts of it all the while, and then looks whether every operation ended once,
// whether anything was done twice, whether every subscriber saw what the tables hold, and whether what
// was left behind is listed, and whether the books hold what was used, once. What it does follows from its seed
// alone; when things happen does not.
package chaos

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/rig/stack"
	"github.com/gpuaas/app-platform/sdk/client"
)

// Config says how much there is of everything.
type Config struct {
	// Seed decides which changes are requested and which parts are killed.
	Seed uint64
	// Instances are operated side by side, each with at most three members. One more loses a node.
	Instances int
	// Changes are those that each instance must have accepted, one after the other or side by side.
	Changes int
	// Operations is how many must be accepted in all: instances go on beyond their changes until there are as many.
	Operations int
	// Subscribers follow each instance's timeline; as many follow the whole project.
	Subscribers int
	// Followed bounds the operations whose progress is followed.
	Followed int
	// Faults bounds how many there are, each kind at least once in the first few; 0 is as many as the changes last.
	Faults int
	// Between is the time between two faults.
	Between time.Duration
	// Settle bounds the time that everything may take to end once the last fault is over.
	Settle time.Duration
	// Servers say how each server is hindered, by number. Builds are the programs that a server may be, this build's
	// first. Without them clocks stay right and builds the same.
	Servers []Server
	Builds  []string
	// AdapterDisk holds what the adapter keeps, and NodeDisks what each node does, by number. Without them no disk is
	// full.
	AdapterDisk *Disk
	NodeDisks   []*Disk
	// AdapterProgram is the link by which the adapter is started. Without it the adapter is never away for long.
	AdapterProgram string
	// Out takes what a person should read.
	Out io.Writer
}

// Suite is one run.
type Suite struct {
	Config
	stack  *stack.Stack
	ledger string // the folder of the adapter's ledger

	followers sync.WaitGroup

	mu        sync.Mutex
	accepted  map[string]string // operation → what was asked
	ended     map[string]bool   // those of them that were seen to have ended
	denied    map[string]int    // code → how often a change was refused
	followed  []*follower
	first     string         // the event after which the project's subscribers begin
	faults    map[string]int // name → how often it was done
	lost      string         // the node that is cut off for long
	found     []string       // what was seen to be wrong on the way
	handovers []time.Duration
}

// New prepares a run on an installation whose apps include the chaos adapter.
func New(config Config, on *stack.Stack, ledger string) *Suite {
	return &Suite{
		Config: config, stack: on, ledger: ledger,
		accepted: make(map[string]string), ended: make(map[string]bool),
		denied: make(map[string]int), faults: make(map[string]int),
	}
}

// rng is the source of one part of the run: parts that run side by side must not take from one.
func (s *Suite) rng(part uint64) *rand.Rand { return rand.New(rand.NewPCG(s.Seed, part)) }

// client is a patient client of one of the servers.
func (s *Suite) client(number int) (*client.Client, error) {
	return client.New(s.stack.APIURLs[number%len(s.stack.APIURLs)],
		client.Options{Token: s.stack.Demo.ServiceAccountKey, MaxAttempts: 40})
}

func (s *Suite) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Out, format+"\n", args...)
}

// accept notes an accepted operation, and follows it unless enough are followed.
func (s *Suite) accept(ctx context.Context, on *client.Client, operation, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted[operation] = what
	if len(s.followed) < s.Followed {
		one := &follower{operation: operation}
		s.followed = append(s.followed, one)
		s.followers.Go(func() { one.follow(ctx, on) })
	}
}

// wrong notes what was seen to be wrong on the way.
func (s *Suite) wrong(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = append(s.found, fmt.Sprintf(format, args...))
}

// Accepted is how many operations were accepted.
func (s *Suite) Accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.accepted)
}

// Run runs everything and answers what it found wrong; none is a pass.
func (s *Suite) Run(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx) // what still runs at the end goes with it
	defer s.followers.Wait()
	defer cancel()
	s.say("seed %d: %d instances, %d changes each, %d servers", s.Seed, s.Instances, s.Changes, 1+len(s.stack.Others))
	if err := s.price(ctx); err != nil {
		return nil, fmt.Errorf("set a price: %w", err)
	}
	watched, fleet, err := s.launch(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.trouble(ctx, fleet); err != nil {
		return nil, err
	}
	settled, stop := context.WithTimeout(ctx, s.Settle)
	defer stop()
	for _, step := range []func(context.Context) error{
		s.settle, s.awaitOrphans, func(ctx context.Context) error { return s.clear(ctx, fleet) }, s.awaitOrphans,
		s.awaitBooks,
	} {
		if err := step(settled); err != nil {
			return nil, err
		}
	}
	s.sum(len(watched))
	return s.judge(settled, watched)
}

// trouble requests changes while parts are killed, until both are done; then it has all parts run again.
func (s *Suite) trouble(ctx context.Context, fleet []*ship) error {
	harmful, stop := context.WithCancel(ctx)
	defer stop()
	var side sync.WaitGroup
	side.Go(func() { s.harm(harmful) })
	if wreck := fleet[len(fleet)-1]; wreck.wreck && s.stack.Network() != nil {
		side.Go(func() {
			if err := s.loseNode(ctx, wreck); err != nil {
				s.wrong("loss of a node: %v", err)
			}
		})
	}
	s.work(ctx, fleet)
	stop()
	side.Wait()
	return s.heal(ctx)
}

// sum reports the run's totals.
func (s *Suite) sum(feeds int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say("%d operations accepted, %d subscribers, refusals %v", len(s.accepted), feeds+len(s.followed), s.denied)
	s.say("faults %v; from the stop of a worker to the next claim of what it had: %v", s.faults, s.handovers)
}
