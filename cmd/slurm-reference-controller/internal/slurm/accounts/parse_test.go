package accounts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Of several nodes a job is one run, a task of an array has a number of its own, a requeued job runs twice, also within
// one second, and one runs across midnight; what cannot be read stops nothing.
func TestUsageOfJobsThatHaveEnded(t *testing.T) {
	t.Parallel()
	text := "2026-11-20T10:00:04|2026-11-20T10:00:01|1|3|3|101\n" + // on three nodes
		"2026-11-20T10:01:00|2026-11-20T10:00:00|17|1|60|102\n2026-11-20T10:01:00|2026-11-20T10:00:00|18|1|60|103\n" +
		// an array
		"2026-11-20T11:00:00|2026-11-20T10:00:00|2|1|3600|104\n2026-11-20T12:30:00|2026-11-20T12:00:00|2|1|1800|105\n" +
		// requeued
		"2026-11-20T13:00:00|2026-11-20T13:00:00|4|1|0|201\n2026-11-20T13:00:00|2026-11-20T13:00:00|4|1|0|202\n" +
		// within a second
		"garbage\n2026-11-20T12:30:00|2026-11-20T12:30:00|7|0|0|106\n" +
		"2026-11-20T12:30:00|Unknown|9|0|0|107\n2026-11-20T12:30:00|2026-11-20T12:00:00|8|-1|x|108\n" +
		"2026-11-21T00:10:00|2026-11-20T23:50:00|3|2|1200|109\n" // across midnight
	records, lines := parse(text)
	require.Equal(t, 12, lines)
	require.Len(t, records, 8*3)
	ids := make(map[string]string)
	for _, r := range records {
		require.NotContains(t, ids, r.ID)
		ids[r.ID] = r.Quantity
	}
	require.Equal(t, "1", ids["jobs/1/1795168801/101"])
	require.Equal(t, "3", ids["job.seconds/1/1795168801/101"])
	require.Equal(t, "9", ids["job.node_seconds/1/1795168801/101"], "each node once")
	require.Equal(t, "3600", ids["job.seconds/2/1795168800/104"])
	require.Equal(t, "1800", ids["job.seconds/2/1795176000/105"])
	require.Equal(t, "2400", ids["job.node_seconds/3/1795218600/109"])
	again, _ := parse(text)
	require.Equal(t, records, again, "the same jobs are the same records at every read")
}
