package evidence

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// written is a report over these clauses, "id outcome", with a digest that is right.
func written(t testing.TB, clauses ...string) []byte {
	t.Helper()
	list := []map[string]string{}
	for _, clause := range clauses {
		id, outcome, _ := strings.Cut(clause, " ")
		list = append(list, map[string]string{"id": id, "outcome": outcome})
	}
	said, err := json.Marshal(map[string]any{
		"suiteVersion": "1.1", "contractVersion": "1.1", "adapter": map[string]string{"name": "a<b", "build": "7"},
		"app": "x", "clauses": list,
	})
	require.NoError(t, err)
	digest, err := digestOf(said)
	require.NoError(t, err)
	data, err := json.Marshal(map[string]any{"digest": digest, "digested": json.RawMessage(said),
		"results": []string{"anything"}})
	require.NoError(t, err)
	return data
}

// all are the required clauses of a kind with this outcome.
func all(kind lifecycle.EvidenceKind, outcome string) (clauses []string) {
	for _, id := range Required(kind) {
		clauses = append(clauses, id+" "+outcome)
	}
	return clauses
}

func TestAReportPassesWhenNothingFailedAndNothingRequiredIsMissing(t *testing.T) {
	t.Parallel()
	const kind = lifecycle.EvidenceTenancy
	whole := all(kind, "passed")
	got, err := Parse(kind, written(t, append(whole, "action.input skipped", "crash.once not_run")...))
	require.NoError(t, err)
	require.Equal(t, Summary{Adapter: "a<b", Build: "7", App: "x", Suite: "1.1", Passed: len(whole),
		Skipped: 1, NotRun: 1, Missing: []string{}}, got)
	require.True(t, got.OK())

	got, err = Parse(kind, written(t, append(whole, "action.input failed")...))
	require.NoError(t, err)
	require.False(t, got.OK(), "a clause failed, though not a required one")

	for _, outcome := range []string{"skipped", "not_run", "failed"} {
		short := append(append([]string{}, whole[1:]...), Required(kind)[0]+" "+outcome)
		got, err = Parse(kind, written(t, short...))
		require.NoError(t, err)
		require.Equal(t, Required(kind)[:1], got.Missing)
		require.False(t, got.OK(), outcome)
	}
	got, err = Parse(lifecycle.EvidenceConformance, written(t, whole...))
	require.NoError(t, err)
	require.Equal(t, Required(lifecycle.EvidenceConformance), got.Missing, "a report of one kind is none of the other")
	got, err = Parse(kind, written(t))
	require.NoError(t, err)
	require.False(t, got.OK())
}

func TestWhatIsNoReportIsRefused(t *testing.T) {
	t.Parallel()
	good := string(written(t, all(lifecycle.EvidenceTenancy, "passed")...))
	for name, c := range map[string]struct {
		data string
		code fault.Code
	}{
		"no JSON":          {`{`, fault.InvalidArgument},
		"something else":   {`{"ok": true}`, fault.InvalidArgument},
		"a list":           {`{"digested": []}`, fault.InvalidArgument},
		"changed by hand":  {strings.Replace(good, `"build":"7"`, `"build":"8"`, 1), fault.DigestMismatch},
		"digest by hand":   {strings.Replace(good, `"digest":"sha256:`, `"digest":"sha256:0`, 1), fault.DigestMismatch},
		"clause twice":     {string(written(t, "a.a passed", "a.a failed")), fault.InvalidArgument},
		"no clause's name": {string(written(t, "A passed")), fault.InvalidArgument},
		"unknown outcome":  {string(written(t, "a.a fine")), fault.InvalidArgument},
		"too long":         {strings.Repeat(" ", MaxReport+1), fault.InvalidArgument},
		"too many clauses": {string(written(t, many(maxClauses+1)...)), fault.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(lifecycle.EvidenceTenancy, []byte(c.data))
			found, ok := fault.As(err)
			require.True(t, ok, "got %v", err)
			require.Equal(t, c.code, found.Code)
			require.Equal(t, "input.report", found.Reasons[0].Path)
		})
	}
}

func many(n int) (clauses []string) {
	for i := range n {
		clauses = append(clauses, "a."+strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprint(i))+" passed")
	}
	return clauses
}

// FuzzParse proves that no text makes the parser do anything but answer, and that nothing passes without the required
// clauses.
func FuzzParse(f *testing.F) {
	f.Add(written(f, all(lifecycle.EvidenceTenancy, "passed")...))
	f.Add(written(f, "a.a failed"))
	if kept, err := os.ReadFile("../../cmd/hello-cluster-controller/tenancy.json"); err == nil {
		f.Add(kept)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Parse(lifecycle.EvidenceTenancy, data)
		if err != nil {
			require.NotEmpty(t, fault.From(err).Code)
			require.Zero(t, got)
			return
		}
		require.LessOrEqual(t, got.Passed+got.Failed+got.Skipped+got.NotRun, maxClauses)
		if got.OK() {
			require.GreaterOrEqual(t, got.Passed, len(Required(lifecycle.EvidenceTenancy)))
		}
	})
}
