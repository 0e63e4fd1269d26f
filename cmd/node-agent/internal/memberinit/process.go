package memberinit

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/logfile"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/reaper"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit/shim"
	"github.com/gpuaas/app-platform/cmd/node-agent/internal/wire"
)

// The restart policies.
const (
	PolicyNever     = "never"
	PolicyOnFailure = "on_failure"
	PolicyAlways    = "always"
)

// The states of a supervised process.
const (
	StateRunning = "running"
	StateExited  = "exited"
	StateFailed  = "failed"
	StateAbsent  = "absent"
)

const (
	// maxBackoff bounds the doubling wait between restarts.
	maxBackoff = 30 * time.Second
	// settled is how long a process must have run for its backoff to start again from the beginning.
	settled = time.Minute
)

// process supervises one program. Its group gets the stop signal; what has left the group by setsid
// stays until the member ends, as a daemon's jobs do when the daemon is restarted.
type process struct {
	spec    wire.ProcessSpec
	command prepared
	reap    *reaper.Reaper
	log     *logfile.Writer // of all processes by this name
	printed *sync.WaitGroup // waits until what the member's processes have printed is written
	stop    chan struct{}   // closed by halt
	done    chan struct{}   // closed when supervision has ended

	mu       sync.Mutex
	first    time.Time // when a request started it
	pid      int
	state    string
	restarts int
	exitCode *int
	started  time.Time
	stopOnce sync.Once
}

// launch starts the program once and supervises it from then on; an error means that it never ran.
func (p *process) launch() error {
	ended, err := p.spawn()
	if err != nil {
		return err
	}
	go p.supervise(ended)
	return nil
}

func (p *process) spawn() (<-chan int, error) {
	out, err := openDucts(2)
	if err != nil {
		return nil, fmt.Errorf("start process: %w", err)
	}
	defer closeWriters(out)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		closeReaders(out)
		return nil, fmt.Errorf("start process: %w", err)
	}
	defer null.Close()
	for _, pipe := range out {
		_ = unix.SetNonblock(int(pipe.write.Fd()), false)
	}
	pid, ended, err := p.reap.Start(reaper.Child{
		Path: p.command.path, Args: p.command.args, Dir: p.command.dir, Env: p.command.env,
		Credential: p.command.credential, Files: []*os.File{null, out[0].write, out[1].write},
	})
	if err != nil {
		closeReaders(out)
		return nil, wire.Errorf(wire.CodeStartFailed, "command: %v", err)
	}
	p.keep(out[0].read, logfile.Stdout)
	p.keep(out[1].read, logfile.Stderr)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid, p.state, p.started = pid, StateRunning, time.Now()
	if p.first.IsZero() {
		p.first = p.started
	}
	return ended, nil
}

// keep writes what comes by a pipe to the log; it ends with the last holder of the pipe, at the latest with the member.
func (p *process) keep(pipe *os.File, stream logfile.Stream) {
	lines := p.log.Lines(stream)
	p.printed.Go(func() {
		_, _ = io.Copy(lines, pipe)
		lines.Close()
		_ = pipe.Close()
	})
}

// supervise waits for ends and starts again as the policy says, until it says no more or halt is called.
func (p *process) supervise(ended <-chan int) {
	defer close(p.done)
	backoff := p.backoff()
	for {
		code, halted := p.await(ended)
		if time.Since(p.started) > settled {
			backoff = p.backoff()
		}
		p.record(code, halted)
		if halted || !p.again(code) {
			return
		}
		next, ok := p.restart(backoff)
		if !ok {
			return
		}
		ended, backoff = next, min(2*backoff, maxBackoff)
	}
}

// await gives the exit code, and whether it came by halt.
func (p *process) await(ended <-chan int) (code int, halted bool) {
	select {
	case code = <-ended:
		return code, false
	case <-p.stop:
	}
	p.signal(stopSignal(p.spec.StopSignal))
	timer := time.NewTimer(time.Duration(p.spec.StopTimeoutMillis) * time.Millisecond)
	defer timer.Stop()
	select {
	case code = <-ended:
	case <-timer.C:
		p.signal(unix.SIGKILL)
		code = <-ended
	}
	p.signal(unix.SIGKILL) // children that stayed in the group
	return code, true
}

// restart waits and starts; a failed start counts as a restart that failed. False ends supervision.
func (p *process) restart(backoff time.Duration) (<-chan int, bool) {
	for {
		timer := time.NewTimer(backoff)
		select {
		case <-timer.C:
		case <-p.stop:
			timer.Stop()
			return nil, false
		}
		p.mu.Lock()
		p.restarts++
		p.mu.Unlock()
		if ended, err := p.spawn(); err == nil {
			return ended, true
		}
		if !p.again(shim.ExitNotStarted) {
			return nil, false
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

func (p *process) again(code int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spec.MaxRestarts > 0 && p.restarts >= p.spec.MaxRestarts {
		return false
	}
	return p.spec.Policy == PolicyAlways || p.spec.Policy == PolicyOnFailure && code != 0
}

func (p *process) backoff() time.Duration {
	return time.Duration(max(p.spec.BackoffMillis, 10)) * time.Millisecond
}

// record notes an end. A process that halt ended is exited, whatever its code.
func (p *process) record(code int, halted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid, p.exitCode, p.state = 0, &code, StateExited
	if code != 0 && !halted {
		p.state = StateFailed
	}
}

// halt starts the stop and waits for its end; it may be called again.
func (p *process) halt() {
	p.stopOnce.Do(func() { close(p.stop) })
	<-p.done
}

func (p *process) signal(signal unix.Signal) {
	p.mu.Lock()
	pid := p.pid
	p.mu.Unlock()
	if pid > 0 {
		_ = unix.Kill(-pid, signal)
	}
}

// report returns the process's state, without its log.
func (p *process) report() wire.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return wire.Process{
		Name: p.spec.Name, State: p.state, PID: p.pid, Restarts: p.restarts, ExitCode: p.exitCode,
		StartedAt: p.started.UTC().Format(time.RFC3339Nano),
	}
}

// fares returns how often the process was restarted, and whether it has failed with no restart left.
func (p *process) fares() wire.Supervised {
	ended := !p.supervised()
	p.mu.Lock()
	defer p.mu.Unlock()
	return wire.Supervised{
		Name: p.spec.Name, Since: p.first.UTC().Format(time.RFC3339Nano), Restarts: p.restarts,
		Spent: ended && p.state == StateFailed && p.spec.MaxRestarts > 0 && p.restarts >= p.spec.MaxRestarts,
	}
}

// supervised reports whether the process runs or will be started again.
func (p *process) supervised() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stopSignal knows signals by name, with or without SIG; SIGTERM when none is given.
func stopSignal(name string) unix.Signal {
	if signal, ok := KnownSignal(name); ok {
		return signal
	}
	return unix.SIGTERM
}

// KnownSignal resolves a signal's name, "TERM" or "SIGTERM"; false for a name of no signal.
func KnownSignal(name string) (unix.Signal, bool) {
	signal := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
	return signal, signal != 0
}
