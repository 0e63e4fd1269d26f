package calls

import (
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/people"
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

func nodesCommand(told detail) adapter.RunCommand {
	script := report.RecordScript
	if told >= detailed {
		script += `; echo "=== gpus"; timeout 20 sinfo -a -N -h -o "` + report.GPUFormat + `"`
	}
	return daemons.Shell(script + `; echo "=== nodes"; exec timeout 20 sinfo -a -N -h -o "` + report.NodeFormat + `"`)
}

// listCommand reads all jobs, or the one of this number.
func listCommand(told detail, id string) adapter.RunCommand {
	command := []string{"sh", "-c", listScript, "list", report.QueueFormat()}
	switch told {
	case detailed:
		command = []string{"sh", "-c", detailScript, "list", report.DetailFormat()}
	case peopled:
		command = []string{"sh", "-c", detailScript, "list", report.PeopleFormat()}
	}
	if id != "" {
		command = append(command, id)
	}
	return adapter.RunCommand{Command: command}
}

// outputCommand reads the last bytes of what a job of nobody's has written, as that user: a job may have put a link
// there.
func outputCommand(job, bytes string) adapter.RunCommand {
	return adapter.RunCommand{User: layout.JobUser, Command: []string{"sh", "-c", `test ! -r "$1" || tail -c "$2" "$1"`,
		"output", outputPath(job), bytes}}
}

// partCommand reads a part of what a job of nobody's has written, from a place on, and may wait for it.
func partCommand(job, suffix, from, bytes, wait string) adapter.RunCommand {
	return adapter.RunCommand{User: layout.JobUser, Command: []string{"sh", "-c", partScript, "part",
		layout.JobDir + "/" + job + suffix, job, from, bytes, wait}}
}

// ofPerson runs a script as the account with the id $1, and no other's: $2 becomes the file of that name in its home.
const ofPerson = `id=$1 script=$3 file=$(getent passwd "$1" | cut -d : -f 6)/$2
test "$id" -ge 1000 && test "$id" -le 59999 && test "${file#/home/}" != "$file" || exit 1
shift 3
exec setpriv --reuid="$id" --regid="$id" --clear-groups sh -c "$script" part "$file" "$@"`

// personOutputCommand reads the last bytes of what a person's job has written, as that person.
func personOutputCommand(id, job, bytes string) adapter.RunCommand {
	return adapter.RunCommand{Command: []string{"sh", "-c", ofPerson, "person", id, people.OutputName(job) + outputSuffix,
		`test ! -r "$1" || tail -c "$2" "$1"`, bytes}}
}

// personPartCommand reads a part of what a person's job has written, as that person, and may wait for it.
func personPartCommand(id, job, suffix, from, bytes, wait string) adapter.RunCommand {
	return adapter.RunCommand{Command: []string{"sh", "-c", ofPerson, "person", id, people.OutputName(job) + suffix,
		partScript, job, from, bytes, wait}}
}

func accountCommand(told detail, days, limit string) adapter.RunCommand {
	fields := report.AccountFields
	if told >= detailed {
		fields = report.DetailedAccountFields
	}
	return adapter.RunCommand{Command: []string{"sh", "-c", accountScript(fields), "account", days, limit}}
}
