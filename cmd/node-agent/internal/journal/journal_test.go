package journal_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/cmd/node-agent/internal/journal"
)

func open(t *testing.T, dir string) *journal.Journal {
	t.Helper()
	j, damaged, err := journal.Open(dir, time.Now)
	require.NoError(t, err)
	require.Zero(t, damaged)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func TestReopenedJournalKnowsWhatRanAndWhatIsUnreported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	require.NoError(t, j.Accept("tsk_runs", 3, "mem_a", "RUN", journal.Context{}))
	require.NoError(t, j.Started("tsk_runs", "epoch1"))
	require.NoError(t, j.Accept("tsk_done", 1, "mem_a", "RUN", journal.Context{}))
	require.NoError(t, j.Finish("tsk_done", journal.Outcome{State: "SUCCEEDED",
		Result: json.RawMessage(`{"exitCode":0}`)}))
	require.NoError(t, j.Accept("tsk_acked", 1, "mem_a", "RUN", journal.Context{}))
	require.NoError(t, j.Finish("tsk_acked", journal.Outcome{State: "FAILED"}))
	require.NoError(t, j.Reported("tsk_acked", 1))

	again := open(t, dir)
	runs, ok := again.Get("tsk_runs")
	require.True(t, ok)
	require.Equal(t, journal.StateRunning, runs.State)
	require.Equal(t, "epoch1", runs.Epoch)
	require.Equal(t, int64(3), runs.Fence)
	waiting := again.Unreported()
	require.Len(t, waiting, 1)
	require.Equal(t, "tsk_done", waiting[0].TaskID)
	require.JSONEq(t, `{"exitCode":0}`, string(waiting[0].Outcome.Result))
}

func TestReportOfAnOlderFenceAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	j := open(t, t.TempDir())
	require.NoError(t, j.Accept("tsk_a", 2, "mem_a", "RUN", journal.Context{}))
	require.NoError(t, j.Reported("tsk_a", 2), "it has no outcome yet")
	require.NoError(t, j.Finish("tsk_a", journal.Outcome{State: "FAILED"}))
	require.NoError(t, j.Reported("tsk_a", 1))
	require.Len(t, j.Unreported(), 1)
	require.NoError(t, j.Reported("tsk_a", 2))
	require.Empty(t, j.Unreported())
}

func TestLineCutByACrashIsDropped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, open(t, dir).Accept("tsk_a", 1, "mem_a", "RUN", journal.Context{}))
	name := filepath.Join(dir, "journal.jsonl")
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, append(raw, raw[:len(raw)/2]...), 0o600))
	j, damaged, err := journal.Open(dir, time.Now)
	require.NoError(t, err)
	require.Equal(t, 1, damaged)
	require.NoError(t, j.Accept("tsk_b", 1, "mem_a", "RUN", journal.Context{}))
	again := open(t, dir)
	for _, id := range []string{"tsk_a", "tsk_b"} {
		_, ok := again.Get(id)
		require.True(t, ok, id)
	}
}

func TestJournalStaysBoundedAndKeepsWhatIsAlive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	require.NoError(t, j.Accept("tsk_alive", 1, "mem_a", "RUN", journal.Context{}))
	big := json.RawMessage(`"` + strings.Repeat("x", 64<<10) + `"`)
	for i := range 700 {
		id := fmt.Sprintf("tsk_%d", i)
		require.NoError(t, j.Accept(id, 1, "mem_a", "RUN", journal.Context{}))
		require.NoError(t, j.Finish(id, journal.Outcome{State: "SUCCEEDED", Result: big}))
		require.NoError(t, j.Reported(id, 1))
	}
	again := open(t, dir)
	info, err := os.Stat(filepath.Join(dir, "journal.jsonl"))
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(40<<20))
	_, ok := again.Get("tsk_alive")
	require.True(t, ok)
	oldest, ok := again.Get("tsk_0")
	require.True(t, ok)
	require.Nil(t, oldest.Outcome)
	require.Equal(t, "SUCCEEDED", oldest.State)
	require.True(t, oldest.Reported)
}
