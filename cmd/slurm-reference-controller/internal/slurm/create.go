package slurm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// create brings a cluster up. Its steps are named and idempotent: a resumed creation walks through
// them again and gets the old results.
func create(ctx context.Context, w work) error {
	var config Config
	if err := w.Config(&config); err != nil {
		return err
	}
	controller, workers := w.Of(componentController)[0], w.Of(componentWorker)
	all := append([]adapter.Member{controller}, workers...)

	w.Progress("checking nodes", 5, fmt.Sprintf("looking at the nodes of %d members", len(all)))
	facts, err := w.look(ctx, all, config)
	if err != nil {
		return err
	}
	cluster, err := w.layout(config, controller, workers, facts)
	if err != nil {
		return err
	}
	w.Progress("distributing keys", 15, "starting munge on every member")
	if err := w.Each(ctx, all, w.startMunge); err != nil {
		return err
	}
	if err := w.startController(ctx, controller, cluster); err != nil {
		return err
	}
	w.Progress("starting workers", 60, fmt.Sprintf("starting %d slurmd", len(workers)))
	if err := w.Each(ctx, workers, func(ctx context.Context, worker adapter.Member) error {
		if err := w.startWorker(ctx, worker, cluster); err != nil {
			return err
		}
		return w.inService(worker, cluster)
	}); err != nil {
		return err
	}
	w.Progress("proving", 85, "running a first job on every worker")
	return w.prove(ctx, controller, workers)
}

// layout plans a cluster on a block of ports that is free on all of its nodes.
func (w work) layout(config Config, controller adapter.Member, workers []adapter.Member, facts facts) (Cluster, error) {
	port, err := freeBlock(w.Instance().ID, facts.listening)
	if err != nil {
		return Cluster{}, adapter.Fail("NO_FREE_PORTS", adapter.OwnerNode, true, "%v on the cluster's nodes", err)
	}
	return plan(config, w.Instance().Version, controller, facts.hosts, port, workers)
}

// startController brings up what the controller runs, each when what it needs is ready: the database,
// slurmdbd, the associations of users that exist, slurmctld. A slurmctld that comes up before its
// accounts would hold or refuse jobs for reasons that pass; so it does not.
func (w work) startController(ctx context.Context, controller adapter.Member, cluster Cluster) error {
	if err := w.configure(ctx, controller, cluster); err != nil {
		return err
	}
	if cluster.Accounted() {
		if err := w.startAccounting(ctx, controller, cluster, ""); err != nil {
			return err
		}
	}
	w.Progress("starting controller", 45, "starting slurmctld")
	if err := w.startSlurmctld(ctx, controller, cluster, ""); err != nil {
		return err
	}
	return w.Member(controller.ID, adapter.MemberActive, adapter.Healthy, controllerDetail(cluster))
}

func controllerDetail(cluster Cluster) map[string]any {
	detail := map[string]any{
		"host": cluster.Host, "port": cluster.Port, "cluster": cluster.ClusterName, "version": cluster.Version,
		"accounting": "slurmdbd",
	}
	if !cluster.Accounted() {
		detail["accounting"] = "off: the configuration says so, and jobs are only in the completion log"
	}
	return detail
}

// configure writes the controller's files.
func (w work) configure(ctx context.Context, controller adapter.Member, cluster Cluster) error {
	slurmConf, err := renderSlurmConf(cluster)
	if err != nil {
		return err
	}
	cgroupConf, err := renderCgroupConf()
	if err != nil {
		return err
	}
	return w.steps(ctx, controller,
		step{"slurm-dirs", shell(`install -d -m 0755 /etc/slurm && install -d -o slurm -g slurm -m 0755 /var/lib/slurm /var/lib/slurm/slurmctld /var/log/slurm && install -d -o ` + jobUser + ` -m 0755 ` + jobDir)},
		step{"slurm-conf", adapter.WriteFile{Path: slurmConfPath, Mode: "0644", Content: slurmConf}},
		step{"cgroup-conf", adapter.WriteFile{Path: "/etc/slurm/cgroup.conf", Mode: "0644", Content: cgroupConf}},
	)
}

const slurmConfPath = "/etc/slurm/slurm.conf"

// startSlurmctld starts it and waits until it answers and, with accounting, until slurmdbd knows where
// it is: only then does it hear of accounts that change. The steps' names end with round.
func (w work) startSlurmctld(ctx context.Context, controller adapter.Member, cluster Cluster, round string) error {
	slurmctld := daemon("slurmctld", "", "slurmctld", "-D")
	slurmctld.StopTimeoutSeconds = 60 // it saves its state
	list := []step{
		{"slurmctld" + round, slurmctld},
		{"slurmctld-up" + round, probe(60*time.Second, slurmctldUp)},
	}
	if cluster.Accounted() {
		list = append(list, step{"registered" + round, probe(60*time.Second, registered(cluster.ClusterName))})
	}
	if err := w.steps(ctx, controller, list...); err != nil {
		return w.withLog(ctx, controller, "slurmctld", err)
	}
	return nil
}

// slurmctldUp succeeds when slurmctld answers.
const slurmctldUp = `timeout 10 scontrol ping | grep -q "is UP"`

// prove runs a job across all workers: addresses, ports and keys are then right everywhere.
func (w work) prove(ctx context.Context, controller adapter.Member, workers []adapter.Member) error {
	count := fmt.Sprint(len(workers))
	task := adapter.RunCommand{Command: []string{"timeout", "60", "srun", "-N" + count, "-n" + count, "sh", "-c", `echo "$SLURMD_NODENAME"`}}
	result, err := w.Do(ctx, controller, "first-job", task, adapter.Within(90*time.Second))
	if err != nil {
		return err
	}
	answered := strings.Fields(result.Stdout)
	slices.Sort(answered)
	if len(slices.Compact(answered)) != len(workers) {
		return adapter.Fail("FIRST_JOB_FAILED", adapter.OwnerAdapter, true, "the first job ran on %v, not on all %d workers", answered, len(workers))
	}
	return w.Evidence("firstJob", map[string]any{"answered": answered})
}
