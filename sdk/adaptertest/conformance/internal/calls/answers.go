package calls

import (
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

// Answers returns the clauses on all answers of the run together.
func Answers() []trial.Clause {
	return []trial.Clause{
		{ID: "answer.form", Section: "Bodies", Run: answerForm,
			Rule: "every answer of the whole run was JSON, and none was a redirect",
			Fix:  "answer application/json always, also for errors"},
		{ID: "answer.size", Section: "Bodies", Run: answerSize,
			Rule: "no answer of the whole run was larger than 1 MiB",
			Fix:  "limit pages and details so that they stay below that"},
		{ID: "answer.schema", Section: "Bodies", Run: answerSchema,
			Rule: "every answer of the whole run was valid against the contract's JSON Schema",
			Fix: "check your answers against docs/adapter-contract/schema.json: required fields, enum values; no " +
				"field may be left out because it is empty"},
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
	c.Require(c.Seen.Leak == "", "the answer of %s contained a platform token", c.Seen.Leak)
	for _, report := range c.Platform.Reports() {
		c.Require(!c.HoldsToken(string(report)), "a report of an operation contained a platform token")
	}
}

// secretLog calls what most tempts to log a whole request, a work that fails among it, so that the clause says
// something also when it is run alone.
func secretLog(c *trial.Check) {
	if c.Options.Launcher == nil {
		c.NotRun("the suite did not start the adapter and so does not see its log")
	}
	i := c.Shared()
	c.Observe(i)
	fresh, d := c.Fresh()
	c.Rule(trial.RuleFailing(fresh, d, 0))
	c.Accept(d)
	c.Ends(d.OperationID, c.Bounds.Operation) // whether it does is another clause
	c.Require(c.Seen.Logged == "", "the adapter's output contains a platform token: first seen after %s", c.Seen.Logged)
	c.Require(!c.HoldsToken(c.Options.Launcher.Output()), "the adapter's output contains a platform token")
}

func answerSchema(c *trial.Check) {
	wrong := c.Seen.Misfit()
	c.Require(wrong == "", "%s", wrong)
}
