package daemons

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// mungeDirs creates munged's directories. It refuses to start when others may write to them.
const mungeDirs = `install -d -o munge -g munge -m 0700 /etc/munge /var/log/munge && ` +
	`install -d -o munge -g munge -m 0711 /var/lib/munge && install -d -o munge -g munge -m 0755 /run/munge`

// workerDirs creates a worker's directories.
const workerDirs = `install -d -m 0755 /etc/slurm /var/lib/slurm /var/lib/slurm/slurmd /var/log/slurm && ` +
	`install -d -o ` + layout.JobUser + ` -m 0755 ` + layout.JobDir

// StartMunge gives a member the cluster's key and starts munged.
func (w Work) StartMunge(ctx context.Context, member adapter.Member) error {
	if err := w.Member(member.ID, adapter.MemberJoining, adapter.HealthUnknown, nil); err != nil {
		return err
	}
	key, err := w.Keys.munge(w.Instance().ID)
	if err != nil {
		return err
	}
	sealed, err := w.seal(member, string(key))
	if err != nil {
		return err
	}
	keyFile := adapter.WriteFile{Path: "/etc/munge/munge.key", Mode: "0400", Owner: "munge:munge", Sealed: sealed}
	if err := w.NameController(ctx, member, ""); err != nil {
		return err
	}
	return w.Steps(ctx, member,
		Step{"munge-dirs", Shell(mungeDirs)},
		Step{"munge-key", keyFile},
		Step{"munged", daemon("munged", "munge", "munged", "-F")},
		Step{"munge-ready", Probe(20*time.Second, `munge -n | unmunge > /dev/null`)},
	)
}

// StartWorker starts a worker's slurmd, which fetches its configuration from slurmctld.
func (w Work) StartWorker(ctx context.Context, member adapter.Member, cluster layout.Cluster) error {
	worker, ok := cluster.Of(member.ID)
	if !ok {
		return fmt.Errorf("member %s has no line in slurm.conf", member.ID)
	}
	list := append([]Step{{"slurm-dirs", Shell(workerDirs)}}, WorkerFiles(worker)...)
	list = append(list,
		Step{"slurmd", Slurmd(cluster, worker)},
		Step{"registered", Probe(60*time.Second, WorkerReady)},
	)
	if err := w.Steps(ctx, member, list...); err != nil {
		return w.WithLog(ctx, member, "slurmd", err)
	}
	return nil
}

// slurmdScript raises what slurmd may lock in memory to what the node allows, for its jobs have slurmd's bound: a
// fabric's driver locks what it sends from.
const slurmdScript = `ulimit -S -l "$(ulimit -H -l)"; exec slurmd -D -N "$1" --conf-server "$2"`

// Slurmd returns the task that starts a worker's slurmd, which fetches its configuration from slurmctld.
func Slurmd(cluster layout.Cluster, worker layout.Worker) adapter.StartProcess {
	return daemon("slurmd", "", "sh", "-c", slurmdScript, "slurmd", worker.Name(), cluster.ConfServer())
}

// InService reports a worker that takes jobs.
func (w Work) InService(member adapter.Member, cluster layout.Cluster) error {
	worker, _ := cluster.Of(member.ID)
	return w.Member(member.ID, adapter.MemberActive, adapter.Healthy, WorkerDetail(cluster, worker))
}

// WorkerDetail returns the details that a worker's member reports.
func WorkerDetail(cluster layout.Cluster, worker layout.Worker) map[string]any {
	return map[string]any{
		"slurmNode": worker.Name(), "port": layout.WorkerPort(cluster.Port, worker.Slot),
		"version": cluster.Version, "gpus": worker.GPUs,
	}
}

// nodeNameFile holds a worker's Slurm name for its own probes.
const nodeNameFile = "/etc/slurm/node-name"

// WorkerReady succeeds on a worker that slurmctld reaches, also on one that takes no new jobs.
const WorkerReady = `timeout 10 sinfo -h -n "$(cat ` + nodeNameFile + `)" -o %T | ` +
	`grep -Eqx "idle|mixed|allocated|completing|draining|drained"`
