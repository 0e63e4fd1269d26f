package daemons

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/login"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// Facts are what the nodes report of themselves.
type Facts struct {
	Hosts     map[string]string // host name by member
	Listening []int
	// Devices are the device nodes of GPUs that a member sees, by member.
	Devices map[string][]string
}

// requirements are the programs that a member needs, by component. accountingRequirements are those
// that the controller needs for accounting.
var requirements = map[string][]string{
	layout.ComponentController: {
		"munged", "munge", "slurmctld", "scontrol", "sinfo", "squeue", "sbatch", "scancel", "srun",
	},
	layout.ComponentWorker: {"munged", "munge", "slurmd", "scontrol", "sinfo", "srun"},
	layout.ComponentLogin: append(login.Requirements(), "munged", "munge", "scontrol", "sinfo", "squeue", "sbatch",
		"scancel", "srun"),
}

var accountingRequirements = []string{"mariadbd", "mariadb-install-db", "mariadb", "slurmdbd", "sacctmgr", "sacct"}

func requires(member adapter.Member, config layout.Config) []string {
	if member.ComponentKey == layout.ComponentController && config.Accounted() {
		return slices.Concat(requirements[member.ComponentKey], accountingRequirements)
	}
	return requirements[member.ComponentKey]
}

// lookScript prints the host name, then the device nodes of GPUs, then the listening ports. It exits
// with 3 when programs are missing and with 4 when the member has no namespaces of its own.
const lookScript = `test -z "$GPUAAS_MEMBER_ROOT" || exit 4
missing=
for program in "$@"; do command -v "$program" > /dev/null || missing="$missing $program"; done
if test -n "$missing"; then echo "$missing" >&2; exit 3; fi
uname -n
for device in /dev/nvidia[0-9]* /dev/dri/renderD[0-9]*; do test ! -c "$device" || echo "$device"; done
cat /proc/net/tcp /proc/net/tcp6 2> /dev/null | while read -r _ local _ state _; do ` +
	`test "$state" != 0A || echo "${local##*:}"; done | sort -u`

// Look reads from every member's node its host name, listening ports, GPUs and programs. It fails when a
// node cannot carry its member.
func (w Work) Look(ctx context.Context, members []adapter.Member, config layout.Config) (Facts, error) {
	found := Facts{Hosts: make(map[string]string, len(members)), Devices: make(map[string][]string, len(members))}
	var mu sync.Mutex
	err := w.Each(ctx, members, func(ctx context.Context, member adapter.Member) error {
		command := append([]string{"sh", "-c", lookScript, "look"}, requires(member, config)...)
		result, err := w.Try(ctx, member, "look", adapter.RunCommand{Command: command})
		if err == nil {
			err = unfit(member, result)
		}
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		return found.take(member, result.Stdout)
	})
	slices.Sort(found.Listening)
	return found, err
}

// take adds what lookScript printed in a member.
func (f *Facts) take(member adapter.Member, printed string) error {
	host, rest, _ := strings.Cut(printed, "\n")
	if !layout.ValidHost(host) {
		return adapter.Fail("HOST_NAME_INVALID", adapter.OwnerNode, false,
			"node %s has the host name %q, which is not valid", member.Node.Name, host)
	}
	var devices, ports []string
	for _, word := range strings.Fields(rest) {
		if strings.HasPrefix(word, "/") {
			devices = append(devices, word)
		} else {
			ports = append(ports, word)
		}
	}
	listening, err := layout.ParsePorts(strings.Join(ports, "\n"))
	if err != nil {
		return err
	}
	layout.SortDevices(devices)
	f.Hosts[member.ID], f.Devices[member.ID] = host, devices
	f.Listening = append(f.Listening, listening...)
	return nil
}

// unfit returns the error of a node that cannot carry a member; nil when it can.
func unfit(member adapter.Member, result adapter.TaskResult) error {
	code := 0
	if result.ExitCode != nil {
		code = *result.ExitCode
	}
	switch {
	case result.State == adapter.TaskSucceeded:
		return nil
	case code == 3:
		return adapter.Fail(
			"PACKAGES_MISSING",
			adapter.OwnerNode,
			true,
			"node %s does not have%s; install slurmctld, slurmd, slurm-client and munge on it, "+
				"for accounting (which the config may turn off) "+
				"slurmdbd, slurm-wlm-mysql-plugin, mariadb-server-core and mariadb-client-core, and for logins "+
				"openssh-server",
			member.Node.Name,
			strings.TrimRight(result.Stderr, "\n"),
		)
	case code == 4:
		return adapter.Fail("NAMESPACES_MISSING", adapter.OwnerNode, false,
			"node %s runs members as plain processes; slurm needs members with namespaces of their own",
			member.Node.Name)
	}
	return adapter.Fail(
		adapter.CodeNodeTask, adapter.OwnerNode, true, "the check of node %s ended %s: %s",
		member.Node.Name, result.State, result.Message,
	)
}
