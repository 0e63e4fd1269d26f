package slurm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// facts are what the nodes say of themselves.
type facts struct {
	hosts     map[string]string // host name by member
	listening []int
}

// requirements are the programs a member needs, by component, and accountingRequirements those that
// the controller needs for accounting.
var requirements = map[string][]string{
	componentController: {"munged", "munge", "slurmctld", "scontrol", "sinfo", "squeue", "sbatch", "scancel", "srun"},
	componentWorker:     {"munged", "munge", "slurmd", "scontrol", "sinfo", "srun"},
}

var accountingRequirements = []string{"mariadbd", "mariadb-install-db", "mariadb", "slurmdbd", "sacctmgr", "sacct"}

func requires(member adapter.Member, config Config) []string {
	if member.ComponentKey == componentController && config.Accounted() {
		return slices.Concat(requirements[member.ComponentKey], accountingRequirements)
	}
	return requirements[member.ComponentKey]
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
func (w work) look(ctx context.Context, members []adapter.Member, config Config) (facts, error) {
	results := make(chan adapter.TaskResult, len(members))
	hosts := make(chan [2]string, len(members))
	err := w.Each(ctx, members, func(ctx context.Context, member adapter.Member) error {
		command := append([]string{"sh", "-c", lookScript, "look"}, requires(member, config)...)
		result, err := w.Try(ctx, member, "look", adapter.RunCommand{Command: command})
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
			"node %s lacks%s; install slurmctld, slurmd, slurm-client and munge on it, and for accounting (which the config may turn off) slurmdbd, slurm-wlm-mysql-plugin, mariadb-server-core and mariadb-client-core", member.Node.Name, strings.TrimRight(result.Stderr, "\n"))
	case code == 4:
		return adapter.Fail("NAMESPACES_MISSING", adapter.OwnerNode, false,
			"node %s runs members as plain processes; slurm needs members with namespaces of their own", member.Node.Name)
	}
	return adapter.Fail(adapter.CodeNodeTask, adapter.OwnerNode, true, "looking at node %s ended %s: %s", member.Node.Name, result.State, result.Message)
}

// startMunge gives a member the cluster's key and starts munged.
func (w work) startMunge(ctx context.Context, member adapter.Member) error {
	if err := w.Member(member.ID, adapter.MemberJoining, adapter.HealthUnknown, nil); err != nil {
		return err
	}
	key, err := w.keys.munge(w.Instance().ID)
	if err != nil {
		return err
	}
	sealed, err := w.seal(member, string(key))
	if err != nil {
		return err
	}
	return w.steps(ctx, member,
		step{"munge-dirs", shell(`install -d -o munge -g munge -m 0700 /etc/munge /var/log/munge && install -d -o munge -g munge -m 0711 /var/lib/munge && install -d -o munge -g munge -m 0755 /run/munge`)},
		step{"munge-key", adapter.WriteFile{Path: "/etc/munge/munge.key", Mode: "0400", Owner: "munge:munge", Sealed: sealed}},
		step{"munged", daemon("munged", "munge", "munged", "-F")},
		step{"munge-ready", probe(20*time.Second, `munge -n | unmunge > /dev/null`)},
	)
}

// startWorker starts a worker's slurmd, which fetches its configuration from slurmctld.
func (w work) startWorker(ctx context.Context, member adapter.Member, cluster Cluster) error {
	worker, ok := cluster.Of(member.ID)
	if !ok {
		return fmt.Errorf("member %s has no line in slurm.conf", member.ID)
	}
	err := w.steps(ctx, member,
		step{"slurm-dirs", shell(`install -d -m 0755 /etc/slurm /var/lib/slurm /var/lib/slurm/slurmd /var/log/slurm && install -d -o ` + jobUser + ` -m 0755 ` + jobDir)},
		step{"node-name", adapter.WriteFile{Path: nodeNameFile, Mode: "0644", Content: worker.Name() + "\n"}},
		step{"slurmd", slurmd(cluster, worker)},
		step{"registered", probe(60*time.Second, workerReady)},
	)
	if err != nil {
		return w.withLog(ctx, member, "slurmd", err)
	}
	return nil
}

func slurmd(cluster Cluster, worker Worker) adapter.StartProcess {
	return daemon("slurmd", "", "slurmd", "-D", "-N", worker.Name(), "--conf-server", fmt.Sprintf("%s:%d", cluster.Address, cluster.Port))
}

// inService reports a worker that takes jobs.
func (w work) inService(member adapter.Member, cluster Cluster) error {
	worker, _ := cluster.Of(member.ID)
	return w.Member(member.ID, adapter.MemberActive, adapter.Healthy, workerDetail(cluster, worker))
}

func workerDetail(cluster Cluster, worker Worker) map[string]any {
	return map[string]any{"slurmNode": worker.Name(), "port": workerPort(cluster.Port, worker.Slot), "version": cluster.Version}
}

// nodeNameFile tells a worker's own probes its Slurm name.
const nodeNameFile = "/etc/slurm/node-name"

// workerReady succeeds on a worker that slurmctld hears, also one that is to take no new jobs.
const workerReady = `timeout 10 sinfo -h -n "$(cat ` + nodeNameFile + `)" -o %T | grep -Eqx "idle|mixed|allocated|completing|draining|drained"`
