package journal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
)

// begun is the time of the first entry of these tests.
var begun = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// settled is a journal's file of acknowledged tasks, the n-th a second after the one before. They are written as the
// agent does, but at once: ten thousand syncs take minutes.
func settled(t *testing.T, dir string, n int) {
	t.Helper()
	var lines bytes.Buffer
	for i := range n {
		line, err := json.Marshal(journal.Entry{
			TaskID: fmt.Sprintf("tsk_%05d", i), Fence: 1, State: "SUCCEEDED", Reported: true,
			Outcome: &journal.Outcome{State: "SUCCEEDED"}, At: begun.Add(time.Duration(i) * time.Second),
		})
		require.NoError(t, err)
		lines.Write(append(line, '\n'))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.jsonl"), lines.Bytes(), 0o600))
}

func TestOldestOutcomeIsReportedFirst(t *testing.T) {
	t.Parallel()
	now := begun
	j, _, err := journal.Open(t.TempDir(), func() time.Time { return now })
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	var want []string
	for i := range 20 {
		id := fmt.Sprintf("tsk_%d", 19-i) // neither the order of names nor of acceptance
		want = append([]string{id}, want...)
		require.NoError(t, j.Accept(id, 1, "mem_a", "RUN", journal.Context{}))
	}
	for _, id := range want {
		now = now.Add(time.Second)
		require.NoError(t, j.Finish(id, journal.Outcome{State: "SUCCEEDED"}))
	}
	var got []string
	for _, entry := range j.Unreported() {
		got = append(got, entry.TaskID)
	}
	require.Equal(t, want, got)
}

func TestCompactionKeepsTheNewestOutcomes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settled(t, dir, 700)
	j := open(t, dir)
	for i := range 700 {
		entry, ok := j.Get(fmt.Sprintf("tsk_%05d", i))
		require.True(t, ok, "task %d is remembered", i)
		require.Equal(t, i >= 700-512, entry.Outcome != nil, "the outcome of task %d", i)
		require.Equal(t, "SUCCEEDED", entry.State)
	}
}

func TestCompactionForgetsTheOldestTasksAndNothingThatIsAlive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const kept, beyond = 10_000, 5
	settled(t, dir, kept+beyond)
	name := filepath.Join(dir, "journal.jsonl")
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	running := journal.Entry{TaskID: "tsk_alive", Fence: 1, State: journal.StateRunning, At: begun.Add(-time.Hour)}
	alive, err := json.Marshal(running)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, append(append(alive, '\n'), raw...), 0o600))
	j := open(t, dir)
	_, ok := j.Get("tsk_alive")
	require.True(t, ok, "what runs is never forgotten, however old it is")
	for i := range kept + beyond {
		_, ok := j.Get(fmt.Sprintf("tsk_%05d", i))
		require.Equal(t, i >= beyond, ok, "task %d", i)
	}
}
