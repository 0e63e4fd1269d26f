package oci

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A stand-in for crun, which fails its first delete as crun does where a container's init ends between its look and its
// kill.
func TestADeleteThatMeetsADyingInitIsRepeated(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a mount namespace needs root")
	}
	dir := t.TempDir()
	state, program := filepath.Join(dir, "state"), filepath.Join(dir, "crun")
	require.NoError(t, os.MkdirAll(filepath.Join(state, "mem_1"), 0o700))
	require.NoError(t, os.WriteFile(program, fmt.Appendf(nil, `#!/bin/sh
test -e %[1]s/called || { touch %[1]s/called; echo "open pidfd: No such file or directory" >&2; exit 1; }
rm -r %[2]s/mem_1
`, dir, state), 0o700))

	require.NoError(t, (&Runtime{Name: "crun", Program: program, state: state}).Delete(t.Context(), "mem_1"))
	require.FileExists(t, filepath.Join(dir, "called"))
	require.NoDirExists(t, filepath.Join(state, "mem_1"))
}
