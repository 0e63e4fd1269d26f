package conformance

import (
	"fmt"
	"io"
	"strings"
)

// WriteText writes the report for a person: what was tested within which bounds, a line for each
// clause, and for each failure the rule, what was sent, what came and what to do.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Adapter %s, build %s, app %s\n", r.Digested.Adapter.Name, r.Digested.Adapter.Build, r.Digested.App)
	fmt.Fprintf(&b, "Suite %s, adapter contract %s\n", r.Digested.Suite, r.Digested.Contract)
	fmt.Fprintf(&b, "Bounds: %s\n\n", r.Bounds)
	for _, result := range r.Results {
		b.WriteString(result.Line() + "\n")
	}
	for _, result := range r.Results {
		if result.Outcome == Failed {
			result.explain(&b)
		}
	}
	fmt.Fprintf(&b, "\n%d passed, %d failed, %d skipped, %d not run\n", r.Count(Passed), r.Count(Failed), r.Count(Skipped), r.Count(NotRun))
	fmt.Fprintf(&b, "%s\n", r.Digest)
	_, err := io.WriteString(w, b.String())
	return err
}

// Line is the clause in one line.
func (r Result) Line() string {
	word := map[Outcome]string{Passed: "pass", Failed: "FAIL", Skipped: "skip", NotRun: "not run"}[r.Outcome]
	line := fmt.Sprintf("%-8s%-28s%6.1fs", word, r.ID, r.Seconds)
	if r.Reason != "" {
		line += "  " + clip(strings.ReplaceAll(r.Reason, "\n", " "), 160)
	}
	return line
}

func (r Result) explain(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n  rule   %s\n         (%s)\n  wrong  %s\n", r.ID, r.Rule, r.Section, r.Reason)
	for _, exchange := range r.Exchanges {
		fmt.Fprintf(b, "  sent   %s\n  came   %s\n", exchange.Sent, exchange.Came)
	}
	fmt.Fprintf(b, "  do     %s\n", r.Fix)
}

// String names every bound.
func (b Bounds) String() string {
	return fmt.Sprintf("whole run %s, clause %s, operation %s, request %s, start %s, settle %s, near deadline %s, grace %s, burst %d",
		b.Overall, b.Clause, b.Operation, b.Request, b.Start, b.Settle, b.Near, b.Grace, b.Burst)
}

// clip cuts text to at most limit bytes.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
