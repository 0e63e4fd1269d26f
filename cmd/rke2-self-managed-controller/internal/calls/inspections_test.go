package calls

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/machine"
	"github.com/gpuaas/app-platform/cmd/rke2-self-managed-controller/internal/people"
	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

var rewrite = flag.Bool("update", false, "write the inspections into the manifest")

func TestTheManifestNamesWhatIsRunWhileTheAdapterOnlyLooks(t *testing.T) {
	t.Parallel()
	adaptertest.Inspections(t, "../../manifest.json", *rewrite,
		adaptertest.Inspection{Name: "nodes", Command: machine.NodesCommand().Command},
		adaptertest.Inspection{Name: "pods", Command: machine.PodsOn("{node}").Command,
			Arguments: []adaptertest.InspectionArgument{{Name: "node", Type: "word"}}},
		adaptertest.Inspection{Name: "events", Command: eventsCommand().Command},
		adaptertest.Inspection{Name: "gpus", Command: machine.GPUPods().Command},
		adaptertest.Inspection{Name: "plane", Command: machine.LookAtPlane(adapter.Member{ID: "{node}"}).Command,
			Arguments: []adaptertest.InspectionArgument{{Name: "node", Type: "word"}}},
		adaptertest.Inspection{Name: "authority", Command: people.Authority().Command},
		adaptertest.Inspection{Name: "snapshots", Command: machine.ListSnapshots().Command},
		adaptertest.Inspection{Name: "release", Command: machine.VersionOf(machine.Config{}).Command},
	)
}

func TestTheManifestIsValidOncePublished(t *testing.T) {
	t.Parallel()
	compiled, err := jsonschema.NewCompiler().Compile("../../../../domain/manifest/manifest.schema.json")
	require.NoError(t, err)
	text, err := os.ReadFile("../../manifest.json")
	require.NoError(t, err)
	digest := "sha256:" + strings.Repeat("a", 64)
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.NewReplacer(
		`"ref": ""`, `"ref": "registry.example/apps/controller@`+digest+`"`, `"digest": ""`, `"digest": "`+digest+`"`,
	).Replace(string(text))))
	require.NoError(t, err)
	require.NoError(t, compiled.Validate(document))
}
