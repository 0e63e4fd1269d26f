package meter

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

func TestAPodsGPUsAreCountedOnceWhateverHappensBetween(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begin := time.Date(2026, 1, 2, 3, 0, 30, 0, time.UTC)
	look := func(after time.Duration, lines ...string) adapter.UsagePage {
		m, err := New(dir) // each look is a new process's
		require.NoError(t, err)
		m.now = func() time.Time { return begin.Add(after) }
		said := adapter.TaskResult{State: adapter.TaskSucceeded, Stdout: strings.Join(lines, "\n") + "\n"}
		for range 2 { // the second finds nothing new
			require.NoError(t, m.count("ins_1", said, nil, map[string]string{"mem-a": "mem_a"}))
		}
		page, err := m.log.Page("ins_1", "")
		require.NoError(t, err)
		return page
	}
	const running = "u1 mem-a Running 2026-01-02T03:00:30Z 1"
	two := "u2 mem-a Running 2026-01-02T03:00:30Z 2"
	waits := "u3 <no value> Pending <no value> 1"
	page := look(2*time.Minute, running, running, two, waits)
	require.Len(t, page.Records, 2)
	require.Equal(t, "180", page.Records[0].Quantity, "two containers with a GPU each, 90 whole seconds")
	require.Equal(t, "mem_a", page.Records[0].MemberID)
	require.Equal(t, "180", page.Records[1].Quantity)
	page = look(2*time.Minute+20*time.Second, running, running, two)
	require.Len(t, page.Records, 2, "no whole minute more")
	ended := "u1 mem-a Succeeded 2026-01-02T03:00:30Z 1 2026-01-02T03:03:10Z"
	page = look(5*time.Minute, ended, ended)
	require.Len(t, page.Records, 3)
	require.Equal(t, "140", page.Records[2].Quantity, "it ended 70 s after what was counted, with two GPUs")
	require.Len(t, look(9*time.Minute, ended, ended).Records, 3)
	evicted := "u2 mem-a Failed 2026-01-02T03:00:30Z 2"
	require.Len(t, look(12*time.Minute, ended, ended, evicted).Records, 3,
		"an evicted pod stays listed, and holds nothing")
}

func TestAPodThatACutListLacksIsCountedOnWhenItIsListedAgain(t *testing.T) {
	t.Parallel()
	m, err := New(t.TempDir())
	require.NoError(t, err)
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	one, two := "u1 mem-a Running 2026-01-02T03:00:00Z 1\n", "u2 mem-a Running 2026-01-02T03:00:00Z 1\n"
	for i, said := range []adapter.TaskResult{{Stdout: one + two}, {Stdout: one[3:] + two, Truncated: true},
		{Stdout: one + two}} {
		said.State = adapter.TaskSucceeded
		m.now = func() time.Time { return begin.Add(time.Duration(i+1) * time.Minute) }
		require.NoError(t, m.count("ins_1", said, nil, nil))
	}
	page, err := m.log.Page("ins_1", "")
	require.NoError(t, err)
	seconds := map[string]int{}
	for _, record := range page.Records {
		held, err := strconv.Atoi(record.Quantity)
		require.NoError(t, err)
		seconds[record.Session] += held
	}
	require.Equal(t, map[string]int{"pod-u1": 180, "pod-u2": 180}, seconds)
}
