package daemons

import (
	"context"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/people"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// StartController starts what the controller runs, each when what it needs is ready: the database,
// slurmdbd, the associations of users that exist, slurmctld. A slurmctld that comes up before its
// accounts would hold or refuse jobs for reasons that pass.
func (w Work) StartController(ctx context.Context, controller adapter.Member, cluster layout.Cluster) error {
	if err := w.configure(ctx, controller, cluster); err != nil {
		return err
	}
	if err := w.Steps(ctx, controller, Step{"people", Shell(people.MakeAll)}); err != nil {
		return err
	}
	if cluster.Accounted() {
		if err := w.StartAccounting(ctx, controller, cluster, ""); err != nil {
			return err
		}
	}
	w.Progress("starting controller", 45, "starting slurmctld")
	if err := w.StartSlurmctld(ctx, controller, cluster, ""); err != nil {
		return err
	}
	return w.Member(controller.ID, adapter.MemberActive, adapter.Healthy, ControllerDetail(cluster))
}

// ControllerDetail returns the details that a controller's member reports.
func ControllerDetail(cluster layout.Cluster) map[string]any {
	detail := map[string]any{
		"host": cluster.Host, "port": cluster.Port, "cluster": cluster.ClusterName, "version": cluster.Version,
		"accounting": "slurmdbd",
	}
	if !cluster.Accounted() {
		detail["accounting"] = "off: the configuration disables it, and jobs are only in the completion log"
	}
	return detail
}

// controllerDirs creates the controller's directories. What it finds there may be of a node on which Slurm's user had
// another number.
const controllerDirs = `install -d -m 0755 /etc/slurm && ` +
	`install -d -o slurm -g slurm -m 0755 /var/lib/slurm /var/lib/slurm/slurmctld /var/log/slurm && ` +
	`install -d -o ` + layout.JobUser + ` -m 0755 ` + layout.JobDir + `
for dir in ` + layout.StateDir + `/slurmctld ` + DatabaseDir + `; do
    test ! -e "$dir" || test -z "$(find "$dir" ! -user slurm -print -quit)" || chown -R slurm:slurm "$dir" || exit 1
done`

// configure writes the controller's files.
func (w Work) configure(ctx context.Context, controller adapter.Member, cluster layout.Cluster) error {
	slurmConf, err := layout.RenderSlurmConf(cluster)
	if err != nil {
		return err
	}
	cgroupConf, err := layout.RenderCgroupConf()
	if err != nil {
		return err
	}
	return w.Steps(ctx, controller,
		Step{"slurm-dirs", Shell(controllerDirs)},
		Step{"slurm-conf", adapter.WriteFile{Path: layout.SlurmConfPath, Mode: "0644", Content: slurmConf}},
		Step{"cgroup-conf", adapter.WriteFile{Path: "/etc/slurm/cgroup.conf", Mode: "0644", Content: cgroupConf}},
	)
}

// StartSlurmctld writes gres.conf, starts slurmctld and waits until it answers and, with accounting, until slurmdbd
// knows where it is: only from then on is slurmctld notified of accounts that change. The names of
// the steps end with round.
func (w Work) StartSlurmctld(
	ctx context.Context,
	controller adapter.Member,
	cluster layout.Cluster,
	round string,
) error {
	list := append([]Step{
		{"gres-conf" + round, Shell(layout.GresScript)},
		{"keep-conf" + round, Shell(layout.KeepConf)},
	}, slurmctld(cluster.Config, round)...)
	if err := w.Steps(ctx, controller, list...); err != nil {
		return w.WithLog(ctx, controller, "slurmctld", err)
	}
	return nil
}

// slurmctld starts slurmctld and waits until it serves.
func slurmctld(config layout.Config, round string) []Step {
	task := daemon("slurmctld", "", "slurmctld", "-D")
	task.StopTimeoutSeconds = 60 // it saves its state
	list := []Step{
		{"slurmctld" + round, task},
		{"slurmctld-up" + round, Probe(60*time.Second, SlurmctldUp)},
	}
	if config.Accounted() {
		list = append(list, Step{"registered" + round, Probe(60*time.Second, registered(config.ClusterName))})
	}
	return list
}

// ControllerProcesses are what a controller runs, in the order in which they end: slurmctld hands its records on to
// slurmdbd, and that to its database.
func ControllerProcesses() []string { return []string{"slurmctld", "slurmdbd", "mariadbd", "munged"} }

// Again starts what a controller runs, except munged, over the files it has, each daemon after those that it waits for.
// The steps in more run once the database is ready; a cluster without accounting has no database and skips them.
func Again(config layout.Config, round string, more ...Step) []Step {
	if !config.Accounted() {
		return slurmctld(config, round)
	}
	return slices.Concat([]Step{
		{"mariadbd" + round, mariadbd()},
		{"database-ready" + round, Probe(60*time.Second, databaseReady)},
	}, more, []Step{
		{"slurmdbd" + round, daemon("slurmdbd", "slurm", "slurmdbd", "-D")},
		{"slurmdbd-ready" + round, Probe(60*time.Second, SlurmdbdReady)},
	}, slurmctld(config, round))
}

// SavedState is the file that slurmctld writes first of what it saves: without it, it starts an empty cluster.
const SavedState = "/var/lib/slurm/slurmctld/clustername"

// SlurmctldUp succeeds when slurmctld answers.
const SlurmctldUp = `timeout 10 scontrol ping | grep -q "is UP"`
