package conformance

import (
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const inDeadline = "Dispatch.deadline"

func deadlineClauses() []Clause {
	return []Clause{
		{ID: "deadline.near", Section: inDeadline, Rule: "an operation that is not done at its deadline ends failed soon after, and does nothing more", Needs: []string{created},
			Fix: "stop at the deadline: cancel the node tasks you wait for, then end the operation failed with DEADLINE_EXCEEDED", run: deadlineNear},
		{ID: "deadline.past", Section: inDeadline, Rule: "an operation whose deadline has passed before it came is refused or fails, and does nothing", Needs: []string{created},
			Fix: "look at the deadline before the first step", run: deadlinePast},
	}
}

func deadlineIn(d time.Duration) time.Time { return time.Now().Add(d).UTC().Truncate(time.Millisecond) }

func deadlineNear(c *check) {
	i := c.instance()
	d := c.dispatch(i, adapter.InstanceCreate)
	d.Deadline = deadlineIn(c.bounds.Near)
	rule := c.hold(i, d, 0)
	c.accept(d)
	status := c.awaitFor(d.OperationID, c.bounds.Near+c.bounds.Grace)
	if rule.Count() == 0 {
		c.skip("a create of this app asks for no node task that could be held back")
	}
	c.unless(status.State == adapter.StateFailed, "its node tasks were held back beyond the deadline, and the operation ended %q", status.State)
	c.unless(status.Error != nil && status.Error.Code != "", "the failed operation has no error with a code")
	before := i.begun()
	rule.Lift()
	c.quiet(i, before, "the deadline and the failure")
}

func deadlinePast(c *check) {
	i := c.instance()
	d := c.dispatch(i, adapter.InstanceCreate)
	d.Deadline = deadlineIn(-time.Minute)
	c.opened = append(c.opened, d.OperationID)
	answer := c.put(d)
	if answer.status >= 400 && answer.status < 500 {
		c.untouched(i, d.OperationID, "a refused dispatch")
		return
	}
	c.taken(d, answer)
	status := c.awaitFor(d.OperationID, c.bounds.Grace)
	c.unless(status.State == adapter.StateFailed, "the deadline had passed a minute before, and the operation ended %q", status.State)
	c.quiet(i, map[string]bool{}, "a deadline a minute ago")
}
