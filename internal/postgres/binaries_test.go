package postgres_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/postgres"
)

// These two change the environment, which forbids t.Parallel.

func TestFindRefusesAWrapperScript(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"initdb", "postgres"} {
		script := "#!/bin/sh\necho 'postgres (PostgreSQL) 17.1'\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	t.Setenv(postgres.BinEnv, dir)
	_, err := postgres.Find(t.Context())
	require.ErrorIs(t, err, postgres.ErrNotInstalled)
	require.ErrorContains(t, err, "is not a program but a wrapper")
}

func TestFindTakesTheConfiguredFolder(t *testing.T) {
	found, err := postgres.Find(t.Context())
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(found.Dir, link))
	t.Setenv(postgres.BinEnv, link)
	again, err := postgres.Find(t.Context())
	require.NoError(t, err)
	require.Equal(t, found, again)
	require.GreaterOrEqual(t, found.Major, postgres.MinMajor)
}
