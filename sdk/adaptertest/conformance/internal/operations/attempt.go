// Package operations holds the clauses on the life of an operation: dispatch, attempt, cancel,
// deadline, the feed of changes, and a crash of the adapter.
package operations

import (
	"net/http"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// Attempt returns the clauses on attempts of a dispatch.
func Attempt() []trial.Clause {
	return []trial.Clause{
		{ID: "attempt.higher", Section: trial.InFence, Needs: []string{trial.Created}, Run: attemptHigher,
			Rule: "a higher attempt of an operation under way continues it and is reported",
			Fix: "use token and deadline of the higher attempt, keep what has been done, and answer 202 with the new " +
				"attempt"},
		{ID: "attempt.stale", Section: trial.InFence, Needs: []string{"attempt.higher"}, Run: attemptStale,
			Rule: "a lower attempt than the highest seen is refused with 409 STALE_FENCE",
			Fix:  "keep the highest attempt with the operation and refuse lower ones"},
		{ID: "attempt.token", Section: trial.InFence, Needs: []string{"attempt.higher"}, Run: attemptToken,
			Rule: "after a higher attempt its token is used, and the old one is not",
			Fix:  "read the token for each request instead of keeping the first one"},
		{ID: "attempt.deadline", Section: trial.InFence, Needs: []string{"attempt.higher"}, Run: attemptDeadline,
			Rule: "after a higher attempt its deadline counts",
			Fix:  "move the run's deadline when a higher attempt brings another"},
		{ID: "attempt.ended", Section: trial.InFence, Needs: []string{trial.Created}, Run: attemptEnded,
			Rule: "a higher attempt of an operation that succeeded changes nothing and is reported",
			Fix:  "answer 200 with the old result and the new attempt"},
		{ID: "attempt.failure", Section: trial.InDispatch, Needs: []string{trial.Created}, Run: attemptFailure,
			Rule: "an operation whose work fails ends failed, with a code, a message, an owner and whether " +
				"to try again",
			Fix: "end the operation with error {code, message, owner, retryable}; do not retry for ever"},
		{ID: "attempt.retry", Section: trial.InFence, Needs: []string{"attempt.failure"}, Run: attemptRetry,
			Rule: "a higher attempt of a failed operation starts it again",
			Fix:  "on a higher attempt of a failed operation run it again from the start"},
	}
}

func attemptHigher(c *trial.Check) {
	i, d, rule := c.Middle()
	d.Attempt = 2
	status := c.Accept(d)
	c.Require(status.Attempt == 2, "the answer to attempt 2 has attempt %d", status.Attempt)
	c.Require(!status.State.Terminal(), "the operation is %q although it was under way", status.State)
	rule.Lift()
	end := c.Succeed(d.OperationID)
	c.Require(end.Attempt == 2, "the operation ended with attempt %d instead of 2", end.Attempt)
	c.ActsOnce(i)
}

// attemptStale sends lower attempts after the third: none of them may take the operation over.
func attemptStale(c *trial.Check) {
	_, d, rule := c.Middle()
	d.Attempt = 3
	c.Accept(d)
	for _, lower := range []int{2, 1} {
		d.Attempt = lower
		body := c.Refused("a dispatch with an attempt lower than 3", c.Put(d), http.StatusConflict)
		c.Require(body.Code == adapter.CodeStaleFence,
			"a lower attempt was refused with %s, not %s", body.Code, adapter.CodeStaleFence)
	}
	rule.Lift()
	c.Succeed(d.OperationID)
}

// attemptToken revokes the first token once the second attempt has brought another: an adapter that
// keeps the first cannot finish.
func attemptToken(c *trial.Check) {
	i := c.NewInstance()
	d := c.Dispatch(i, adapter.InstanceCreate)
	first := c.Grant(i, d.OperationID)
	d.Platform = first.Access()
	rule := c.Hold(i, d, 0)
	c.Accept(d)
	c.AwaitCaught(rule, d.OperationID)
	d.Attempt, d.Platform = 2, c.Grant(i, d.OperationID).Access()
	c.Accept(d)
	c.Pause(c.Bounds.Settle) // what was on its way with the first token may still arrive
	first.Revoke()
	rule.Lift()
	status := c.Await(d.OperationID)
	c.Require(status.State == adapter.StateSucceeded,
		"after the first token was revoked and the second one was sent the operation ended %q: %s", status.State,
		trial.Explain(status))
}

// attemptDeadline needs the second attempt to arrive before the first one's deadline. On a machine
// that is too slow for that it tries again with more time.
func attemptDeadline(c *trial.Check) {
	for near := c.Bounds.Near; ; near *= 4 {
		i := c.NewInstance()
		d := c.Dispatch(i, adapter.InstanceCreate)
		d.Deadline = deadlineIn(near)
		first := d.Deadline
		rule := c.Hold(i, d, 0)
		c.Accept(d)
		c.AwaitCaught(rule, d.OperationID)
		d.Attempt, d.Deadline = 2, deadlineIn(c.Bounds.Operation+near)
		c.Accept(d)
		if time.Now().After(first) && near < c.Bounds.Operation {
			rule.Lift()
			continue
		}
		c.Pause(near + c.Bounds.Settle)
		status := c.Status(d.OperationID)
		c.Require(!status.State.Terminal(),
			"the operation ended %q at the deadline of its first attempt, though the second had moved it", status.State)
		rule.Lift()
		c.Succeed(d.OperationID)
		return
	}
}

// attemptEnded sends a higher attempt of an operation that has succeeded.
func attemptEnded(c *trial.Check) {
	i, d := c.Create()
	before := i.Begun()
	d.Attempt = 2
	answer := c.Put(d)
	status := c.Taken(d, answer)
	c.Require(answer.Status == http.StatusOK && status.State == adapter.StateSucceeded,
		"a higher attempt of an operation that had succeeded returned %s", answer.Say())
	c.Require(status.Attempt == 2, "the answer to attempt 2 has attempt %d", status.Attempt)
	c.StaysQuiet(i, before, "a higher attempt of an operation that had succeeded")
}

// failing begins a create whose node tasks all fail, and awaits its end.
func failing(c *trial.Check) (*standin.Rule, adapter.Dispatch, adapter.Status) {
	i := c.NewInstance()
	d := c.Dispatch(i, adapter.InstanceCreate)
	rule := c.Rule(&standin.Rule{Instance: i.Wire.ID, Operation: d.OperationID, Fate: standin.Fail})
	c.Accept(d)
	status := c.AwaitFor(d.OperationID, c.Bounds.Operation+c.Bounds.Grace)
	if rule.Count() == 0 {
		c.Skip("a create of this app requests no node task that could fail")
	}
	return rule, d, status
}

func attemptFailure(c *trial.Check) {
	_, _, status := failing(c)
	c.Require(status.State == adapter.StateFailed, "every node task failed, but the operation ended %q", status.State)
	c.Require(status.Error != nil && status.Error.Code != "" && status.Error.Message != "",
		"the failed operation has no error with code and message")
	c.Require(status.Error.Owner.Valid(),
		"the error's owner is %q, not adapter, platform, user or node", status.Error.Owner)
}

func attemptRetry(c *trial.Check) {
	rule, d, status := failing(c)
	c.Require(status.State == adapter.StateFailed, "every node task failed, but the operation ended %q", status.State)
	rule.Lift()
	d.Attempt, d.Deadline = 2, deadlineIn(c.Bounds.Operation)
	again := c.Accept(d)
	c.Require(again.Attempt == 2, "the answer to attempt 2 has attempt %d", again.Attempt)
	c.Succeed(d.OperationID)
}
