package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/exectest"
)

// runs runs a script with stand-ins of programs, by name, before the machine's own.
func runs(t *testing.T, programs map[string]string, script string, arguments ...string) adapter.TaskResult {
	t.Helper()
	bin := t.TempDir()
	for name, body := range programs {
		exectest.Write(t, filepath.Join(bin, name), "#!/bin/sh\n"+body+"\n")
	}
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", script, "test"}, arguments...)...)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	result := adapter.TaskResult{State: adapter.TaskSucceeded, Stdout: stdout.String(), Stderr: stderr.String()}
	if err != nil {
		require.True(t, errors.As(err, &exit), "%v", err)
		result.State = adapter.TaskFailed
	}
	status := cmd.ProcessState.ExitCode()
	result.ExitCode = &status
	return result
}

// files are what is below a folder, with their bytes.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		found[path] = string(content)
		return err
	}))
	return found
}

const name = "20261128T120000Z"

// kept makes a backup by Slurm 24.05.2 in a folder.
func kept(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	sums := ""
	for file, content := range map[string]string{"about": "hpc|1.6.0|24.05.2|7|0|0\n", "jobs": "5 now\n", "people": "",
		"state.tar.gz": "state"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, file), []byte(content), 0o600))
		sum := sha256.Sum256([]byte(content))
		sums += fmt.Sprintf("%s  %s\n", hex.EncodeToString(sum[:]), file)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, name, "SHA256SUMS"), []byte(sums), 0o600))
	return dir
}

// rejected asserts the code and the words of a refusal.
func rejected(t *testing.T, err error, code, words string) {
	t.Helper()
	var refused adapter.ErrorBody
	require.ErrorAs(t, err, &refused)
	require.Equal(t, code, refused.Code)
	require.ErrorContains(t, err, words)
}

func TestABackupOfANewerSlurmIsNotRestored(t *testing.T) {
	t.Parallel()
	dir := kept(t)
	before := files(t, dir)
	look := func(here string) (request, Backup, bool, adapter.TaskResult) {
		result := runs(t, map[string]string{"slurmctld": "echo slurm " + here, "scontrol": "exit 1", "squeue": "exit 1",
			"mariadb": "exit 1"}, lookScript, dir, name, "hpc")
		first, _, _ := strings.Cut(result.Stdout, "\n")
		one, ok := parse(first, "")
		return request{Backup: name}, one, ok, result
	}
	for _, older := range []string{"23.11.10", "24.05.1"} {
		err := refused(look(older))
		rejected(t, err, "VERSION_MISMATCH", "24.05.2, and "+older+" is here")
	}
	for _, same := range []string{"24.05.2", "24.11.0"} {
		require.NoError(t, refused(look(same)))
	}
	require.Equal(t, before, files(t, dir), "looking changes nothing")
}

func TestABackupWithoutSpaceIsRefusedAndLeavesThoseThereAre(t *testing.T) {
	t.Parallel()
	dir := kept(t)
	before := files(t, dir)
	result := runs(t, map[string]string{"df": "echo Avail; echo 100", "du": "echo '200\ttotal'", "tar": "exit 9"},
		saveScript, dir, "1", "hpc", "1.6.0", "9", "0")
	_, ok := parse(result.Stdout, "")
	rejected(t, unsaved(ok, result), "BACKUP_NO_SPACE", "200 KiB may be needed, and 100 are free")
	require.Equal(t, before, files(t, dir))
}

func TestABackupIsNamedThoughSlurmDidNotComeUpAfterIt(t *testing.T) {
	t.Parallel()
	down, none := errors.New("slurmdbd is not up"), errors.New("no backup")
	err := ended(Backup{Name: name}, nil, down)
	var failed adapter.OperationError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, []any{"CONTROLLER_DOWN", adapter.OwnerNode, true},
		[]any{failed.Code, failed.Owner, failed.Retryable})
	require.ErrorContains(t, err, "the backup "+name+" was saved")
	require.ErrorContains(t, err, "recover the controller; slurmdbd is not up")
	require.Equal(t, none, ended(Backup{}, none, down), "the first cause is the one that is told")
	require.NoError(t, ended(Backup{Name: name}, nil, nil))
}
