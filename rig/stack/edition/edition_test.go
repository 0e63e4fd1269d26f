package edition

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAVersionIsPublishedOnceAndPinsWhatItNames(t *testing.T) {
	t.Parallel()
	var document Document
	require.NoError(t, json.Unmarshal([]byte(`{"version":"1.0.0","artifacts":[{"name":"image"},{"name":"weights"}]}`),
		&document))
	require.Equal(t, []string{"image", "weights"}, document.Names())
	require.Equal(t, []string{"controller"}, Document{}.Names())
	version, err := Published{}.Next(document, "sha256:0123456789abcdef")
	require.NoError(t, err)
	require.Equal(t, "1.0.0", version)
	version, err = Published{Versions: []string{"1.0.0"}}.Next(document, "sha256:0123456789abcdef")
	require.NoError(t, err)
	require.Equal(t, "1.0.0-local.0123456789ab", version)
	_, err = Published{}.Next(Document{}, "")
	require.EqualError(t, err, "the manifest has no version")
	made, err := document.Publish(version, []Pin{{"image", MediaType, "r@sha256:1", "sha256:1"}})
	require.NoError(t, err)
	require.JSONEq(t, `{"version":"1.0.0-local.0123456789ab","artifacts":[{"name":"image",
		"mediaType":"application/vnd.oci.image.manifest.v1+json","ref":"r@sha256:1","digest":"sha256:1"}]}`,
		string(made))
}
