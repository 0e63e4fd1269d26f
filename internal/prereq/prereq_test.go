package prereq_test

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/internal/prereq"
)

func TestEnsureMakesEveryFeatureOfTheTestSuiteAvailable(t *testing.T) {
	t.Parallel()
	features := []prereq.Feature{prereq.Postgres, prereq.Lab, prereq.Slurm, prereq.CloudInit, prereq.Containers}
	require.NoError(t, prereq.Ensure(t.Context(), features...))
	missing, err := prereq.Missing(t.Context(), features...)
	require.NoError(t, err)
	require.Empty(t, missing.Packages)

	var said bytes.Buffer
	require.NoError(t, prereq.EnsureTo(t.Context(), &said, features...))
	require.Empty(t, said.String(), "a machine that has everything is left alone")
}

func TestUnknownFeatureIsRefused(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, prereq.Ensure(t.Context(), "teleport"), `unknown feature "teleport"`)
}

// Changing PATH forbids t.Parallel. Without apt-get on it, root is in the position of a plain user.
func TestMachineThatCannotInstallIsToldWhatTo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("APP_PLATFORM_POSTGRES_BIN", t.TempDir())
	if _, err := exec.LookPath("apt-get"); err == nil {
		t.Fatal("PATH still leads to apt-get")
	}
	var said bytes.Buffer
	err := prereq.EnsureTo(t.Context(), &said, prereq.Postgres)
	require.ErrorIs(t, err, prereq.ErrMissing)
	require.ErrorContains(t, err, "PostgreSQL server 15 or newer")
	require.ErrorContains(t, err, "apt-get install --no-install-recommends postgresql")
	if os.Geteuid() != 0 {
		require.ErrorContains(t, err, "only root can install them")
	}
	require.Empty(t, said.String(), "nothing is announced that is not done")
}
