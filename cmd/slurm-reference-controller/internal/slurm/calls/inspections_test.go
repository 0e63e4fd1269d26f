package calls

import (
	"flag"
	"testing"

	"github.com/gpuaas/app-platform/cmd/slurm-reference-controller/internal/slurm/accounts"
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
	words := func(one adaptertest.Inspection) adaptertest.Inspection {
		for i, argument := range one.Arguments {
			if argument.Name == "own" || argument.Name == "native" {
				one.Arguments[i].Type = "word"
			}
		}
		return one
	}
	adaptertest.Inspections(t, "../../../manifest.json", *rewrite,
		named("observe", observeCommand()), named("state", stateCommand()), named("login", loginCommand()),
		named("plan", planCommand()), named("nodes", nodesCommand(peopled)),
		named("queue", listCommand(peopled, "")), named("job", listCommand(peopled, "{job}"), "job"),
		named("output", outputCommand("{job}", "{bytes}"), "job", "bytes"),
		named("part", partCommand("{job}", outputSuffix, "{from}", "{bytes}", "{wait}"), "job", "from", "bytes", "wait"),
		named("errors", partCommand("{job}", errorsSuffix, "{from}", "{bytes}", "{wait}"), "job", "from", "bytes", "wait"),
		words(named("output.person", personOutputCommand(of, "{bytes}"), "id", "own", "native", "bytes")),
		words(named("part.person", personPartCommand(of, outputSuffix, "{from}", "{bytes}", "{wait}"),
			"id", "job", "own", "native", "from", "bytes", "wait")),
		words(named("errors.person", personPartCommand(of, errorsSuffix, "{from}", "{bytes}", "{wait}"),
			"id", "job", "own", "native", "from", "bytes", "wait")),
		named("accounts", accountCommand(peopled, "{days}", "{limit}"), "days", "limit"),
		named("usage", accounts.Command("{since}", "{line}"), "since", "line"))
}
