package settings_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/appctl/internal/settings"
)

func TestSavedFileIsReadBackAndPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "appctl", "config.json")
	want := &settings.File{Current: "lab", Contexts: map[string]settings.Context{
		"lab": {Server: "http://lab", Token: "gpu_ses_1", TokenExpiresAt: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
			Project: "demo"},
	}}
	require.NoError(t, want.Save(path))
	require.NoError(t, want.Save(path), "a second save replaces the first")
	got, err := settings.Load(path)
	require.NoError(t, err)
	require.Equal(t, want, got)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".config-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestMissingFileIsEmpty(t *testing.T) {
	t.Parallel()
	got, err := settings.Load(filepath.Join(t.TempDir(), "none.json"))
	require.NoError(t, err)
	require.Empty(t, got.Contexts)
}

func TestFileThatOthersCanReadIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(path, []byte(`{}`), 0o644))
	_, err := settings.Load(path)
	require.ErrorContains(t, err, "chmod 600")
}

func TestBrokenFileIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(path, []byte(`{`), 0o600))
	_, err := settings.Load(path)
	require.ErrorContains(t, err, path)
}
