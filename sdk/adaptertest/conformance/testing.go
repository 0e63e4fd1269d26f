package conformance

import (
	"context"
	"strings"
)

// TB is the part of a test that [Test] needs: *testing.T is one.
type TB interface {
	Helper()
	Context() context.Context
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Test runs the suite in a test. Each failed clause is an error of the test, with all that the
// report states about it. What was skipped or not run is logged.
func Test(t TB, options Options) Report {
	t.Helper()
	report, err := Run(t.Context(), options)
	if err != nil {
		t.Fatalf("conformance: %v", err)
	}
	for _, result := range report.Results {
		switch result.Outcome {
		case Failed:
			var text strings.Builder
			explainResult(result, &text)
			t.Errorf("%s", text.String())
		case Skipped, NotRun:
			t.Logf("%s", result.Line())
		}
	}
	t.Logf(
		"%d passed, %d failed, %d skipped, %d not run in %.1fs; bounds: %s; %s", report.Count(Passed),
		report.Count(Failed), report.Count(Skipped), report.Count(NotRun), report.Seconds, report.Bounds, report.Digest,
	)
	return report
}
