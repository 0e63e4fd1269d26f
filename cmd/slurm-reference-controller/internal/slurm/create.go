package slurm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// creation brings a cluster up. Its steps are named and idempotent: a resumed creation walks
// through them again and gets the old results.
type creation struct {
	*adapter.Run
	keys keyring
}

func (c creation) do(ctx context.Context) error {
	var config Config
	if err := c.Config(&config); err != nil {
		return err
	}
	controller, workers := c.Of(componentController)[0], c.Of(componentWorker)
	all := append([]adapter.Member{controller}, workers...)

	c.Progress("checking nodes", 5, fmt.Sprintf("looking at the nodes of %d members", len(all)))
	facts, err := c.look(ctx, all)
	if err != nil {
		return err
	}
	port, err := freeBlock(c.Instance().ID, facts.listening)
	if err != nil {
		return adapter.Fail("NO_FREE_PORTS", adapter.OwnerNode, true, "%v on the cluster's nodes", err)
	}
	cluster := plan(config, controller, facts.hosts, port, workers)

	c.Progress("distributing keys", 20, "starting munge on every member")
	if err := c.Each(ctx, all, c.startMunge); err != nil {
		return err
	}
	c.Progress("starting controller", 40, "starting slurmctld")
	if err := c.startController(ctx, controller, cluster); err != nil {
		return err
	}
	c.Progress("starting workers", 60, fmt.Sprintf("starting %d slurmd", len(workers)))
	if err := c.Each(ctx, workers, func(ctx context.Context, worker adapter.Member) error {
		return c.startWorker(ctx, worker, cluster)
	}); err != nil {
		return err
	}
	c.Progress("proving", 85, "running a first job on every worker")
	return c.prove(ctx, controller, workers)
}

// facts are what the nodes say of themselves.
type facts struct {
	hosts     map[string]string // host name by member
	listening []int
}

// requirements are the programs a member needs, by component.
var requirements = map[string][]string{
	componentController: {"munged", "munge", "slurmctld", "scontrol", "sinfo", "squeue", "sbatch", "scancel", "srun"},
	componentWorker:     {"munged", "munge", "slurmd", "scontrol", "sinfo", "srun"},
}

// lookScript prints the host name, then the listening ports; it exits with 3 when programs are
// missing and with 4 when the member has no namespaces of its own.
const lookScript = `test -z "$GPUAAS_MEMBER_ROOT" || exit 4
missing=
for program in "$@"; do command -v "$program" > /dev/null || missing="$missing $program"; done
if test -n "$missing"; then echo "$missing" >&2; exit 3; fi
uname -n
cat /proc/net/tcp /proc/net/tcp6 2> /dev/null | while read -r _ local _ state _; do test "$state" != 0A || echo "${local##*:}"; done | sort -u`

// look asks every member's node for its host name, listening ports and programs.
func (c creation) look(ctx context.Context, members []adapter.Member) (facts, error) {
	results := make(chan adapter.TaskResult, len(members))
	hosts := make(chan [2]string, len(members))
	err := c.Each(ctx, members, func(ctx context.Context, member adapter.Member) error {
		command := append([]string{"sh", "-c", lookScript, "look"}, requirements[member.ComponentKey]...)
		result, err := c.Try(ctx, member, "look", adapter.RunCommand{Command: command})
		if err == nil {
			err = unfit(member, result)
		}
		if err != nil {
			return err
		}
		host, ports, _ := strings.Cut(result.Stdout, "\n")
		if !hostPattern.MatchString(host) {
			return adapter.Fail("HOST_NAME_INVALID", adapter.OwnerNode, false, "node %s calls itself %q", member.Node.Name, host)
		}
		hosts <- [2]string{member.ID, host}
		result.Stdout = ports
		results <- result
		return nil
	})
	if err != nil {
		return facts{}, err
	}
	return gather(hosts, results)
}

func gather(hosts chan [2]string, results chan adapter.TaskResult) (facts, error) {
	found := facts{hosts: make(map[string]string, len(hosts))}
	close(hosts)
	close(results)
	for pair := range hosts {
		found.hosts[pair[0]] = pair[1]
	}
	for result := range results {
		ports, err := parsePorts(result.Stdout)
		if err != nil {
			return facts{}, err
		}
		found.listening = append(found.listening, ports...)
	}
	slices.Sort(found.listening)
	return found, nil
}

// unfit says why a node cannot carry a member.
func unfit(member adapter.Member, result adapter.TaskResult) error {
	code := 0
	if result.ExitCode != nil {
		code = *result.ExitCode
	}
	switch {
	case result.State == adapter.TaskSucceeded:
		return nil
	case code == 3:
		return adapter.Fail("PACKAGES_MISSING", adapter.OwnerNode, true,
			"node %s lacks%s; install slurmctld, slurmd, slurm-client and munge on it", member.Node.Name, strings.TrimRight(result.Stderr, "\n"))
	case code == 4:
		return adapter.Fail("NAMESPACES_MISSING", adapter.OwnerNode, false,
			"node %s runs members as plain processes; slurm needs members with namespaces of their own", member.Node.Name)
	}
	return adapter.Fail(adapter.CodeNodeTask, adapter.OwnerNode, true, "looking at node %s ended %s: %s", member.Node.Name, result.State, result.Message)
}

