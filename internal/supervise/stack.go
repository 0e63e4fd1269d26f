package supervise

import (
	"errors"
	"fmt"
	"sync"
)

// Stack remembers what was brought up, and how to take it down. The zero value is ready.
type Stack struct {
	mu    sync.Mutex
	steps []step
}

type step struct {
	name string
	down func() error
}

// Push adds a thing that is up now.
func (s *Stack) Push(name string, down func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step{name, down})
}

// Close takes everything down, the last pushed first. A failure does not keep the rest up; all failures are answered
// together, each with its name. A second call has nothing left to do.
func (s *Stack) Close() error {
	s.mu.Lock()
	steps := s.steps
	s.steps = nil
	s.mu.Unlock()
	var failed []error
	for i := len(steps) - 1; i >= 0; i-- {
		if err := steps[i].down(); err != nil {
			failed = append(failed, fmt.Errorf("stop %s: %w", steps[i].name, err))
		}
	}
	return errors.Join(failed...)
}
