package operation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// upgrade brings a cluster to another version or configuration; a rollback is the same in the other
// direction. slurmctld is stopped in good order before slurmdbd, slurmdbd is up before slurmctld,
// and each slurmd restarts when the one before it is back. Jobs run on. When the new configuration
// does not come up, the old one is restored.
func upgrade(ctx context.Context, w work) error {
	from, to, err := layout.Versions(w.Dispatch().Change)
	if err != nil {
		return err
	}
	if from.PartitionName != to.PartitionName && !w.Force() {
		if err := w.refuseStranding(ctx, from.PartitionName); err != nil {
			return err
		}
	}
	w.Progress("checking nodes", 5, "checking the controller's node and those with GPUs")
	facts, err := w.Look(ctx, append(w.Of(layout.ComponentController), w.withGPUs()...), to)
	if err != nil {
		return err
	}
	// A job fails where it is to run a prolog that is not there: it comes before the configuration that names it.
	if err := w.Each(ctx, w.reachable(layout.ComponentWorker), func(ctx context.Context, member adapter.Member) error {
		return w.Steps(ctx, member, daemons.TaskProlog())
	}); err != nil {
		return err
	}
	if err := w.Commit(); err != nil {
		return err
	}
	w.Progress("applying configuration", 15, "restarting slurmdbd and slurmctld with the new configuration")
	cluster, err := w.reshape(ctx, "upgrade", func(c *layout.Cluster) error {
		return w.renew(c, from, to, facts)
	}, w.restartAll)
	if err != nil {
		return err
	}
	controller, err := w.Controller()
	if err != nil {
		return err
	}
	detail := daemons.ControllerDetail(cluster)
	if err := w.Member(controller.ID, adapter.MemberActive, adapter.Healthy, detail); err != nil {
		return err
	}
	if err := w.restartWorkers(ctx, cluster); err != nil {
		return err
	}
	if err := w.StartLogins(ctx, w.reachable(layout.ComponentLogin), cluster); err != nil {
		return err
	}
	return w.proveVersion(ctx, cluster)
}

// reachable returns the members of a component whose nodes the platform reaches.
func (w work) reachable(component string) []adapter.Member {
	return slices.DeleteFunc(w.Of(component), func(member adapter.Member) bool {
		return !member.Node.IsReachable()
	})
}

// withGPUs returns the workers whose nodes have GPUs and can be reached.
func (w work) withGPUs() []adapter.Member {
	return slices.DeleteFunc(w.reachable(layout.ComponentWorker), func(member adapter.Member) bool {
		return member.Node.GPUs == 0
	})
}

// renew sets the new version and, where the configuration changes them, the new sizes of workers. Workers without GPUs
// get those that are free beside them.
func (w work) renew(cluster *layout.Cluster, from, to layout.Config, facts daemons.Facts) error {
	cluster.Version = w.Instance().Version
	workers := w.Of(layout.ComponentWorker)
	defer w.equip(cluster, workers, facts)
	for _, member := range w.reachable(layout.ComponentWorker) {
		cluster.GiveProlog(member.ID)
	}
	if from.CPUsPerNode == to.CPUsPerNode && from.MemoryMiBPerNode == to.MemoryMiBPerNode {
		return nil
	}
	for _, member := range workers {
		if held, ok := cluster.Of(member.ID); ok {
			if err := cluster.Place(member, held.Host, workers); err != nil {
				return err
			}
			cluster.Label(member.ID, member.Labels)
		}
	}
	return nil
}

// refuseStranding refuses to take away a partition that jobs are in: Slurm would drop them.
func (w work) refuseStranding(ctx context.Context, partition string) error {
	controller, err := w.Controller()
	if err != nil {
		return err
	}
	task := adapter.RunCommand{Command: []string{"timeout", "20", "squeue", "-a", "-h", "-p", partition, "-o", "%A"}}
	result, err := w.Do(ctx, controller, "stranded", task)
	if err != nil {
		return err
	}
	if jobs := strings.Fields(result.Stdout); len(jobs) > 0 {
		return adapter.Fail(
			"PARTITION_IN_USE", adapter.OwnerUser, true,
			"partition %s has %s, which would be lost; wait until it is empty or cancel them", partition,
			report.Counted(len(jobs), "job"),
		)
	}
	return nil
}

// restartAll restarts everything that the controller runs, in the one order that loses nothing:
// slurmctld, which still hands its records to slurmdbd, ends first and comes up last.
func (w work) restartAll(ctx context.Context, controller adapter.Member, cluster layout.Cluster, round string) error {
	stops := []string{"slurmctld", "slurmdbd"}
	if !cluster.Accounted() {
		stops = append(stops, "mariadbd")
	}
	for _, process := range stops {
		stop := daemons.Step{Name: "stop-" + process + round, Task: adapter.StopProcess{Name: process}}
		if err := w.Steps(ctx, controller, stop); err != nil {
			return err
		}
	}
	if cluster.Accounted() {
		if err := w.StartAccounting(ctx, controller, cluster, round); err != nil {
			return err
		}
	}
	return w.StartSlurmctld(ctx, controller, cluster, round)
}

// restartWorkers restarts one slurmd after the other; each fetches the new configuration. Jobs
// belong to slurmstepd and run on. A node that is known to be unreachable is skipped and named in
// the evidence.
func (w work) restartWorkers(ctx context.Context, cluster layout.Cluster) error {
	members := present(cluster, w.Of(layout.ComponentWorker))
	passed := []string{}
	for i, member := range members {
		worker, _ := cluster.Of(member.ID)
		if !member.Node.IsReachable() {
			passed = append(passed, member.ID)
			continue
		}
		w.Progress(
			"restarting workers", 50+40*i/len(members),
			fmt.Sprintf("restarting %s, %d of %d", worker.Name(), i+1, len(members)),
		)
		list := append(daemons.WorkerFiles(worker),
			daemons.Step{Name: "restart-stop", Task: adapter.StopProcess{Name: "slurmd"}},
			daemons.Step{Name: "restart-start", Task: daemons.Slurmd(cluster, worker)},
			daemons.Step{Name: "restart-ready", Task: daemons.Probe(daemons.ProbeTime, daemons.WorkerReady)},
		)
		if err := w.Steps(ctx, member, list...); err != nil {
			return w.WithLog(ctx, member, "slurmd", err)
		}
	}
	return w.Evidence("passedOver", passed)
}

// proveVersion reads from slurmctld what it runs with, for the evidence.
func (w work) proveVersion(ctx context.Context, cluster layout.Cluster) error {
	controller, err := w.Controller()
	if err != nil {
		return err
	}
	script := `grep "^# version " ` + layout.SlurmConfPath + ` && timeout 20 scontrol show partition ` +
		cluster.PartitionName + ` -o`
	result, err := w.Do(ctx, controller, "prove-version", daemons.Shell(script))
	if err != nil {
		return err
	}
	stamp, partition, _ := strings.Cut(result.Stdout, "\n")
	return w.Evidence("runs", map[string]string{
		"version": strings.TrimPrefix(
			stamp, "# version ",
		), "partition": cluster.PartitionName, "maxTime": wordOf(partition, "MaxTime"),
	})
}

// wordOf returns the value of KEY=VALUE in a line of scontrol.
func wordOf(line, key string) string {
	for _, word := range strings.Fields(line) {
		if value, ok := strings.CutPrefix(word, key+"="); ok {
			return value
		}
	}
	return ""
}
