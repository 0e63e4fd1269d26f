package slurm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// probeInterval is the pause between two tries of a probe, in seconds.
	probeInterval = 0.2
	// probeTime is how long a daemon has to come up.
	probeTime = 60 * time.Second
	// logTail is how much of a daemon's log a failure quotes, in bytes.
	logTail = 800
)

// work is an operation under way with what all operations of the adapter share.
type work struct {
	*adapter.Run
	keys keyring
	desk *desk
}

// desk keeps operations of one instance from changing slurm.conf at once, and knows which members
// are being brought up: their nodes do not answer yet, and must not be taken for forgotten ones.
type desk struct {
	mu      sync.Mutex
	seats   map[string]chan struct{} // by instance; holds one token while taken
	joining map[string]int           // by member
}

func newDesk() *desk { return &desk{seats: map[string]chan struct{}{}, joining: map[string]int{}} }

// sit waits for the instance's seat; stand gives it back. A seat stays for the life of the program:
// an empty channel for each instance ever touched.
func (d *desk) sit(ctx context.Context, instance string) (stand func(), err error) {
	d.mu.Lock()
	seat, ok := d.seats[instance]
	if !ok {
		seat = make(chan struct{}, 1)
		d.seats[instance] = seat
	}
	d.mu.Unlock()
	select {
	case seat <- struct{}{}:
		return func() { <-seat }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// bring marks members as being brought up until the answered function is called.
func (d *desk) bring(members []adapter.Member) (done func()) {
	change := func(by int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, member := range members {
			if d.joining[member.ID] += by; d.joining[member.ID] == 0 {
				delete(d.joining, member.ID)
			}
		}
	}
	change(1)
	return func() { change(-1) }
}

func (d *desk) brings(memberID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.joining[memberID] > 0
}

// step is a named node task.
type step struct {
	name string
	task adapter.NodeTask
}

// steps runs tasks on a member one after the other.
func (w work) steps(ctx context.Context, member adapter.Member, list ...step) error {
	for _, s := range list {
		if _, err := w.Do(ctx, member, s.name, s.task, adapter.Within(2*time.Minute)); err != nil {
			return err
		}
	}
	return nil
}

// shell is a script that runs to its end.
func shell(script string) adapter.RunCommand {
	return adapter.RunCommand{Command: []string{"sh", "-c", script}}
}

// daemon is a supervised process that stays in the foreground.
func daemon(name, user string, command ...string) adapter.StartProcess {
	return adapter.StartProcess{
		Name: name, Command: command, User: user,
		Restart:            adapter.Restart{Policy: "on_failure", MaxRestarts: 10, BackoffSeconds: 1},
		StopTimeoutSeconds: 10,
	}
}

// probe repeats a script until it exits with 0 or the time is over.
func probe(patience time.Duration, script string) adapter.Probe {
	return adapter.Probe{
		Exec:            &adapter.ExecProbe{Command: []string{"sh", "-c", script}},
		IntervalSeconds: probeInterval, TimeoutSeconds: 10,
		Attempts: int(patience.Seconds() / probeInterval),
	}
}

// withLog adds the end of a daemon's log to a failure: without it nobody can mend it.
func (w work) withLog(ctx context.Context, member adapter.Member, name string, err error) error {
	var failed adapter.OperationError
	if !errors.As(err, &failed) || failed.Owner != adapter.OwnerNode {
		return err
	}
	clean, cancel := w.Cleanup(ctx)
	defer cancel()
	result, inspectErr := w.Try(clean, member, "inspect-"+name, adapter.InspectProcess{Name: name})
	state, ok := result.Process()
	if inspectErr != nil || !ok {
		return err
	}
	tail := state.LogTail[max(0, len(state.LogTail)-logTail):]
	failed.Message = fmt.Sprintf("%s; %s is %s and last said: %s", failed.Message, name, state.State, tail)
	return failed
}
