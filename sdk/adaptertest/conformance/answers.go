package conformance

import "strings"

func answerClauses() []Clause {
	return []Clause{
		{ID: "answer.form", Section: "Bodies", Rule: "every answer of the whole run was JSON, and none a redirect",
			Fix: "answer application/json always, also for errors", run: answerForm},
		{ID: "answer.size", Section: "Bodies", Rule: "no answer of the whole run was larger than 1 MiB",
			Fix: "cut pages and details before they grow so large", run: answerSize},
		{ID: "secret.answers", Section: "Dispatch.platform.token", Rule: "no platform token was seen in any answer or report of the whole run",
			Fix: "never put the token into a status, a message, evidence or an error", run: secretAnswers},
		{ID: "secret.log", Section: "Dispatch.platform.token", Rule: "no platform token was seen in what the adapter wrote to its log",
			Fix: "never log a dispatch or a header as a whole", run: secretLog},
	}
}

func answerForm(c *check) { c.unless(c.seen.odd == "", "%s", c.seen.odd) }

func answerSize(c *check) { c.unless(c.seen.large == "", "%s", c.seen.large) }

func secretAnswers(c *check) {
	c.unless(c.seen.leak == "", "the answer of %s held a platform token", c.seen.leak)
	for _, report := range c.platform.Reports() {
		c.unless(!c.holdsToken(string(report)), "a report of an operation held a platform token")
	}
}

func secretLog(c *check) {
	if c.options.Launcher == nil {
		c.notRun("the suite did not start the adapter and so does not see its log")
	}
	c.unless(!c.holdsToken(c.options.Launcher.Output()), "the adapter's output holds a platform token")
}

// holdsToken looks for every token the suite gave out; they share a beginning, which is looked for first.
func (c *check) holdsToken(text string) bool {
	if !strings.Contains(text, "gpu_op_") {
		return false
	}
	for _, token := range c.platform.Tokens() {
		if strings.Contains(text, token) {
			return true
		}
	}
	return false
}
