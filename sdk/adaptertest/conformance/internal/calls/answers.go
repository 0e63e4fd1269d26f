package calls

import (
	"strings"

	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

// Answers returns the clauses on all answers of the run together.
func Answers() []trial.Clause {
	return []trial.Clause{
		{ID: "answer.form", Section: "Bodies", Run: answerForm,
			Rule: "every answer of the whole run was JSON, and none a redirect",
			Fix:  "answer application/json always, also for errors"},
		{ID: "answer.size", Section: "Bodies", Run: answerSize,
			Rule: "no answer of the whole run was larger than 1 MiB",
			Fix:  "cut pages and details before they grow so large"},
		{ID: "secret.answers", Section: "Dispatch.platform.token", Run: secretAnswers,
			Rule: "no platform token was seen in any answer or report of the whole run",
			Fix:  "never put the token into a status, a message, evidence or an error"},
		{ID: "secret.log", Section: "Dispatch.platform.token", Needs: []string{trial.Created}, Run: secretLog,
			Rule: "no platform token was seen in what the adapter wrote to its log",
			Fix:  "never log a dispatch or a header as a whole"},
	}
}

func answerForm(c *trial.Check) { c.Require(c.Seen.Odd == "", "%s", c.Seen.Odd) }

func answerSize(c *trial.Check) { c.Require(c.Seen.Large == "", "%s", c.Seen.Large) }

func secretAnswers(c *trial.Check) {
	c.Require(c.Seen.Leak == "", "the answer of %s held a platform token", c.Seen.Leak)
	for _, report := range c.Platform.Reports() {
		c.Require(!holdsToken(c, string(report)), "a report of an operation held a platform token")
	}
}

func secretLog(c *trial.Check) {
	if c.Options.Launcher == nil {
		c.NotRun("the suite did not start the adapter and so does not see its log")
	}
	c.Require(!holdsToken(c, c.Options.Launcher.Output()), "the adapter's output holds a platform token")
}

// holdsToken reports whether a text holds a token that the suite issued. All tokens share a
// beginning, which it looks for first.
func holdsToken(c *trial.Check, text string) bool {
	if !strings.Contains(text, "gpu_op_") {
		return false
	}
	for _, token := range c.Platform.Tokens() {
		if strings.Contains(text, token) {
			return true
		}
	}
	return false
}
