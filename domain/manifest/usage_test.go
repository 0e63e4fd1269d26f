package manifest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/manifest"
)

// What counts capacity is metered by the platform: an app's dimension that does is refused, unless it is only shown.
func TestADimensionThatCountsCapacityIsRefused(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile("testdata/full.json")
	require.NoError(t, err)
	with := func(dimension string) []byte {
		document := strings.Replace(string(whole), `{"name": "job.seconds", "unit": "second"}`, dimension, 1)
		require.NotEqual(t, string(whole), document, "the document has another dimension")
		return []byte(document)
	}
	for dimension, path := range map[string]string{
		`{"name": "a", "unit": "GPU-hours"}`:                             "usageDimensions.0.unit",
		`{"name": "a", "unit": "gpu second"}`:                            "usageDimensions.0.unit",
		`{"name": "a", "unit": "node_minutes", "kind": "app"}`:           "usageDimensions.0.unit",
		`{"name": "a", "unit": "gpuh"}`:                                  "usageDimensions.0.unit",
		`{"name": "pod.gpu_seconds", "unit": "second"}`:                  "usageDimensions.0.name",
		`{"name": "gpu_seconds", "unit": "second", "kind": "showback"}`:  "usageDimensions.0.name",
		`{"name": "node.seconds", "unit": "second", "kind": "showback"}`: "usageDimensions.0.name",
		`{"name": "volume_gib_seconds", "unit": "byte"}`:                 "usageDimensions.0.name",
	} {
		_, err := manifest.New(with(dimension))
		require.True(t, fault.Is(err, fault.ManifestInvalid), "%s: %v", dimension, err)
		require.Equal(t, fault.CapacityUnit, fault.From(err).Reasons[0].Code, dimension)
		require.Equal(t, path, fault.From(err).Reasons[0].Path, dimension)
		_, err = manifest.Parse(with(dimension))
		require.NoError(t, err, "a manifest from before is read as it is")
	}
	for _, dimension := range []string{`{"name": "tokens", "unit": "token"}`,
		`{"name": "model.seconds", "unit": "second"}`,
		`{"name": "pod.gpu_seconds", "unit": "gpu-second", "kind": "showback"}`,
		`{"name": "messages", "unit": "message", "description": "sent"}`} {
		_, err := manifest.New(with(dimension))
		require.NoError(t, err, dimension)
	}
	_, err = manifest.Parse(with(`{"name": "a", "unit": "b", "kind": "free"}`))
	require.True(t, fault.Is(err, fault.ManifestInvalid))
	_, err = manifest.New(with(`{"name": "a", "unit": "b", "kind": "free"}`))
	require.True(t, fault.Is(err, fault.ManifestInvalid), "what is published now is linted too: %v", err)
}
