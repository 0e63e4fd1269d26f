// Package health runs the checks of a node: its disk, memory, clock, container runtime and GPUs, and an operator's own
// executables. What they find are the node's conditions; the platform says what follows from them.
package health

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/text"
	"github.com/gpuaas/app-platform/sdk/client/generated/gql"
)

// The pace of checking. What asks programs runs less often than what reads a file.
const (
	quickEvery = 15 * time.Second
	slowEvery  = time.Minute
	// wordsEvery is after how long a finding is reported again of which only the words have changed.
	wordsEvery = time.Minute
	maxWords   = 500 // bytes
)

// Options are what is checked, and where.
type Options struct {
	// StateDir is where members and artifacts lie: its disk is the one that matters.
	StateDir string
	// Root is the file system's root, "/" but in tests.
	Root string
	// GPUs are the real ones that the node declares; 0 leaves them unchecked.
	GPUs int
	// Folder holds an operator's own checks; empty for none.
	Folder string
	// Runtime returns why the node can start no member; empty when it can.
	Runtime func() string
}

// Checker keeps what the checks found last.
type Checker struct {
	options Options
	clock   clock

	mu       sync.Mutex
	quick    []gql.NodeConditionInput
	slow     []gql.NodeConditionInput
	reported []gql.NodeConditionInput
	at       time.Time // when that was
}

// New returns a checker that has not looked yet.
func New(options Options) *Checker { return &Checker{options: options} }

// Run checks until ctx ends.
func (c *Checker) Run(ctx context.Context) error {
	quick, slow := time.NewTicker(quickEvery), time.NewTicker(slowEvery)
	defer quick.Stop()
	defer slow.Stop()
	c.lookQuick()
	c.lookSlow(ctx)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-quick.C:
			c.lookQuick()
		case <-slow.C:
			c.lookSlow(ctx)
		}
	}
}

func (c *Checker) lookQuick() {
	found := []gql.NodeConditionInput{
		disk(c.options.StateDir), memory(c.options.Root), c.clock.condition(time.Now()),
	}
	if c.options.Runtime != nil {
		found = append(found, runtime(c.options.Runtime()))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quick = found
}

func (c *Checker) lookSlow(ctx context.Context) {
	var found []gql.NodeConditionInput
	if c.options.GPUs > 0 {
		found = append(found, gpus(ctx, c.options.GPUs)...)
	}
	found = append(found, own(ctx, c.options.Folder)...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow = append([]gql.NodeConditionInput{}, found...)
}

// News returns the conditions to report to the platform, or nil when it has them: at once when a state has changed, and
// after wordsEvery when only the words have. Nothing is reported before every check has run once.
func (c *Checker) News(now time.Time) []gql.NodeConditionInput {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.quick == nil || c.slow == nil {
		return nil
	}
	all := slices.Concat(c.quick, c.slow)
	if sameStates(all, c.reported) && (now.Sub(c.at) < wordsEvery || slices.Equal(all, c.reported)) {
		return nil
	}
	return all
}

// Reported notes that the platform has taken what News returned; nil makes News return everything again.
func (c *Checker) Reported(conditions []gql.NodeConditionInput, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reported, c.at = conditions, now
}

// Heard compares the node's clock with the platform's: it was theirs somewhere between sent and received.
func (c *Checker) Heard(theirs, sent, received time.Time) { c.clock.compare(theirs, sent, received) }

func sameStates(a, b []gql.NodeConditionInput) bool {
	return slices.EqualFunc(a, b, func(x, y gql.NodeConditionInput) bool {
		return x.Name == y.Name && x.State == y.State
	})
}

// found is a condition with its words cut to what the platform takes.
func found(name string, state gql.NodeConditionState, format string, args ...any) gql.NodeConditionInput {
	words := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' ' // the platform takes printable text alone
	}, fmt.Sprintf(format, args...))
	return gql.NodeConditionInput{Name: name, State: state, Message: text.Head(words, maxWords)}
}

// runtime is the condition of the program that starts members; reason is why it cannot.
func runtime(reason string) gql.NodeConditionInput {
	if reason != "" {
		return found("runtime", gql.NodeConditionStateBad, "the node can start no member: %s", reason)
	}
	return found("runtime", gql.NodeConditionStateGood, "members can be started")
}
