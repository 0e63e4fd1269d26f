package operation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// create brings a cluster up. Its steps are named and idempotent: a resumed creation repeats them
// and gets the old results.
func create(ctx context.Context, w work) error {
	var config layout.Config
	if err := w.Config(&config); err != nil {
		return err
	}
	controller, workers := w.Of(layout.ComponentController)[0], w.Of(layout.ComponentWorker)
	logins := w.Of(layout.ComponentLogin)
	all := slices.Concat([]adapter.Member{controller}, workers, logins)

	w.Progress("checking nodes", 5, fmt.Sprintf("checking the nodes of %d members", len(all)))
	facts, err := w.Look(ctx, all, config)
	if err != nil {
		return err
	}
	cluster, err := w.layout(config, controller, workers, facts)
	if err != nil {
		return err
	}
	if err := w.checkKept(ctx, controller, cluster); err != nil {
		return err
	}
	w.Progress("distributing keys", 15, "starting munge on every member")
	if err := w.Each(ctx, all, w.StartMunge); err != nil {
		return err
	}
	if err := w.StartController(ctx, controller, cluster); err != nil {
		return err
	}
	if err := w.BringPeople(ctx, workers, ""); err != nil {
		return err
	}
	w.Progress("starting workers", 60, fmt.Sprintf("starting %d slurmd", len(workers)))
	if err := w.Each(ctx, workers, func(ctx context.Context, worker adapter.Member) error {
		if err := w.StartWorker(ctx, worker, cluster); err != nil {
			return err
		}
		return w.InService(worker, cluster)
	}); err != nil {
		return err
	}
	if err := w.StartLogins(ctx, logins, cluster); err != nil {
		return err
	}
	w.Progress("proving", 85, "running a first job on every worker")
	return w.prove(ctx, controller, workers)
}

// keptScript prints the name of the cluster whose state the controller finds, as on a volume of another cluster.
const keptScript = `test ! -s ` + daemons.SavedState + ` || cat ` + daemons.SavedState

// checkKept refuses to start over the state of a cluster of another name: slurmctld would end.
func (w work) checkKept(ctx context.Context, controller adapter.Member, cluster layout.Cluster) error {
	result, err := w.Do(ctx, controller, "kept-state", daemons.Shell(keptScript))
	if err != nil {
		return err
	}
	if kept := firstLine(result.Stdout); kept != "" && kept != cluster.ClusterName {
		return adapter.Fail("CLUSTER_NAME_FIXED", adapter.OwnerUser, false,
			"the volume has the state of the cluster %q: launch it with that name", kept)
	}
	return nil
}

// firstLine returns the first line of a text.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// layout returns a cluster on a block of ports that is free on all of its nodes.
func (w work) layout(
	config layout.Config, controller adapter.Member, workers []adapter.Member, facts daemons.Facts,
) (layout.Cluster, error) {
	port, err := layout.FreeBlock(w.Instance().ID, facts.Listening)
	if err != nil {
		return layout.Cluster{}, adapter.Fail("NO_FREE_PORTS", adapter.OwnerNode,
			true, "%v on the cluster's nodes", err)
	}
	cluster, err := layout.New(config, w.Instance().Version, controller, facts.Hosts, port, workers)
	if err != nil {
		return layout.Cluster{}, err
	}
	w.equip(&cluster, workers, facts)
	return cluster, nil
}

// equip gives workers their parts of the GPUs of their allocations. A worker that is replaced makes way for its heir.
func (w work) equip(cluster *layout.Cluster, workers []adapter.Member, facts daemons.Facts) {
	var leaving []string
	if w.Dispatch().Kind == adapter.MemberReplace {
		leaving = w.Dispatch().Targets
	}
	for _, member := range workers {
		if devices, seen := facts.Devices[member.ID]; seen {
			cluster.Equip(member, devices, w.Of(layout.ComponentWorker), leaving...)
		}
	}
}

// prove runs a job across all workers: when it succeeds, addresses, ports and keys are right
// everywhere.
func (w work) prove(ctx context.Context, controller adapter.Member, workers []adapter.Member) error {
	count := fmt.Sprint(len(workers))
	task := adapter.RunCommand{
		Command: []string{"timeout", "60", "srun", "-N" + count, "-n" + count, "sh", "-c", `echo "$SLURMD_NODENAME"`},
	}
	result, err := w.Do(ctx, controller, "first-job", task, adapter.Within(90*time.Second))
	if err != nil {
		return err
	}
	answered := strings.Fields(result.Stdout)
	slices.Sort(answered)
	if len(slices.Compact(answered)) != len(workers) {
		return adapter.Fail(
			"FIRST_JOB_FAILED", adapter.OwnerAdapter, true, "the first job ran on %v, not on all %d workers", answered,
			len(workers),
		)
	}
	return w.Evidence("firstJob", map[string]any{"answered": answered})
}
