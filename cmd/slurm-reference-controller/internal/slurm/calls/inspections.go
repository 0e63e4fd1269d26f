package calls

import (
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/backup"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/daemons"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/report"
	"github.com/gpuaas/app-platform/sdk/adapter"
)

// The commands of calls that only look. The manifest names each under "inspections"; a test compares them, since a
// command that is not named is refused once an operator has narrowed the adapter's calls.

func observeCommand() adapter.RunCommand { return daemons.Shell(observeScript) }

func stateCommand(told detail) adapter.RunCommand {
	if told < telling {
		return daemons.Shell(stateScript)
	}
	return daemons.Shell(backup.AnyScript + " || " + stateScript)
}

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
	switch {
	case told == detailed:
		command = []string{"sh", "-c", detailScript, "list", report.DetailFormat()}
	case told >= peopled:
		command = []string{"sh", "-c", detailScript, "list", report.PeopleFormat()}
	}
	if id != "" {
		command = append(command, id)
	}
	return adapter.RunCommand{Command: command}
}

// outputCommand reads the last bytes that a job of the user nobody has written, as that user: a job may have put a link
// there.
func outputCommand(job, bytes string) adapter.RunCommand {
	return adapter.RunCommand{User: layout.JobUser, Command: []string{"sh", "-c", `test ! -r "$1" || tail -c "$2" "$1"`,
		"output", outputPath(job), bytes}}
}

// partCommand reads a part, from a byte on, of what a job of the user nobody has written, and may wait for it.
func partCommand(job, suffix, from, bytes, wait string) adapter.RunCommand {
	return adapter.RunCommand{User: layout.JobUser, Command: []string{"sh", "-c", partScript, "part",
		layout.JobDir + "/" + job + suffix, job, from, bytes, wait}}
}

// ofPerson runs the script $4 as the account with the id $1, and no other's, on a file in its home: $2, or $3 where
// only $3 exists.
const ofPerson = `id=$1 script=$4 home=$(getent passwd "$1" | cut -d : -f 6)
test "$id" -ge 1000 && test "$id" -le 59999 && test "${home#/home/}" != "$home" || exit 1
one=$home/$2 other=$home/$3
shift 4
exec setpriv --reuid="$id" --regid="$id" --clear-groups sh -c "$script" part "$one" "$other" "$@"`

// choose leaves the one file of two.
const choose = `one=$1 other=$2
shift 2
test ! -e "$one" && test -e "$other" && one=$other
set -- "$one" "$@"
`

// written is what a job has written, by the names that begin its files. The id is empty for a job of the user nobody.
type written struct{ id, job, own, native string }

// command runs a script on one of the job's files, with more arguments.
func (w written) command(suffix, script string, arguments ...string) adapter.RunCommand {
	return adapter.RunCommand{Command: append([]string{"sh", "-c", ofPerson, "person", w.id, w.own + suffix,
		w.native + suffix, choose + script}, arguments...)}
}

// personOutputCommand reads the last bytes of what a person's job has written, as that person.
func personOutputCommand(of written, bytes string) adapter.RunCommand {
	return of.command(outputSuffix, `test ! -r "$1" || tail -c "$2" "$1"`, bytes)
}

// personPartCommand reads a part of what a person's job has written, as that person, and may wait for it.
func personPartCommand(of written, suffix, from, bytes, wait string) adapter.RunCommand {
	return of.command(suffix, partScript, of.job, from, bytes, wait)
}

func accountCommand(told detail, days, limit string) adapter.RunCommand {
	fields := report.AccountFields
	if told >= detailed {
		fields = report.DetailedAccountFields
	}
	return adapter.RunCommand{Command: []string{"sh", "-c", accountScript(fields), "account", days, limit}}
}
