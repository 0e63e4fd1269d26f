package conformance

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// witness is a test that keeps why it failed; Fatalf ends it by a panic.
type witness struct{ said string }

func (w *witness) Helper()                      {}
func (w *witness) Context() context.Context     { return context.Background() }
func (w *witness) Logf(string, ...any)          {}
func (w *witness) Errorf(f string, args ...any) { w.said += fmt.Sprintf(f, args...) }
func (w *witness) Fatalf(f string, args ...any) {
	w.Errorf(f, args...)
	panic(w)
}

// refusal returns why the reports are not those that are kept.
func refusal(r Report) (said string) {
	w := &witness{}
	defer func() {
		_ = recover()
		said = w.said
	}()
	CommittedBoth(w, r, false)
	return ""
}

func TestBothReportsAreKeptAndOfEveryClause(t *testing.T) {
	t.Chdir(t.TempDir())
	report := Report{Results: []Result{{ID: Clauses()[0].ID, Outcome: Passed}}}
	require.NoError(t, report.seal())
	require.Contains(t, refusal(report), "conformance.json")
	CommittedBoth(t, report, true)
	require.Empty(t, refusal(report))

	left := report
	left.Results = append(left.Results, Result{ID: Clauses()[1].ID, Outcome: NotRun})
	require.Contains(t, refusal(left), "1 clauses were not run")
	require.NoError(t, os.Remove("tenancy.json"))
	require.Contains(t, refusal(report), "tenancy.json")
}
