package calls

import (
	"flag"
	"testing"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/accounts"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/backup"
	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/layout"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

var rewrite = flag.Bool("update", false, "write the inspections into the manifest")

func TestTheManifestNamesWhatIsRunWhileTheAdapterOnlyLooks(t *testing.T) {
	t.Parallel()
	named := func(name string, task adapter.RunCommand, arguments ...string) adaptertest.Inspection {
		one := adaptertest.Inspection{Name: name, Command: task.Command, User: task.User}
		for _, argument := range arguments {
			one.Arguments = append(one.Arguments, adaptertest.InspectionArgument{Name: argument, Type: "integer"})
		}
		return one
	}
	of := written{id: "{id}", job: "{job}", own: "{own}", native: "{native}"}
	nobodys := written{job: "{job}", own: layout.JobDir + "/{job}", native: "{native}"}
	typed := func(one adaptertest.Inspection) adaptertest.Inspection {
		for i, argument := range one.Arguments {
			switch argument.Name {
			case "own", "native":
				one.Arguments[i].Type = "word"
			case "stream":
				one.Arguments[i].Type, one.Arguments[i].Values = "choice", []string{streamOutput, streamErrors}
			}
		}
		return one
	}
	part := []string{"{from}", "{bytes}", "{wait}"}
	adaptertest.Inspections(t, "../../../manifest.json", *rewrite,
		named("observe", observeCommand()), named("state", stateCommand(telling)), named("login", loginCommand()),
		named("backups", backup.ListCommand(backup.BesideDir)),
		named("backups.volume", backup.ListCommand(backup.VolumeDir)),
		named("plan", planCommand()), named("nodes", nodesCommand(telling)),
		named("queue", listCommand(telling, "")), named("job", listCommand(telling, "{job}"), "job"),
		typed(named("output", nobodys.locatedCommand(locatedEndScript, streamOutput, "{bytes}"),
			"job", "native", "bytes")),
		typed(named("part", nobodys.locatedCommand(locatedPartScript, "{stream}", part...),
			"job", "stream", "native", "from", "bytes", "wait")),
		typed(named("output.person", of.locatedCommand(locatedEndScript, streamOutput, "{bytes}"),
			"id", "job", "own", "native", "bytes")),
		typed(named("part.person", of.locatedCommand(locatedPartScript, "{stream}", part...),
			"id", "job", "stream", "own", "native", "from", "bytes", "wait")),
		named("accounts", accountCommand(telling, "{days}", "{limit}"), "days", "limit"),
		named("usage", accounts.Command("{since}", "{line}"), "since", "line"))
}
