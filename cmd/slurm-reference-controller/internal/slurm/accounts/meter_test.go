package accounts

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// accounting answers as slurmdbd does: runs that have ended by the clock and were handed on by then.
type accounting struct {
	now  time.Time
	runs []ending
	down bool
}

// ending is a job's run; known is when slurmctld has handed it on.
type ending struct {
	job        int
	end, known time.Time
}

func (a *accounting) ended(job int, end time.Time, later time.Duration) {
	a.runs = append(a.runs, ending{job, end, end.Add(later)})
}

func (a *accounting) answer(_ string, command adapter.RunCommand) (adapter.TaskResult, error) {
	if a.down {
		return adapter.TaskResult{}, errors.New("the node does not answer")
	}
	last := len(command.Command) - 1
	since, _ := strconv.ParseInt(command.Command[last-1], 10, 64)
	line, _ := strconv.Atoi(command.Command[last])
	var lines []string
	for _, one := range a.runs {
		if !one.known.After(a.now) && one.end.Unix() > since {
			const form = "2006-01-02T15:04:05"
			lines = append(lines, fmt.Sprintf("%s|%s|%d|1|60|%d", one.end.Format(form),
				one.end.Add(-time.Minute).Format(form), one.job, 1000+one.job))
		}
	}
	slices.Sort(lines)
	lines = lines[min(line-1, len(lines)):]
	return adapter.TaskResult{State: adapter.TaskSucceeded,
		Stdout: strings.Join(lines[:min(rows, len(lines))], "\n") + "\n"}, nil
}

// counted are how often each job is in the list.
func counted(t *testing.T, m *Meter) map[string]int {
	t.Helper()
	out := make(map[string]int)
	require.NoError(t, m.log.Each("ins_1", func(record adapter.UsageRecord) {
		if record.Dimension == "jobs" {
			out[record.ID]++
		}
	}))
	return out
}

// A job that ends between two reads, in the second of one, before one and is handed on after it, or while the cluster
// cannot be read, is counted once: by whichever process.
func TestJobsAcrossReadsAreCountedOnce(t *testing.T) {
	t.Parallel()
	dir, a := t.TempDir(), &accounting{}
	a.ended(1, noon.Add(-time.Minute), 0)
	a.ended(2, noon, 0)                                  // in the very second of a read
	a.ended(3, noon.Add(-30*time.Second), 8*time.Minute) // handed on late
	a.ended(4, noon.Add(3*time.Minute), 0)               // between two
	a.ended(5, noon.Add(7*time.Minute), 0)               // while nothing can be read
	a.ended(6, noon.Add(12*time.Hour), 0)                // at midnight
	a.ended(7, noon.Add(12*time.Hour+time.Second), time.Second)
	var known int
	for _, after := range []time.Duration{0, 0, 5 * time.Minute, 7 * time.Minute, 8 * time.Minute, 12 * time.Hour,
		12*time.Hour + 2*time.Second, 13 * time.Hour} {
		m, err := NewMeter(dir) // another process each time
		require.NoError(t, err)
		a.now, a.down = noon.Add(after), after == 7*time.Minute
		err = m.read("ins_1", a.answer)
		require.Equal(t, a.down, err != nil)
		require.GreaterOrEqual(t, len(counted(t, m)), known, "nothing is lost")
		known = len(counted(t, m))
	}
	m, err := NewMeter(dir)
	require.NoError(t, err)
	found := counted(t, m)
	require.Len(t, found, len(a.runs))
	for id, times := range found {
		require.Equal(t, 1, times, id)
	}
}

// More jobs than a read takes end within the overlap: the reads after it go on, and count each once.
func TestMoreJobsThanAReadTakesAreCountedByTheNext(t *testing.T) {
	t.Parallel()
	const jobs = 2*rows*tasks + 100
	a := &accounting{now: noon.Add(time.Hour)}
	for n := range jobs {
		a.ended(n+1, noon.Add(time.Duration(n/40)*time.Second), 0)
	}
	m, err := NewMeter(t.TempDir())
	require.NoError(t, err)
	for range 4 {
		require.NoError(t, m.read("ins_1", a.answer))
	}
	require.Len(t, counted(t, m), jobs)
}
