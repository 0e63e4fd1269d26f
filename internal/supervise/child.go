package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// ErrEnded is returned by Restart for a child that is done.
var ErrEnded = errors.New("the program has ended")

// Child is a supervised program.
type Child struct {
	spec   Spec
	out    *os.File      // the pipe's end that every run writes to
	copied chan struct{} // closed when all output is in the log
	halt   chan struct{} // closed by Stop
	done   chan struct{} // closed when no run will follow

	mu     sync.Mutex
	now    *run // the latest run
	starts int
	again  bool // a restart was demanded
	halted bool
	exit   error
}

// run is one run of the program.
type run struct {
	process Process
	since   time.Time
	gone    chan struct{} // closed when the process has ended
	next    chan struct{} // closed when the run after this one has started
}

// Start starts the program and keeps it as its policy says. An error of the first start (no such program) is answered
// at once.
func Start(spec Spec) (*Child, error) {
	if err := spec.complete(); err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("supervise %s: %w", spec.Name, err)
	}
	c := &Child{
		spec: spec, out: write,
		copied: make(chan struct{}), halt: make(chan struct{}), done: make(chan struct{}),
	}
	if err := c.spawn(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", spec.Name, err), read.Close(), write.Close())
	}
	go c.copyOutput(read)
	go c.keep(read)
	return c, nil
}

func (c *Child) copyOutput(read *os.File) {
	defer close(c.copied)
	_, _ = io.Copy(c.spec.Log, read)
	_, _ = io.Copy(io.Discard, read) // a log that fails must not block the program
}

// keep waits for each run's end and starts the next.
func (c *Child) keep(read *os.File) {
	defer c.finish(read)
	pause := c.spec.Backoff
	for {
		current := c.current()
		err := current.process.Wait()
		close(current.gone)
		again, demanded := c.decide(err)
		for again {
			if demanded || time.Since(current.since) > steady {
				pause = c.spec.Backoff
			}
			if !demanded && !c.sleep(pause) {
				return
			}
			pause = min(2*pause, maxBackoff)
			if err := c.spawn(); err == nil {
				break
			} else {
				again, demanded = c.decide(err)
			}
		}
		if !again {
			return
		}
	}
}

// decide reports whether another run follows one that ended with err, and whether a caller demanded it.
func (c *Child) decide(err error) (again, demanded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exit = err
	demanded, c.again = c.again, false
	switch {
	case c.halted:
		return false, false
	case demanded, c.spec.Restart == Always:
		return true, demanded
	default:
		return c.spec.Restart == OnFailure && err != nil, false
	}
}

func (c *Child) sleep(pause time.Duration) bool {
	select {
	case <-c.halt:
		return false
	case <-time.After(pause):
		return true
	}
}

// spawn starts a run. It holds the lock, so that Stop either sees the new process or keeps it from starting.
func (c *Child) spawn() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.halted {
		return ErrEnded
	}
	process, err := c.spec.Spawner.Spawn(c.spec, c.out)
	if err != nil {
		return err
	}
	last := c.now
	c.now = &run{process: process, since: time.Now(), gone: make(chan struct{}), next: make(chan struct{})}
	c.starts++
	if last != nil {
		close(last.next)
	}
	return nil
}

// finish lets the last output through. What the program left running may hold the pipe: it gets a second.
func (c *Child) finish(read *os.File) {
	_ = c.out.Close()
	select {
	case <-c.copied:
	case <-time.After(time.Second):
	}
	_ = read.Close()
	<-c.copied
	close(c.done)
}

func (c *Child) current() *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Name is the spec's name.
func (c *Child) Name() string { return c.spec.Name }

// PID is the process id of the latest run.
func (c *Child) PID() int { return c.current().process.PID() }

// Starts counts the runs so far.
func (c *Child) Starts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.starts
}

// Done is closed when the program has ended for good.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err says how the latest run that ended did end; nil for exit status 0.
func (c *Child) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exit
}

// Signal sends a signal to the latest run.
func (c *Child) Signal(signal syscall.Signal) error { return c.current().process.Signal(signal) }

// Restart ends the current run as Stop would and starts the program again, whatever the policy. It returns when the new
// run has started; ErrEnded when the child is done.
func (c *Child) Restart(ctx context.Context) error {
	c.mu.Lock()
	current := c.now
	c.again = true
	c.mu.Unlock()
	c.terminate(current)
	select {
	case <-current.next:
		return nil
	case <-c.done:
		return fmt.Errorf("restart %s: %w", c.spec.Name, ErrEnded)
	case <-ctx.Done():
		return fmt.Errorf("restart %s: %w", c.spec.Name, ctx.Err())
	}
}

// Stop ends the program for good and waits for it: the stop signal first, SIGKILL after the stop timeout. Safe to call
// twice.
func (c *Child) Stop() error {
	c.mu.Lock()
	if !c.halted {
		c.halted = true
		close(c.halt)
	}
	current := c.now
	c.mu.Unlock()
	c.terminate(current)
	<-c.done
	return nil
}

func (c *Child) terminate(r *run) {
	_ = r.process.Signal(c.spec.StopSignal)
	select {
	case <-r.gone:
	case <-time.After(c.spec.StopTimeout):
		_ = r.process.Signal(syscall.SIGKILL)
		<-r.gone
	}
}
