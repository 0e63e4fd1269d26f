package rke2

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutants are faults that lose clusters, planted one at a time, each with the test that must find it.
var mutants = []struct{ name, file, was, is, test string }{
	{"a server is removed before its drain", "leave.go",
		"	err := w.empty(ctx, targets, targets)\n	if err == nil {\n		err = w.Commit()\n	}\n",
		"	err := w.Commit()\n",
		"TestAServerStaysInEtcdUntilItIsEmpty"},
	{"a token is in the log", "join.go",
		"	join, pinned, token := \"\", \"\", ofServers\n",
		"	join, pinned, token := \"\", \"\", ofServers\n	w.Log().Info(\"joining\", \"token\", token)\n",
		"TestNoTokenIsInTheProgramsLog"},
	{"a name is used again", "../machine/node.go",
		"	return strings.ReplaceAll(strings.ToLower(member.ID), \"_\", \"-\")\n",
		"	return strings.ReplaceAll(member.ComponentKey+\"-\"+member.Node.Name, \"_\", \"-\")\n",
		"TestADeadServerIsForgottenAndItsNodeTakesAnotherMember"},
}

// TestEachMutantIsFound builds this package with each fault, by the compiler's overlay, and has its test fail.
func TestEachMutantIsFound(t *testing.T) {
	t.Parallel()
	if testing.Short() || os.Getenv("RKE2_MUTANT") != "" {
		t.Skip("it compiles the package for each fault")
	}
	for _, one := range mutants {
		t.Run(one.name, func(t *testing.T) {
			path, err := filepath.Abs(one.file)
			require.NoError(t, err)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(text), one.was), "%s has changed: plant the fault anew", one.file)
			planted := filepath.Join(t.TempDir(), filepath.Base(one.file))
			require.NoError(t, os.WriteFile(planted, []byte(strings.Replace(string(text), one.was, one.is, 1)), 0o600))
			overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: planted}})
			require.NoError(t, err)
			at := filepath.Join(t.TempDir(), "overlay.json")
			require.NoError(t, os.WriteFile(at, overlay, 0o600))
			command := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-run",
				"^"+one.test+"$", ".")
			command.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+at, "RKE2_MUTANT=1")
			said, err := command.CombinedOutput()
			require.Error(t, err, "nothing found it:\n%s", said)
			require.Contains(t, string(said), "--- FAIL: "+one.test, "it did not even run")
		})
	}
}
