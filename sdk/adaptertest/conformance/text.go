package conformance

import (
	"fmt"
	"io"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/text"
)

// maxShown is how much of a request, an answer or a line of a log is shown to a person, in bytes; the report in JSON
// has more.
const maxShown = 400

// WriteText writes the report for a person: what was tested within which bounds, a line for each
// clause, and for each failure the rule, the request, the answer and the remedy.
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
			explainResult(result, &b)
		}
	}
	fmt.Fprintf(
		&b, "\n%d passed, %d failed, %d skipped, %d not run\n", r.Count(Passed), r.Count(Failed), r.Count(Skipped),
		r.Count(NotRun),
	)
	fmt.Fprintf(&b, "%s\n", r.Digest)
	_, err := io.WriteString(w, b.String())
	return err
}

func explainResult(r Result, b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n  rule   %s\n         (%s)\n  wrong  %s\n", r.ID, r.Rule, r.Section, r.Reason)
	for _, exchange := range r.Exchanges {
		fmt.Fprintf(b, "  sent   %s\n", text.Clip(exchange.Sent, maxShown))
		for _, line := range exchange.SentDiff {
			fmt.Fprintf(b, "         differs: %s\n", line)
		}
		fmt.Fprintf(b, "  answer %s\n", text.Clip(exchange.Came, maxShown))
		for _, line := range exchange.CameDiff {
			fmt.Fprintf(b, "         differs: %s\n", line)
		}
	}
	for _, task := range r.Tasks {
		explainTask(task, b)
	}
	for _, line := range r.Log {
		fmt.Fprintf(b, "  log    %s\n", text.Clip(line, maxShown))
	}
	fmt.Fprintf(b, "  do     %s\n", r.Fix)
}

// explainTask writes a node task that failed, with the end of what it wrote.
func explainTask(task FailedTask, b *strings.Builder) {
	fmt.Fprintf(b, "  task   %s on %s %s: %s\n", task.Kind, task.Member, task.State, text.Clip(task.Message, maxShown))
	if task.ExitCode != nil {
		fmt.Fprintf(b, "         exit code %d\n", *task.ExitCode)
	}
	name, written := "stderr", strings.TrimSpace(task.Stderr)
	if written == "" {
		name, written = "stdout", strings.TrimSpace(task.Stdout)
	}
	if written != "" {
		end := written[max(0, len(written)-maxShown):]
		fmt.Fprintf(b, "  %s %s\n", name, strings.ToValidUTF8(strings.ReplaceAll(end, "\n", "\n         "), ""))
	}
}
