package conformance

import (
	"net/http"
	"slices"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

const inPlans = "POST /v1/plans"

func planClauses() []Clause {
	return []Clause{
		{ID: "plan.valid", Section: inPlans, Rule: "a plan has a verdict, says whether it can be undone, and gives reasons unless it is safe", Needs: []string{created},
			Fix: "answer PlanAnswer as in the OpenAPI document, or 404 when you do not plan", run: planValid},
		{ID: "plan.harmless", Section: inPlans, Rule: "a plan changes nothing", Needs: []string{"plan.valid"},
			Fix: "only look while planning: PROBE, INSPECT_PROCESS, or a RUN that reads", run: planHarmless},
		{ID: "plan.refusal", Section: inPlans, Rule: "what a dispatch would be refused for is an unsafe verdict with its reason, and no error", Needs: []string{"plan.valid", "body.component"},
			Fix: "answer 200 with verdict unsafe and the refusal's code and message as a reason", run: planRefusal},
	}
}

// planned asks for the plan of a decommission, or of what was changed in it.
func (c *check) planned(i *instance, change func(*adapter.PlanRequest)) reply {
	body := adapter.PlanRequest{
		Kind: adapter.InstanceDecommission, Instance: i.as, Members: i.members, Change: []byte(`{}`),
		CorrelationID: "conformance", Platform: c.grant(i, newID("call")).Access(),
	}
	if change != nil {
		change(&body)
	}
	answer := c.call(letter{method: http.MethodPost, target: adapter.PlansPath, body: c.encode(body), patience: c.bounds.Operation})
	if slices.Contains([]int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}, answer.status) {
		c.skip("the adapter does not plan (%d)", answer.status)
	}
	return answer
}

func planValid(c *check) {
	answer := c.planned(c.shared(), nil)
	c.unless(answer.status == http.StatusOK, "it was answered %s", answer.say())
	var plan adapter.PlanAnswer
	c.decode(answer, "the plan", &plan)
	c.unless(plan.Verdict.Valid(), "verdict is %q, not safe, unsafe or unknown", plan.Verdict)
	c.unless(plan.Verdict == adapter.VerdictSafe || len(plan.Reasons) > 0, "the verdict is %s without a reason", plan.Verdict)
	for n, reason := range plan.Reasons {
		c.unless(reason.Code != "" && reason.Message != "", "reasons[%d] has no code or no message", n)
	}
	c.unless(len(plan.WorkLost) <= adapter.MaxWork, "workLost holds %d, more than %d", len(plan.WorkLost), adapter.MaxWork)
	c.unless(plan.WorkTotal >= len(plan.WorkLost), "workTotal is %d, less than the %d of workLost", plan.WorkTotal, len(plan.WorkLost))
}

func planHarmless(c *check) {
	i := c.shared()
	before := len(c.platform.Ledger(i.as.ID))
	cursor := c.page("", 0).Cursor
	c.planned(i, nil)
	c.pause(c.bounds.Settle)
	for _, entry := range c.platform.Ledger(i.as.ID)[before:] {
		c.unless(!standin.Acts(entry.Kind) || entry.Kind == adapter.TaskRun, "the plan asked for the node task %s on member %s", entry.Kind, entry.Member)
	}
	for _, status := range c.page(cursor, 0).Operations {
		c.unless(!slices.Contains(c.opened, status.OperationID) && status.State.Terminal(), "after the plan the operation %s is %q", status.OperationID, status.State)
	}
	seen, answer := c.observe(i)
	c.unless(answer.status == http.StatusOK && seen.Health != adapter.Unhealthy, "after the plan of a decommission the instance was observed as %s", answer.say())
}

func planRefusal(c *check) {
	answer := c.planned(c.shared(), func(p *adapter.PlanRequest) {
		p.Members = slices.Clone(p.Members)
		p.Members[0].ComponentKey = "conformance-no-such-component"
	})
	c.unless(answer.status == http.StatusOK, "it was answered %s", answer.say())
	var plan adapter.PlanAnswer
	c.decode(answer, "the plan", &plan)
	c.unless(plan.Verdict == adapter.VerdictUnsafe && len(plan.Reasons) > 0, "the verdict is %q with %d reasons", plan.Verdict, len(plan.Reasons))
}
