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
		one := adaptertest.Inspection{Name: name, Command: task.Command}
		for _, argument := range arguments {
			one.Arguments = append(one.Arguments, adaptertest.InspectionArgument{Name: argument, Type: "integer"})
		}
		return one
	}
	adaptertest.Inspections(t, "../../../manifest.json", *rewrite,
		named("observe", observeCommand()), named("state", stateCommand()),
		named("plan", planCommand()), named("nodes", nodesCommand(true)),
		named("queue", listCommand("")), named("job", listCommand("{job}"), "job"),
		named("output", outputCommand("{job}", "{bytes}"), "job", "bytes"),
		named("accounts", accountCommand("{days}", "{limit}"), "days", "limit"),
		named("usage", accounts.Command("{since}", "{line}"), "since", "line"))
}
