package adapter

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// smallDisk is a folder on a disk that can be filled, and emptied again.
func smallDisk(t *testing.T) (dir string, fill, empty func()) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("gpuaas", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skip("a small disk needs the right to mount: " + err.Error())
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	ballast := filepath.Join(dir, "ballast")
	return dir, func() {
			require.ErrorIs(t, os.WriteFile(ballast, make([]byte, 1<<20), 0o600), syscall.ENOSPC)
		}, func() {
			require.NoError(t, os.Remove(ballast))
		}
}

// oneStep is an app whose operation ends with its only node task.
func oneStep(returned error) App {
	app := demoApp()
	app.Operations[InstanceCreate] = func(ctx context.Context, run *Run) error {
		_, err := run.Do(ctx, run.Of("peer")[0], "only", RunCommand{Command: []string{"only"}})
		return errors.Join(err, returned)
	}
	return app
}

// The end of an operation must not wait for the next start of the adapter: the disk has space again, and no one knows
// that a platform waits.
func TestAnEndThatAFullDiskDoesNotTakeIsJournalledOnceThereIsSpace(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	dir, fill, empty := smallDisk(t)
	base, _ := startKit(t, l, l.config(dir, oneStep(nil)))
	l.hold("only")
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusAccepted)
	require.Eventually(t, func() bool { return len(l.steps()) == 1 }, patience, tick)
	fill()
	l.release("only")
	code, _ := l.call(base, http.MethodPut, OperationPath("op_2"), l.dispatchOf("op_2", InstanceCreate))
	require.GreaterOrEqual(t, code, http.StatusInternalServerError, "what cannot be journalled is not taken")
	code, _ = l.call(base, http.MethodGet, OperationPath("op_2"), nil)
	require.Equal(t, http.StatusNotFound, code)
	_, body := l.call(base, http.MethodGet, OperationPath("op_1"), nil)
	require.NotContains(t, string(body), StateSucceeded, "an end that is not journalled is not reported")
	empty()
	l.ends(base, "op_1", StateSucceeded)
	require.Equal(t, []string{"only"}, l.steps())
	l.dispatch(base, l.dispatchOf("op_2", InstanceCreate), http.StatusAccepted)
	l.ends(base, "op_2", StateSucceeded)
}

func TestAFailureOfAFullDiskSaysSo(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	full := &os.PathError{Op: "write", Path: "/state/ledger", Err: syscall.ENOSPC}
	base, _ := startKit(t, l, l.config(t.TempDir(), oneStep(full)))
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusAccepted)
	failed := l.ends(base, "op_1", StateFailed)
	require.Equal(t, "the disk of the adapter's state is full", failed.Error.Message)
	require.True(t, failed.Error.Retryable)
	require.Equal(t, OwnerAdapter, failed.Error.Owner)
}

func TestAnAdapterWhoseDiskIsFullDoesNotStart(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	dir, fill, empty := smallDisk(t)
	fill()
	kit, err := New(l.config(dir, demoApp()))
	require.NoError(t, err)
	require.ErrorIs(t, kit.Start(context.Background()), syscall.ENOSPC)
	empty()
	base, _ := startKit(t, l, l.config(dir, demoApp()))
	l.dispatch(base, l.dispatchOf("op_1", InstanceCreate), http.StatusAccepted)
}
