package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryArtifactOfTheManifestIsTheImageOrIsWritten(t *testing.T) {
	t.Parallel()
	var printed bytes.Buffer
	ok, err := published{manifest: true}.write(&printed)
	require.True(t, ok)
	require.NoError(t, err)
	var document struct{ Artifacts []struct{ Name string } }
	require.NoError(t, json.Unmarshal(printed.Bytes(), &document))
	require.Len(t, document.Artifacts, 2)
	require.Equal(t, "image", document.Artifacts[0].Name)
	dir := t.TempDir()
	ok, err = published{artifact: document.Artifacts[1].Name, into: dir}.write(nil)
	require.True(t, ok)
	require.NoError(t, err)
	served, err := load(dir)
	require.NoError(t, err)
	require.Contains(t, served, "sample")
	ok, err = published{}.write(nil)
	require.False(t, ok)
	require.NoError(t, err)
	for want, wrong := range map[string]published{"--into is missing": {artifact: "weights"},
		"--artifact other": {artifact: "other", into: filepath.Join(dir, "other")}} {
		ok, err = wrong.write(nil)
		require.True(t, ok)
		require.ErrorContains(t, err, want)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "what is refused writes nothing")
}
