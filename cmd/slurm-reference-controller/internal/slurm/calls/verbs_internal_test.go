package calls

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/exectest"
)

// A stand-in of scontrol that says what Slurm says of a job which its accounting does not have yet, and then does it.
func TestAJobThatIsNotInTheAccountingYetIsChangedOnceItIs(t *testing.T) {
	t.Parallel()
	run := func(scontrol string) (tries int, said string, err error) {
		dir := t.TempDir()
		exectest.Write(t, filepath.Join(dir, "scontrol"), "#!/bin/sh\necho \"$@\" >> "+dir+"/tries\n"+scontrol)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", patiently, "sh", "hold", "4")
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		asked, readErr := os.ReadFile(filepath.Join(dir, "tries"))
		require.NoError(t, readErr)
		require.Equal(t, "hold 4\n", string(asked[:7]))
		return len(asked) / 7, string(out), err
	}
	tries, said, err := run(`test "$(grep -c . ` + "$(dirname \"$0\")" + `/tries)" -gt 1 || {
		echo "Job update not available right now, the DB index is being set, try again in a bit for job 4" >&2; exit 1; }`)
	require.NoError(t, err, said)
	require.Equal(t, 2, tries)
	require.Empty(t, said)
	tries, said, err = run(`echo "Job is no longer pending execution for job 4" >&2; exit 1`)
	require.ErrorContains(t, err, "exit status 1")
	require.Equal(t, 1, tries, "what will not change is not tried again")
	require.Contains(t, said, "no longer pending")
}
