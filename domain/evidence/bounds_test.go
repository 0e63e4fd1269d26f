package evidence

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// about is a report of one clause by an adapter, build, app and version of the suite.
func about(t *testing.T, adapter, build, app, suite string) []byte {
	t.Helper()
	said, err := json.Marshal(map[string]any{
		"suiteVersion": suite, "adapter": map[string]string{"name": adapter, "build": build}, "app": app,
		"clauses": []map[string]string{{"id": "a.a", "outcome": "passed"}},
	})
	require.NoError(t, err)
	digest, err := digestOf(said)
	require.NoError(t, err)
	data, err := json.Marshal(map[string]any{"digest": digest, "digested": json.RawMessage(said)})
	require.NoError(t, err)
	return data
}

// refused requires that the report is refused for the reason, and gives nothing.
func refused(t *testing.T, data []byte, reason string) {
	t.Helper()
	got, err := Parse(lifecycle.EvidenceTenancy, data)
	require.True(t, fault.Is(err, fault.InvalidArgument), "%v", err)
	found, _ := fault.As(err)
	require.Len(t, found.Reasons, 1)
	require.Equal(t, "input.report", found.Reasons[0].Path)
	require.Equal(t, "the report "+reason, found.Reasons[0].Message)
	require.Zero(t, got)
}

func TestAReportMayReachEachBound(t *testing.T) {
	t.Parallel()
	const words = "must name the adapter, its build, the app and the suite's version, each in at most 200 bytes"
	most := strings.Repeat("x", 200)
	for _, at := range []int{0, 1, 2, 3} {
		for word, fits := range map[string]bool{"": false, "x": true, most: true, most + "x": false} {
			names := []string{"a", "b", "c", "d"}
			names[at] = word
			data := about(t, names[0], names[1], names[2], names[3])
			if !fits {
				refused(t, data, words)
				continue
			}
			got, err := Parse(lifecycle.EvidenceTenancy, data)
			require.NoError(t, err)
			require.Equal(t, names, []string{got.Adapter, got.Build, got.App, got.Suite})
		}
	}
	got, err := Parse(lifecycle.EvidenceTenancy, written(t, many(1000)...))
	require.NoError(t, err)
	require.Equal(t, 1000, got.Passed)
	refused(t, written(t, many(1001)...), "must have at most 1000 clauses")
	report := written(t, "a.a passed")
	space := []byte(strings.Repeat(" ", 512<<10-len(report)))
	_, err = Parse(lifecycle.EvidenceTenancy, append(report, space...))
	require.NoError(t, err)
	refused(t, append(append(report, space...), ' '), "must be at most 524288 bytes")
}

func TestAReportThatSaysNothingIsNotOne(t *testing.T) {
	t.Parallel()
	for _, data := range []string{``, `{`, `7`, `{}`, `{"digest": "sha256:x"}`, `{"digested": 7}`, `{"digested": []}`} {
		refused(t, []byte(data), "is not a report of the conformance suite")
	}
	_, err := digestOf(json.RawMessage(`{`))
	require.ErrorContains(t, err, "read the report")
}

func TestAReportIsGoodWhenSomethingPassedAndNothingElseHappened(t *testing.T) {
	t.Parallel()
	require.True(t, Summary{Passed: 1}.OK())
	require.True(t, Summary{Passed: 1, Skipped: 2, NotRun: 3}.OK())
	require.False(t, Summary{}.OK())
	require.False(t, Summary{Passed: 1, Failed: 1}.OK())
	require.False(t, Summary{Passed: 1, Missing: []string{"a.a"}}.OK())
}
