package pgtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	waitFor = 30 * time.Second
	tick    = 20 * time.Millisecond
)

// ownDir is a place for a shared server of this test alone.
func ownDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(defaultDir()), "pgt")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func emptyTemplate(context.Context, string) error { return nil }

func TestServerIsSharedAndEndsWhenTheLastUserLeaves(t *testing.T) {
	t.Parallel()
	dir := ownDir(t)
	first, err := join(t.Context(), dir, 100*time.Millisecond)
	require.NoError(t, err)
	second, err := join(t.Context(), dir, 100*time.Millisecond)
	require.NoError(t, err)
	pid := first.postgres.PID()
	require.Equal(t, pid, second.postgres.PID())

	first.leave(t.Context())
	_, err = second.template(t.Context(), "still up", emptyTemplate)
	require.NoError(t, err)

	second.leave(t.Context())
	require.Eventually(t, func() bool { return !alive(pid) && absent(filepath.Join(dir, "data")) }, waitFor, tick)
	third, err := join(t.Context(), dir, 100*time.Millisecond)
	require.NoError(t, err)
	third.leave(t.Context())
	require.Eventually(t, func() bool { return !alive(third.postgres.PID()) }, waitFor, tick)
}

// alive counts a zombie as dead: who reaps it depends on the machine's first process.
func alive(pid int) bool {
	_, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	return err == nil
}

func absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}

func TestDatabasesOfDeadProcessesAreDropped(t *testing.T) {
	t.Parallel()
	dir := ownDir(t)
	stays, err := join(t.Context(), dir, 100*time.Millisecond)
	require.NoError(t, err)
	defer stays.leave(context.WithoutCancel(t.Context()))
	dies, err := join(t.Context(), dir, 100*time.Millisecond)
	require.NoError(t, err)

	template, err := stays.template(t.Context(), "x", emptyTemplate)
	require.NoError(t, err)
	kept, left := stays.nextName(), dies.nextName()
	require.NoError(t, stays.clone(t.Context(), template, kept))
	require.NoError(t, dies.clone(t.Context(), template, left))
	dies.leave(t.Context()) // as the kernel does for a killed process

	require.Eventually(t, func() bool {
		require.NoError(t, stays.sweep(t.Context()))
		var names []string
		require.NoError(t, stays.conn.QueryRow(t.Context(),
			`select array_agg(datname::text) from pg_database where datname like 't\_%'`).Scan(&names))
		return len(names) == 1 && names[0] == kept
	}, waitFor, tick)
}

func TestFailedBuildLeavesNoTemplateAndIsRetried(t *testing.T) {
	t.Parallel()
	dir := ownDir(t)
	s, err := join(t.Context(), dir, 100*time.Millisecond)
	require.NoError(t, err)
	defer s.leave(context.WithoutCancel(t.Context()))
	broken := errors.New("broken migration")
	_, err = s.template(t.Context(), "k", func(context.Context, string) error { return broken })
	require.ErrorIs(t, err, broken)
	name, err := s.template(t.Context(), "k", emptyTemplate)
	require.NoError(t, err)
	require.NoError(t, s.clone(t.Context(), name, s.nextName()))
}

func TestFolderOfSomebodyElseIsRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(ownDir(t), "link")
	require.NoError(t, os.Symlink("/tmp", dir))
	_, err := join(t.Context(), dir, time.Second)
	require.ErrorContains(t, err, "belongs to another user")
}
