// Package daemons brings up what runs on the members of a cluster: munged, slurmctld, slurmd, slurmdbd
// and its database, each when what it needs is ready. Every start is a named, idempotent node task.
package daemons

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Controller returns the member that runs slurmctld.
func (w Work) Controller() (adapter.Member, error) {
	if w.Lead != nil {
		return *w.Lead, nil
	}
	controllers := w.Of(layout.ComponentController)
	if len(controllers) == 0 {
		return adapter.Member{}, adapter.Fail("NO_CONTROLLER", adapter.OwnerPlatform, false,
			"the cluster has no controller")
	}
	return controllers[0], nil
}

const (
	// ProbeInterval is the pause between two tries of a probe, in seconds.
	ProbeInterval = 0.2
	// ProbeTime is how long a daemon may take to come up.
	ProbeTime = 60 * time.Second
	// logTail is how much of a daemon's log a failure quotes, in bytes.
	logTail = 800
)

// Work is an operation under way and the keys of its cluster.
type Work struct {
	*adapter.Run
	// Keys derives the secrets of the cluster.
	Keys Keyring
	// Lead is the member that runs slurmctld where the instance has two controllers, as while one replaces the other.
	Lead *adapter.Member
}

// Step is a named node task.
type Step struct {
	Name string
	Task adapter.NodeTask
}

// Steps runs tasks on a member one after the other.
func (w Work) Steps(ctx context.Context, member adapter.Member, list ...Step) error {
	for _, s := range list {
		if _, err := w.Do(ctx, member, s.Name, s.Task, adapter.Within(2*time.Minute)); err != nil {
			return err
		}
	}
	return nil
}

// Shell returns the task of a script that runs to its end.
func Shell(script string) adapter.RunCommand {
	return adapter.RunCommand{Command: []string{"sh", "-c", script}}
}

// daemon returns the task of a supervised process that stays in the foreground.
func daemon(name, user string, command ...string) adapter.StartProcess {
	return adapter.StartProcess{
		Name: name, Command: command, User: user,
		Restart:            adapter.Restart{Policy: "on_failure", MaxRestarts: 10, BackoffSeconds: 1},
		StopTimeoutSeconds: 10,
	}
}

// Probe returns the task that repeats a script until it exits with 0 or the time is over.
func Probe(patience time.Duration, script string) adapter.Probe {
	return adapter.Probe{
		Exec:            &adapter.ExecProbe{Command: []string{"sh", "-c", script}},
		IntervalSeconds: ProbeInterval, TimeoutSeconds: 10,
		Attempts: int(patience.Seconds() / ProbeInterval),
	}
}

// WithLog adds the end of a daemon's log to a failure: without it an operator cannot find the
// cause.
func (w Work) WithLog(ctx context.Context, member adapter.Member, name string, err error) error {
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
	failed.Message = fmt.Sprintf("%s; %s is %s and last printed: %s", failed.Message, name, state.State, tail)
	return failed
}
