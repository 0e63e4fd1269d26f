// Package chaos is the crash suite: on a whole installation with several servers it runs operations
// and subscribers, kills parts of it all the while, and then looks whether every operation ended once,
// whether anything was done twice, whether every subscriber saw what the tables hold, and whether what
// was left behind is listed. What it does follows from its seed alone; when things happen does not.
package chaos

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/internal/stack"
	"github.com/gpuaas/app-platform/sdk/client"
)

// Config says how much there is of everything.
type Config struct {
	// Seed decides what is asked and what is killed.
	Seed uint64
	// Instances are operated side by side, each with at most three members.
	Instances int
	// Changes are asked of each instance, one after the other or side by side.
	Changes int
	// Subscribers watch each instance; as many again watch the whole project.
	Subscribers int
	// Between is the time between two faults.
	Between time.Duration
	// Settle bounds the time that everything may take to end once the last fault is over.
	Settle time.Duration
	// Out takes what a person should read.
	Out io.Writer
}

// Suite is one run.
type Suite struct {
	Config
	stack  *stack.Stack
	ledger string // the folder of the adapter's ledger

	mu       sync.Mutex
	accepted map[string]string // operation → what was asked
	denied   map[string]int    // code → how often a change was refused
	faults   []string
}

// New prepares a run on an installation whose apps include the chaos adapter.
func New(config Config, on *stack.Stack, ledger string) *Suite {
	return &Suite{Config: config, stack: on, ledger: ledger, accepted: make(map[string]string), denied: make(map[string]int)}
}

// rng is the source of one part of the run: parts that run side by side must not take from one.
func (s *Suite) rng(part uint64) *rand.Rand { return rand.New(rand.NewPCG(s.Seed, part)) }

// client is a patient client of one of the servers.
func (s *Suite) client(number int) (*client.Client, error) {
	url := s.stack.URL
	if number %= 1 + len(s.stack.OtherURLs); number > 0 {
		url = s.stack.OtherURLs[number-1]
	}
	return client.New(url, client.Options{Token: s.stack.Demo.ServiceAccountKey, MaxAttempts: 40})
}

func (s *Suite) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Out, format+"\n", args...)
}

// accept notes an accepted operation.
func (s *Suite) accept(operation, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted[operation] = what
}

// Operations is how many operations were accepted.
func (s *Suite) Operations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.accepted)
}

// Run runs everything and answers what it found wrong; none is a pass.
func (s *Suite) Run(ctx context.Context) ([]string, error) {
	s.say("seed %d: %d instances, %d changes each, %d servers", s.Seed, s.Instances, s.Changes, 1+len(s.stack.Others))
	fleet, err := s.launch(ctx)
	if err != nil {
		return nil, err
	}
	watched := s.watch(ctx, fleet)
	faults, stop := context.WithCancel(ctx)
	var harm sync.WaitGroup
	harm.Go(func() { s.harm(faults) })
	s.work(ctx, fleet)
	stop()
	harm.Wait()
	if err := s.heal(ctx); err != nil {
		return nil, err
	}
	settled, cancel := context.WithTimeout(ctx, s.Settle)
	defer cancel()
	if err := s.settle(settled); err != nil {
		return nil, err
	}
	if err := s.clear(settled, fleet); err != nil {
		return nil, err
	}
	s.say("%d operations accepted, refusals %v, faults %v", s.Operations(), s.denied, s.faults)
	return s.judge(settled, watched)
}
