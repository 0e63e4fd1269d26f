package calls

import (
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// The commands of calls that only look. The manifest names each under "inspections"; a test compares them, since a
// command that is not named is refused once an operator has narrowed the adapter's calls.

func observeCommand() adapter.RunCommand { return daemons.Shell(observeScript) }

func stateCommand() adapter.RunCommand { return daemons.Shell(stateScript) }

func planCommand() adapter.RunCommand {
	return adapter.RunCommand{Command: []string{"sh", "-c", planScript, "plan", report.QueueFormat()}}
}

func nodesCommand(detailed bool) adapter.RunCommand {
	script := report.RecordScript
	if detailed {
		script += `; echo "=== gpus"; timeout 20 sinfo -a -N -h -o "` + report.GPUFormat + `"`
	}
	return daemons.Shell(script + `; echo "=== nodes"; exec timeout 20 sinfo -a -N -h -o "` + report.NodeFormat + `"`)
}

// listCommand reads all jobs, or the one of this number.
func listCommand(detailed bool, id string) adapter.RunCommand {
	command := []string{"sh", "-c", listScript, "list", report.QueueFormat()}
	if detailed {
		command = []string{"sh", "-c", detailScript, "list", report.DetailFormat()}
	}
	if id != "" {
		command = append(command, id)
	}
	return adapter.RunCommand{Command: command}
}

// outputCommand reads the last bytes of what a job has written, as the user of jobs: a job may have put a link there.
func outputCommand(job, bytes string) adapter.RunCommand {
	return adapter.RunCommand{User: layout.JobUser, Command: []string{"sh", "-c", `test ! -r "$1" || tail -c "$2" "$1"`,
		"output", outputPath(job), bytes}}
}

// partCommand reads a part of what a job has written, from a place on, and may wait for it.
func partCommand(job, suffix, from, bytes, wait string) adapter.RunCommand {
	return adapter.RunCommand{User: layout.JobUser, Command: []string{"sh", "-c", partScript, "part",
		layout.JobDir + "/" + job + suffix, job, from, bytes, wait}}
}

func accountCommand(detailed bool, days, limit string) adapter.RunCommand {
	fields := report.AccountFields
	if detailed {
		fields = report.DetailedAccountFields
	}
	return adapter.RunCommand{Command: []string{"sh", "-c", accountScript(fields), "account", days, limit}}
}
