package oci

import (
	"testing"

	"github.com/gpuaas/app-platform/sdk/adaptertest"
)

func TestTheManifestNamesWhatIsRunWhileTheAdapterOnlyLooks(t *testing.T) {
	t.Parallel()
	adaptertest.Inspections(t, "../../manifest.json", *update,
		adaptertest.Inspection{Name: "ready", Command: verb("ready").Command},
		adaptertest.Inspection{Name: "usage", Command: usageCommand().Command},
		adaptertest.Inspection{Name: "logs", Command: verb("logs", "{lines}").Command,
			Arguments: []adaptertest.InspectionArgument{{Name: "lines", Type: "integer"}}})
}
