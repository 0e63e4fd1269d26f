package calls

import (
	"net/http"
	"slices"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

const inPlans = "POST /v1/plans"

// Plan returns the clauses on plans.
func Plan() []trial.Clause {
	return []trial.Clause{
		{ID: "plan.valid", Section: inPlans, Needs: []string{trial.Created}, Run: planValid,
			Rule: "a plan has a verdict, states whether the operation can be undone, and has reasons unless it is safe",
			Fix:  "answer PlanAnswer as in the OpenAPI document, or 404 when you do not plan"},
		{ID: "plan.harmless", Section: inPlans, Needs: []string{"plan.valid"}, Run: planHarmless,
			Rule: "a plan changes nothing",
			Fix:  "only observe while planning: PROBE, INSPECT_PROCESS, or a RUN that reads"},
		{ID: "plan.refusal", Section: inPlans, Needs: []string{"plan.valid", "body.component"}, Run: planRefusal,
			Rule: "what a dispatch would be refused for is an unsafe verdict with its reason, not an error",
			Fix:  "answer 200 with verdict unsafe and the refusal's code and message as a reason"},
	}
}

// planned requests the plan of a decommission, or of a changed request.
func planned(c *trial.Check, i *trial.Instance, change func(*adapter.PlanRequest)) trial.Reply {
	body := adapter.PlanRequest{
		Kind: adapter.InstanceDecommission, Instance: i.Wire, Members: i.Members, Change: []byte(`{}`),
		CorrelationID: "conformance", Platform: c.Grant(i, trial.NewID("call")).Access(),
	}
	if change != nil {
		change(&body)
	}
	answer := c.Call(trial.Letter{
		Method: http.MethodPost, Target: adapter.PlansPath, Body: c.Encode(body), Patience: c.Bounds.Operation,
	})
	if slices.Contains([]int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented},
		answer.Status) {
		c.Skip("the adapter does not plan (%d)", answer.Status)
	}
	return answer
}

// planValid checks the form of a plan's answer. A verdict other than safe needs a reason.
func planValid(c *trial.Check) {
	answer := planned(c, c.Shared(), nil)
	c.Require(answer.Status == http.StatusOK, "the plan returned %s", answer.Say())
	var plan adapter.PlanAnswer
	c.Decode(answer, "the plan", &plan)
	c.Shape(answer, "PlanAnswer")
	c.Require(plan.Verdict.Valid(), "verdict is %q, not safe, unsafe or unknown", plan.Verdict)
	c.Require(plan.Verdict == adapter.VerdictSafe || len(plan.Reasons) > 0,
		"the verdict is %s without a reason", plan.Verdict)
	for n, reason := range plan.Reasons {
		c.Require(reason.Code != "" && reason.Message != "", "reasons[%d] has no code or no message", n)
	}
	c.Require(len(plan.WorkLost) <= adapter.MaxWork,
		"workLost has %d entries, more than %d", len(plan.WorkLost), adapter.MaxWork)
	c.Require(plan.WorkTotal >= len(plan.WorkLost),
		"workTotal is %d, less than the %d of workLost", plan.WorkTotal, len(plan.WorkLost))
}

// planHarmless plans a decommission and checks that it did not begin: no acting node task, no
// operation under way, an instance that is as well as before. Commands may run, since a plan must
// read what is there.
func planHarmless(c *trial.Check) {
	i := c.Shared()
	before := len(c.Platform.Ledger(i.Wire.ID))
	cursor := c.ReadPage("", 0).Cursor
	planned(c, i, nil)
	c.Pause(c.Bounds.Settle)
	for _, entry := range c.Platform.Ledger(i.Wire.ID)[before:] {
		c.Require(!standin.Acts(entry.Kind) || entry.Kind == adapter.TaskRun,
			"the plan requested the node task %s on member %s", entry.Kind, entry.Member)
	}
	for _, status := range c.ReadPage(cursor, 0).Operations {
		c.Require(!slices.Contains(c.Opened, status.OperationID) && status.State.Terminal(),
			"after the plan the operation %s is %q", status.OperationID, status.State)
	}
	seen, answer := c.Observe(i)
	c.Require(answer.Status == http.StatusOK && seen.Health != adapter.Unhealthy,
		"after the plan of a decommission the instance was observed as %s", answer.Say())
}

// planRefusal requests the plan of an impossible change.
func planRefusal(c *trial.Check) {
	answer := planned(c, c.Shared(), func(p *adapter.PlanRequest) {
		p.Members = slices.Clone(p.Members)
		p.Members[0].ComponentKey = "conformance-no-such-component"
	})
	c.Require(answer.Status == http.StatusOK, "the plan returned %s", answer.Say())
	var plan adapter.PlanAnswer
	c.Decode(answer, "the plan", &plan)
	c.Require(plan.Verdict == adapter.VerdictUnsafe && len(plan.Reasons) > 0,
		"the verdict is %q with %d reasons", plan.Verdict, len(plan.Reasons))
}