// startMunge gives a member the cluster's key and starts munged.
func (c creation) startMunge(ctx context.Context, member adapter.Member) error {
	if err := c.Member(member.ID, adapter.MemberJoining, adapter.HealthUnknown, nil); err != nil {
		return err
	}
	key, err := c.keys.munge(c.Instance().ID)
	if err != nil {
		return err
	}
	sealed, err := adapter.Seal(member.Node.SealingKey, c.Instance().ID, key)
	if err != nil {
		return adapter.Fail("SEALING_KEY_INVALID", adapter.OwnerPlatform, false, "node %s: %v", member.Node.Name, err)
	}
	return c.steps(ctx, member,
		step{"munge-dirs", shell(`install -d -o munge -g munge -m 0700 /etc/munge /var/log/munge && install -d -o munge -g munge -m 0711 /var/lib/munge && install -d -o munge -g munge -m 0755 /run/munge`)},
		step{"munge-key", adapter.WriteFile{Path: "/etc/munge/munge.key", Mode: "0400", Owner: "munge:munge", Sealed: sealed}},
		step{"munged", daemon("munged", "munge", "munged", "-F")},
		step{"munge-ready", probe(20*time.Second, `munge -n | unmunge > /dev/null`)},
	)
}

func (c creation) startController(ctx context.Context, controller adapter.Member, cluster Cluster) error {
	slurmConf, err := renderSlurmConf(cluster)
	if err != nil {
		return err
	}
	cgroupConf, err := renderCgroupConf()
	if err != nil {
		return err
	}
	err = c.steps(ctx, controller,
		step{"slurm-dirs", shell(`install -d -m 0755 /etc/slurm && install -d -o slurm -g slurm -m 0755 /var/lib/slurm /var/lib/slurm/slurmctld /var/log/slurm && install -d -o ` + jobUser + ` -m 0755 ` + jobDir)},
		step{"slurm-conf", adapter.WriteFile{Path: "/etc/slurm/slurm.conf", Mode: "0644", Content: slurmConf}},
		step{"cgroup-conf", adapter.WriteFile{Path: "/etc/slurm/cgroup.conf", Mode: "0644", Content: cgroupConf}},
		step{"slurmctld", daemon("slurmctld", "", "slurmctld", "-D")},
		step{"slurmctld-up", probe(60*time.Second, `scontrol ping | grep -q "is UP"`)},
	)
	if err != nil {
		return c.withLog(ctx, controller, "slurmctld", err)
	}
	detail := map[string]any{"host": cluster.Host, "port": cluster.Port, "cluster": cluster.ClusterName}
	return c.Member(controller.ID, adapter.MemberActive, adapter.Healthy, detail)
}

// startWorker starts a worker's slurmd, which fetches its configuration from slurmctld.
func (c creation) startWorker(ctx context.Context, worker adapter.Member, cluster Cluster) error {
	name := workerName(worker.Index)
	server := fmt.Sprintf("%s:%d", cluster.Address, cluster.Port)
	err := c.steps(ctx, worker,
		step{"slurm-dirs", shell(`install -d -m 0755 /etc/slurm /var/lib/slurm /var/lib/slurm/slurmd /var/log/slurm && install -d -o ` + jobUser + ` -m 0755 ` + jobDir)},
		step{"node-name", adapter.WriteFile{Path: nodeNameFile, Mode: "0644", Content: name + "\n"}},
		step{"slurmd", daemon("slurmd", "", "slurmd", "-D", "-N", name, "--conf-server", server)},
		step{"registered", probe(60*time.Second, workerReady)},
	)
	if err != nil {
		return c.withLog(ctx, worker, "slurmd", err)
	}
	detail := map[string]any{"slurmNode": name, "port": workerPort(cluster.Port, worker.Index)}
	return c.Member(worker.ID, adapter.MemberActive, adapter.Healthy, detail)
}

// nodeNameFile tells a worker's own probes its Slurm name.
const nodeNameFile = "/etc/slurm/node-name"

// workerReady succeeds on a worker that slurmctld can give jobs to.
const workerReady = `sinfo -h -n "$(cat ` + nodeNameFile + `)" -o %T | grep -Eqx "idle|mixed|allocated|completing"`

// prove runs a job across all workers: addresses, ports and keys are then right everywhere.
func (c creation) prove(ctx context.Context, controller adapter.Member, workers []adapter.Member) error {
	count := fmt.Sprint(len(workers))
	task := adapter.RunCommand{Command: []string{"timeout", "60", "srun", "-N" + count, "-n" + count, "sh", "-c", `echo "$SLURMD_NODENAME"`}}
	result, err := c.Do(ctx, controller, "first-job", task, adapter.Within(90*time.Second))
	if err != nil {
		return err
	}
	answered := strings.Fields(result.Stdout)
	slices.Sort(answered)
	if len(slices.Compact(answered)) != len(workers) {
		return adapter.Fail("FIRST_JOB_FAILED", adapter.OwnerAdapter, true, "the first job ran on %v, not on all %d workers", answered, len(workers))
	}
	return c.Evidence("firstJob", map[string]any{"answered": answered})
}
