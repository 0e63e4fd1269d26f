package oci

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

var counted = map[string]string{"requests_total": "requests", "tokens_total": "tokens", "batch_tokens_total": "tokens"}

// said returns the result of a container's script that has printed these times and metrics.
func said(started, now int, metrics string) adapter.TaskResult {
	return adapter.TaskResult{State: adapter.TaskSucceeded,
		Stdout: fmt.Sprintf("started %d000000000 now %d\n%s", started, now, metrics)}
}

// totals adds a list up by dimension.
func totals(t *testing.T, m *meter) map[string]string {
	t.Helper()
	page, err := m.log.Page("ins_1", "")
	require.NoError(t, err)
	out := make(map[string]string)
	for _, one := range page.Records {
		out[one.Dimension] += " " + one.Quantity
	}
	return out
}

func TestCountersBecomeUsageOnce(t *testing.T) {
	t.Parallel()
	dir, member := t.TempDir(), memberOf(0)
	m, err := newMeter(dir)
	require.NoError(t, err)
	take := func(result adapter.TaskResult) error { return m.take("ins_1", member, counted, result, nil) }
	require.NoError(t, take(said(1000, 1010,
		"requests_total 2\ntokens_total{kind=\"a b} c\"} 1.5e2 1395066363000\ntokens_total{kind=\"out\"} "+
			"0.5\nbatch_tokens_total 1\nother 9\n")))
	require.NoError(t, take(said(1000, 1010, "requests_total 2\n")))
	require.Equal(t, map[string]string{"requests": " 2", "tokens": " 151.5"}, totals(t, m))

	m, err = newMeter(dir) // another process
	require.NoError(t, err)
	require.NoError(t, take(said(1000, 1020, "requests_total 5\n")))
	require.NoError(t, take(said(1000, 1015, "requests_total 4\n")), "an older answer that comes later")
	require.NoError(t, take(said(1030, 1040, "requests_total 1\n")), "the container was started again")
	require.Equal(t, map[string]string{"requests": " 2 3 1", "tokens": " 151.5"}, totals(t, m))
	page, err := m.log.Page("ins_1", "")
	require.NoError(t, err)
	last := page.Records[len(page.Records)-1]
	require.Equal(t, "requests/mem_a/1030000000000/1", last.ID)
	require.EqualValues(t, []int64{1030, 1040}, []int64{last.From.Unix(), last.To.Unix()})
	require.EqualValues(t, 1010, page.Records[2].From.Unix(), "it goes on where the record before ended")
}

func TestWhatIsNoCounterIsNotCounted(t *testing.T) {
	t.Parallel()
	m, err := newMeter(t.TempDir())
	require.NoError(t, err)
	for _, text := range []string{"requests_total", "requests_total NaN", "requests_total -1", "requests_total +Inf",
		"requests_total 1e999999999",
		"requests_total 1/3", "requests_total{a=\"b\"}", "requests_total 0x10000000000000000"} {
		require.Error(t, m.take("ins_1", memberOf(0), counted, said(1000, 1010, text+"\n"), nil), text)
	}
	require.Error(t, m.take("ins_1", memberOf(0), counted,
		adapter.TaskResult{State: adapter.TaskSucceeded, Stdout: "<html>"}, nil))
	require.Error(t, m.take("ins_1", memberOf(0), counted,
		adapter.TaskResult{State: adapter.TaskFailed, Stderr: "oci: no answer"}, nil))
	require.NoError(t, m.take("ins_1", memberOf(0), counted, adapter.TaskResult{State: adapter.TaskSucceeded}, nil),
		"it counts nothing")
	require.Empty(t, totals(t, m))
}
