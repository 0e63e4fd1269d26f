package operation

import (
	"context"
	"slices"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/login"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

const cancelScript = `command -v squeue > /dev/null && timeout 10 squeue -h -o %A | xargs -r timeout 10 scancel`

// handOnScript waits until the accounts show the end of every job that slurmctld knows to have run, about 20 seconds at
// most; sacct does not show those that were held until they were canceled.
// slurmctld writes what it could not hand on by its end to a file, which goes with the cluster, and slurmdbd shows what
// it has taken some seconds late: those jobs would never be counted.
const handOnScript = `grep -q accounting_storage/slurmdbd ` + layout.SlurmConfPath + ` || exit 0
for i in $(seq 40); do
    jobs=$(timeout 10 squeue -a -h -r -t all -o "%A|%N") || exit 0
    jobs=$(echo "$jobs" | sed -n "s/|..*//p")
    accounts=$(timeout 10 sacct -a -D -X -n -P -S now-2days -o JobIDRaw,End)
    open=$(echo "$accounts" | grep "|Unknown$")
    missing=$(echo "$jobs" | grep . | grep -vxF "$(echo "$accounts" | cut -d "|" -f 1)")
    test -z "$open$missing" && exit 0
    sleep 0.5
done
echo "the accounts do not show the end of every job: $missing $open" >&2
exit 1`

// decommission stops a cluster in good order (jobs, workers, slurmctld, then what it wrote its
// accounts to) and has each node prove that nothing is left. What cannot be stopped in good order,
// because it never came up or has died, is stopped by the teardown; only the proof decides.
func decommission(ctx context.Context, w work) error {
	if err := w.Commit(); err != nil {
		return err
	}
	controllers, workers := w.Of(layout.ComponentController), w.Of(layout.ComponentWorker)
	logins := w.Of(layout.ComponentLogin)
	all := slices.Concat(controllers, workers, logins)
	w.Progress("canceling jobs", 5, "canceling the jobs that still run")
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
		{"ending logins", logins, login.Process},
		{"stopping slurmd", workers, "slurmd"},
		{"stopping slurmctld", controllers, "slurmctld"},
		{"stopping slurmdbd", controllers, "slurmdbd"},
		{"stopping mariadbd", controllers, "mariadbd"},
		{"stopping munged", all, "munged"},
	}
	for i, stop := range stops {
		w.Progress("stopping daemons", 20+9*i, stop.message)
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
	w.Progress("tearing down", 75, "deleting sandboxes and verifying that nothing is left")
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
