package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const (
	// probeInterval is the pause between two tries of a probe, in seconds.
	probeInterval = 0.2
	// logTail is how much of a daemon's log a failure quotes, in bytes.
	logTail = 800
)

// step is a named node task.
type step struct {
	name string
	task adapter.NodeTask
}

// steps runs tasks on a member one after the other.
func (c creation) steps(ctx context.Context, member adapter.Member, list ...step) error {
	for _, s := range list {
		if _, err := c.Do(ctx, member, s.name, s.task, adapter.Within(2*time.Minute)); err != nil {
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
func (c creation) withLog(ctx context.Context, member adapter.Member, name string, err error) error {
	var failed adapter.OperationError
	if !errors.As(err, &failed) || failed.Owner != adapter.OwnerNode {
		return err
	}
	clean, cancel := c.Cleanup(ctx)
	defer cancel()
	result, inspectErr := c.Try(clean, member, "inspect-"+name, adapter.InspectProcess{Name: name})
	state, ok := result.Process()
	if inspectErr != nil || !ok {
		return err
	}
	tail := state.LogTail[max(0, len(state.LogTail)-logTail):]
	failed.Message = fmt.Sprintf("%s; %s is %s and last said: %s", failed.Message, name, state.State, tail)
	return failed
}

// decommission stops a cluster in good order (jobs, workers, controller) and then has each node prove
// that nothing is left. What cannot be stopped in good order, because it never came up or has
// died, is stopped by the teardown; only the proof decides.
func decommission(ctx context.Context, run *adapter.Run) error {
	if err := run.Commit(); err != nil {
		return err
	}
	controllers, workers := run.Of(componentController), run.Of(componentWorker)
	all := slices.Concat(controllers, workers)
	run.Progress("canceling jobs", 5, "canceling what still runs")
	for _, controller := range controllers {
		script := `command -v squeue > /dev/null && timeout 10 squeue -h -o %A | xargs -r timeout 10 scancel`
		if _, err := run.Try(ctx, controller, "scancel", shell(script)); err != nil {
			return err
		}
	}
	stops := []struct {
		message string
		members []adapter.Member
		process string
	}{
		{"stopping slurmd", workers, "slurmd"},
		{"stopping slurmctld", controllers, "slurmctld"},
		{"stopping munged", all, "munged"},
	}
	for i, stop := range stops {
		run.Progress("stopping daemons", 20+15*i, stop.message)
		if err := run.Each(ctx, stop.members, func(ctx context.Context, member adapter.Member) error {
			_, err := run.Try(ctx, member, "stop-"+stop.process, adapter.StopProcess{Name: stop.process})
			return err
		}); err != nil {
			return err
		}
	}
	run.Progress("tearing down", 70, "deleting sandboxes and proving that nothing is left")
	return run.Teardown(ctx, all)
}
