package usagelog_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
	"github.com/gpuaas/app-platform/sdk/adapter/usagelog"
)

// records are so many, with ids from a number on.
func records(from, count int) (out []contract.UsageRecord) {
	for n := range count {
		at := time.Date(2026, 11, 23, 12, 0, from+n, 0, time.UTC)
		out = append(out, contract.UsageRecord{ID: "r" + strconv.Itoa(from+n), Dimension: "greetings", Quantity: "1",
			From: at, To: at})
	}
	return out
}

func open(t *testing.T, dir string) *usagelog.Log {
	t.Helper()
	log, err := usagelog.New(dir)
	require.NoError(t, err)
	return log
}

func TestARecordIsKeptOnceThroughRestartsAndReadFromEveryCursor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := open(t, dir)
	require.NoError(t, log.Add("ins_1", records(0, 600)...))
	require.NoError(t, log.Add("ins_1", records(500, 600)...))
	log = open(t, dir)
	require.NoError(t, log.Add("ins_1", records(0, 1100)...), "after a restart it counts nothing twice")
	first, err := log.Page("ins_1", "")
	require.NoError(t, err)
	require.Equal(t, records(0, 1000), first.Records)
	second, err := open(t, dir).Page("ins_1", first.Cursor)
	require.NoError(t, err)
	require.Equal(t, records(1000, 100), second.Records)
	newest, err := log.Last("ins_1")
	require.NoError(t, err)
	require.Equal(t, records(1099, 1)[0], newest)
	end, err := log.Page("ins_1", second.Cursor)
	require.NoError(t, err)
	require.Empty(t, end.Records)
	require.Equal(t, second.Cursor, end.Cursor)
	other, err := log.Page("ins_2", second.Cursor)
	require.NoError(t, err)
	require.Empty(t, other.Records, "instances have lists of their own")
	again, err := open(t, t.TempDir()).Page("ins_1", second.Cursor)
	require.NoError(t, err)
	require.Empty(t, again.Records)
}

func TestHalfALineIsCutOffAndALostFileBeginsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, open(t, dir).Add("ins_1", records(0, 2)...))
	path := filepath.Join(dir, "ins_1.usage")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, whole[:len(whole)-5], 0o600)) // killed while it wrote
	log := open(t, dir)
	require.NoError(t, log.Add("ins_1", records(0, 3)...))
	page, err := open(t, dir).Page("ins_1", "")
	require.NoError(t, err)
	require.Equal(t, records(0, 3), page.Records)
	require.NoError(t, os.Remove(path))
	log = open(t, dir)
	require.NoError(t, log.Add("ins_1", records(7, 1)...))
	fresh, err := log.Page("ins_1", page.Cursor)
	require.NoError(t, err)
	require.Equal(t, records(7, 1), fresh.Records, "a cursor of the lost file skips nothing of the new one")
	require.Error(t, log.Add("../ins", records(0, 1)...))
}
