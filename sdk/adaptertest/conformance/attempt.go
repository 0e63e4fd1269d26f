package conformance

import (
	"net/http"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

const inFence = "PUT /v1/operations/{id}, Fence"

func attemptClauses() []Clause {
	return []Clause{
		{ID: "attempt.higher", Section: inFence, Rule: "a higher attempt of an operation under way continues it and is reported", Needs: []string{created},
			Fix: "take token and deadline of the higher attempt over, keep what has been done, and answer 202 with the new attempt", run: attemptHigher},
		{ID: "attempt.stale", Section: inFence, Rule: "a lower attempt than the highest seen is refused with 409 STALE_FENCE", Needs: []string{"attempt.higher"},
			Fix: "keep the highest attempt with the operation and refuse lower ones", run: attemptStale},
		{ID: "attempt.token", Section: inFence, Rule: "from a higher attempt on its token is used and the old one is not", Needs: []string{"attempt.higher"},
			Fix: "let the run look its token up each time instead of keeping the first", run: attemptToken},
		{ID: "attempt.deadline", Section: inFence, Rule: "from a higher attempt on its deadline counts", Needs: []string{"attempt.higher"},
			Fix: "move the run's deadline when a higher attempt brings another", run: attemptDeadline},
		{ID: "attempt.ended", Section: inFence, Rule: "a higher attempt of an operation that succeeded changes nothing and is reported", Needs: []string{created},
			Fix: "answer 200 with the old end and the new attempt", run: attemptEnded},
		{ID: "attempt.failure", Section: inDispatch, Rule: "an operation whose work fails ends failed, with a code, a message, an owner and whether to try again", Needs: []string{created},
			Fix: "end the operation with error {code, message, owner, retryable}; do not try for ever", run: attemptFailure},
		{ID: "attempt.retry", Section: inFence, Rule: "a higher attempt of a failed operation begins it anew", Needs: []string{"attempt.failure"},
			Fix: "on a higher attempt of a failed operation run it again from the start", run: attemptRetry},
	}
}

func attemptHigher(c *check) {
	i, d, rule := c.middle()
	d.Attempt = 2
	status := c.accept(d)
	c.unless(status.Attempt == 2, "the answer to attempt 2 says attempt %d", status.Attempt)
	c.unless(!status.State.Terminal(), "the operation is %q though it was under way", status.State)
	rule.Lift()
	end := c.succeed(d.OperationID)
	c.unless(end.Attempt == 2, "the operation ended with attempt %d instead of 2", end.Attempt)
	c.once(i)
}

func attemptStale(c *check) {
	_, d, rule := c.middle()
	d.Attempt = 3
	c.accept(d)
	for _, lower := range []int{2, 1} {
		d.Attempt = lower
		body := c.refused("a dispatch with an attempt lower than 3", c.put(d), http.StatusConflict)
		c.unless(body.Code == adapter.CodeStaleFence, "a lower attempt was refused with %s, not %s", body.Code, adapter.CodeStaleFence)
	}
	rule.Lift()
	c.succeed(d.OperationID)
}

func attemptToken(c *check) {
	i := c.instance()
	d := c.dispatch(i, adapter.InstanceCreate)
	first := c.grant(i, d.OperationID)
	d.Platform = first.Access()
	rule := c.hold(i, d, 0)
	c.accept(d)
	c.caught(rule, d.OperationID)
	d.Attempt, d.Platform = 2, c.grant(i, d.OperationID).Access()
	c.accept(d)
	c.pause(c.bounds.Settle) // what was on its way with the first token may still arrive
	first.Revoke()
	rule.Lift()
	status := c.await(d.OperationID)
	c.unless(status.State == adapter.StateSucceeded, "with the first token revoked and the second at hand the operation ended %q: %s", status.State, explain(status))
}

// attemptDeadline needs the second attempt to arrive before the first one's deadline. On a machine
// that is too slow for that it tries again with more time.
func attemptDeadline(c *check) {
	for near := c.bounds.Near; ; near *= 4 {
		i := c.instance()
		d := c.dispatch(i, adapter.InstanceCreate)
		d.Deadline = deadlineIn(near)
		first := d.Deadline
		rule := c.hold(i, d, 0)
		c.accept(d)
		c.caught(rule, d.OperationID)
		d.Attempt, d.Deadline = 2, deadlineIn(c.bounds.Operation+near)
		c.accept(d)
		if time.Now().After(first) && near < c.bounds.Operation {
			rule.Lift()
			continue
		}
		c.pause(near + c.bounds.Settle)
		status := c.status(d.OperationID)
		c.unless(!status.State.Terminal(), "the operation ended %q at the deadline of its first attempt, though the second had moved it", status.State)
		rule.Lift()
		c.succeed(d.OperationID)
		return
	}
}

func attemptEnded(c *check) {
	i, d := c.create()
	before := i.begun()
	d.Attempt = 2
	answer := c.put(d)
	status := c.taken(d, answer)
	c.unless(answer.status == http.StatusOK && status.State == adapter.StateSucceeded, "a higher attempt of what had succeeded was answered %s", answer.say())
	c.unless(status.Attempt == 2, "the answer to attempt 2 says attempt %d", status.Attempt)
	c.quiet(i, before, "a higher attempt of an operation that had succeeded")
}

// failing begins a create whose node tasks all fail, and awaits its end.
func (c *check) failing() (*standin.Rule, adapter.Dispatch, adapter.Status) {
	i := c.instance()
	d := c.dispatch(i, adapter.InstanceCreate)
	rule := c.rule(&standin.Rule{Instance: i.as.ID, Operation: d.OperationID, Fate: standin.Fail})
	c.accept(d)
	status := c.awaitFor(d.OperationID, c.bounds.Operation+c.bounds.Grace)
	if rule.Count() == 0 {
		c.skip("a create of this app asks for no node task that could fail")
	}
	return rule, d, status
}

func attemptFailure(c *check) {
	_, _, status := c.failing()
	c.unless(status.State == adapter.StateFailed, "every node task failed, and the operation ended %q", status.State)
	c.unless(status.Error != nil && status.Error.Code != "" && status.Error.Message != "", "the failed operation has no error with code and message")
	c.unless(status.Error.Owner.Valid(), "the error's owner is %q, not adapter, platform, user or node", status.Error.Owner)
}

func attemptRetry(c *check) {
	rule, d, status := c.failing()
	c.unless(status.State == adapter.StateFailed, "every node task failed, and the operation ended %q", status.State)
	rule.Lift()
	d.Attempt, d.Deadline = 2, deadlineIn(c.bounds.Operation)
	again := c.accept(d)
	c.unless(again.Attempt == 2, "the answer to attempt 2 says attempt %d", again.Attempt)
	c.succeed(d.OperationID)
}
