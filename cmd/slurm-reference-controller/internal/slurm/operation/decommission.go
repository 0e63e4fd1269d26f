package operation

import (
	"context"
	"slices"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

const cancelScript = `command -v squeue > /dev/null && timeout 10 squeue -h -o %A | xargs -r timeout 10 scancel`

// handOnScript waits until no job runs and slurmdbd has taken every account, about 20 seconds at most. slurmctld writes
// what it could not hand on by its end to a file, which goes with the cluster: those jobs would never be counted.
const handOnScript = `command -v sdiag > /dev/null || exit 0
for i in $(seq 60); do
    running=$(timeout 10 squeue -a -h -t RUNNING,SUSPENDED,STOPPED,CONFIGURING -o %A) || exit 0
    state=$(timeout 10 sdiag) || exit 0
    test -z "$running" && echo "$state" | grep -q "DBD Agent queue size: 0" && exit 0
    sleep 0.3
done
echo "slurmdbd has not taken all accounts" >&2
exit 1`

// decommission stops a cluster in good order (jobs, workers, slurmctld, then what it wrote its
// accounts to) and has each node prove that nothing is left. What cannot be stopped in good order,
// because it never came up or has died, is stopped by the teardown; only the proof decides.
func decommission(ctx context.Context, w work) error {
	if err := w.Commit(); err != nil {
		return err
	}
	controllers, workers := w.Of(layout.ComponentController), w.Of(layout.ComponentWorker)
	all := slices.Concat(controllers, workers)
	w.Progress("canceling jobs", 5, "canceling what still runs")
	for _, controller := range controllers {
		if err := reached(w.Try(ctx, controller, "scancel", daemons.Shell(cancelScript))); err != nil {
			return err
		}
		if err := reached(w.Try(ctx, controller, "hand-on-accounts", daemons.Shell(handOnScript))); err != nil {
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
		{"stopping slurmdbd", controllers, "slurmdbd"},
		{"stopping mariadbd", controllers, "mariadbd"},
		{"stopping munged", all, "munged"},
	}
	for i, stop := range stops {
		w.Progress("stopping daemons", 20+10*i, stop.message)
		if err := w.Each(ctx, stop.members, func(ctx context.Context, member adapter.Member) error {
			return reached(w.Try(ctx, member, "stop-"+stop.process, adapter.StopProcess{Name: stop.process}))
		}); err != nil {
			return err
		}
		if stop.process == "slurmctld" { // nothing runs any more, and slurmdbd still answers
			if err := w.meter.Settle(ctx, w.Run); err != nil {
				return err
			}
		}
	}
	w.Progress("tearing down", 75, "deleting sandboxes and proving that nothing is left")
	return w.Teardown(ctx, all)
}

// reached drops the result of a task that need not succeed, and the error of a node that a forced
// operation does not wait for.
func reached(_ adapter.TaskResult, err error) error {
	if adapter.IsUnreachable(err) {
		return nil
	}
	return err
}
