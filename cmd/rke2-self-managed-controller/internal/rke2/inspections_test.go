package rke2

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

var rewrite = flag.Bool("update", false, "write the inspections into the manifest")

func TestTheManifestNamesWhatIsRunWhileTheAdapterOnlyLooks(t *testing.T) {
	t.Parallel()
	adaptertest.Inspections(t, "../../manifest.json", *rewrite,
		adaptertest.Inspection{Name: "nodes", Command: nodesCommand().Command},
		adaptertest.Inspection{Name: "pods", Command: podsOn("{node}").Command,
			Arguments: []adaptertest.InspectionArgument{{Name: "node", Type: "word"}}})
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
