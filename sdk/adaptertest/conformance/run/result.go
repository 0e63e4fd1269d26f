package run

import (
	"fmt"
	"strings"

	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/text"
)

// Outcome is how a clause ended.
type Outcome string

// The outcomes. Only the first is good; the last two say why in the reason.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
	NotRun  Outcome = "not_run"
)

// Result is how one clause ended.
type Result struct {
	// ID, Rule and Section are as in the clause.
	ID      string `json:"id"`
	Rule    string `json:"rule"`
	Section string `json:"section"`
	// Outcome is how it ended.
	Outcome Outcome `json:"outcome"`
	// Reason is what was wrong, or why it did not apply; empty when it passed.
	Reason string `json:"reason,omitempty"`
	// Exchanges are the last requests and answers of a failed clause, oldest first.
	Exchanges []Exchange `json:"exchanges,omitempty"`
	// Tasks are the last node tasks that failed during a failed clause, with what they wrote.
	Tasks []FailedTask `json:"tasks,omitempty"`
	// Log is what the adapter wrote to its log last, before a clause failed, where the suite started the adapter.
	Log []string `json:"log,omitempty"`
	// Fix is the remedy of a failure.
	Fix string `json:"fix,omitempty"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
}

// Exchange is one request and its answer.
type Exchange struct {
	// Sent is method, path and body, without tokens, the first 64 KiB.
	Sent string `json:"sent"`
	// Came is the status and the answer, as long, or why there was none.
	Came string `json:"came"`
	// SentDiff is what differs in the body from the clause's last request to the same route, CameDiff what differs in
	// the answer of the same status: a line for each place.
	SentDiff []string `json:"sentDiff,omitempty"`
	CameDiff []string `json:"cameDiff,omitempty"`
}

// FailedTask is a node task that failed.
type FailedTask struct {
	// Member is the member of the task; Kind, Key and Spec are those of the request.
	Member string `json:"member"`
	Kind   string `json:"kind"`
	Key    string `json:"key"`
	Spec   string `json:"spec"`
	// State and Message are how it ended; ExitCode, Stdout and Stderr a command's.
	State    string `json:"state"`
	Message  string `json:"message"`
	ExitCode *int   `json:"exitCode,omitempty"`
	Stdout   string `json:"stdout,omitempty"`
	Stderr   string `json:"stderr,omitempty"`
}

// Line returns the result in one line.
func (r Result) Line() string {
	word := map[Outcome]string{Passed: "pass", Failed: "FAIL", Skipped: "skip", NotRun: "not run"}[r.Outcome]
	line := fmt.Sprintf("%-8s%-28s%6.1fs", word, r.ID, r.Seconds)
	if r.Reason != "" {
		line += "  " + text.Clip(strings.ReplaceAll(r.Reason, "\n", " "), 160)
	}
	return line
}
