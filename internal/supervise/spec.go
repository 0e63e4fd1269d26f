package supervise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// Restart says what happens when the program ends by itself.
type Restart int

// The restart policies.
const (
	Never     Restart = iota // the child is done
	OnFailure                // started again unless it ended with exit status 0
	Always                   // started again in any case
)

const (
	defaultBackoff     = 500 * time.Millisecond
	maxBackoff         = 10 * time.Second
	steady             = 10 * time.Second // a program that ran this long starts again without a grown pause
	defaultStopTimeout = 10 * time.Second
)

// Spec describes a program to keep running.
type Spec struct {
	Name        string         // for messages; required
	Command     []string       // program and arguments; required
	Env         []string       // the whole environment; nil: this process's own (Local), a minimal one (local nodes)
	Dir         string         // working directory; empty: this process's own (Local), "/" (local nodes)
	Log         io.Writer      // standard output and error; nil: dropped. Written by one goroutine at a time
	ExtraFiles  []*os.File     // become descriptors 3, 4, …; they stay the caller's to close
	Restart     Restart        // Never unless said otherwise
	Backoff     time.Duration  // pause before the first restart; doubles up to 10 s; 0: 500 ms
	StopSignal  syscall.Signal // asks the program to end; 0: SIGTERM
	StopTimeout time.Duration  // from StopSignal to SIGKILL; 0: 10 s
	Spawner     Spawner        // nil: Local
}

// Spawner brings a process into being.
type Spawner interface {
	// Spawn starts spec.Command with out as standard output and error. The files stay the caller's to close.
	Spawn(spec Spec, out *os.File) (Process, error)
}

// Process is one run of a program.
type Process interface {
	PID() int
	// Signal reaches the program and what it started in its process group. A process that has ended is not an error.
	Signal(signal syscall.Signal) error
	// Wait returns once the process has ended: nil for exit status 0. It is called once.
	Wait() error
}

func (s *Spec) complete() error {
	if s.Name == "" {
		return errors.New("supervise: Name is empty")
	}
	if len(s.Command) == 0 {
		return fmt.Errorf("supervise %s: Command is empty", s.Name)
	}
	if s.Log == nil {
		s.Log = io.Discard
	}
	if s.Backoff == 0 {
		s.Backoff = defaultBackoff
	}
	if s.StopSignal == 0 {
		s.StopSignal = syscall.SIGTERM
	}
	if s.StopTimeout == 0 {
		s.StopTimeout = defaultStopTimeout
	}
	if s.Spawner == nil {
		s.Spawner = Local{}
	}
	return nil
}
