package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/memberinit"
)

// The journal knows the task as running when the disk does not take its outcome. The member must keep the result then:
// once it forgot it, an agent that was killed would find a task that runs and is not there, and do it again.
func TestARunWhoseOutcomeAFullDiskDoesNotTakeIsNotDoneAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mount("gpuaas", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skip("a small disk needs the right to mount: " + err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	r := newRigIn(t, memberinit.ModeProcess, dir)
	ballast, elsewhere := filepath.Join(dir, "ballast"), t.TempDir()
	count, begun := filepath.Join(elsewhere, "count"), filepath.Join(elsewhere, "begun")
	goOn := filepath.Join(elsewhere, "go")
	r.give(shell("tsk_a",
		"echo once >> "+count+"; touch "+begun+"; while ! test -e "+goOn+"; do sleep 0.05; done; echo done"))
	r.eventually(func() bool { _, err := os.Stat(begun); return err == nil }, "the command has begun")
	r.stop()
	require.ErrorIs(t, os.WriteFile(ballast, make([]byte, 32<<20), 0o600), unix.ENOSPC)
	fillUp(t, filepath.Join(dir, "journal.jsonl"))
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	r.eventually(func() bool { return strings.Contains(r.log.text(), "outcome not journalled") },
		"the disk refuses the outcome")
	r.kill()
	require.NoError(t, os.Remove(ballast))
	r.start()
	r.run()
	done := r.ended("tsk_a")
	require.Equal(t, "SUCCEEDED", done.State, done.message)
	require.Equal(t, "done\n", resultOf[runResult](t, done).Stdout)
	times, err := os.ReadFile(count)
	require.NoError(t, err)
	require.Equal(t, "once\n", string(times), "the command ran again")
}

// fillUp uses what is left of a file's last block, by a line that is read as damage.
func fillUp(t *testing.T, name string) {
	t.Helper()
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	defer file.Close()
	for err == nil {
		_, err = file.WriteString("\n")
	}
	require.ErrorIs(t, err, unix.ENOSPC)
}
