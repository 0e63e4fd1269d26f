package operations

import (
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

const inDeadline = "Dispatch.deadline"

// Deadline returns the clauses on deadlines.
func Deadline() []trial.Clause {
	return []trial.Clause{
		{ID: "deadline.near", Section: inDeadline, Needs: []string{trial.Created}, Run: deadlineNear,
			Rule: "an operation that is not done at its deadline ends failed soon after, and does nothing more",
			Fix: "stop at the deadline: cancel the node tasks you wait for, then end the operation failed with " +
				"DEADLINE_EXCEEDED"},
		{ID: "deadline.past", Section: inDeadline, Needs: []string{trial.Created}, Run: deadlinePast,
			Rule: "an operation that arrives after its deadline is refused or fails, and does nothing",
			Fix:  "check the deadline before the first step"},
	}
}

func deadlineIn(d time.Duration) time.Time { return time.Now().Add(d).UTC().Truncate(time.Millisecond) }

// deadlineNear holds a create back beyond its deadline: it must fail by itself, and do nothing when
// its tasks go on.
func deadlineNear(c *trial.Check) {
	i := c.NewInstance()
	d := c.Dispatch(i, adapter.InstanceCreate)
	d.Deadline = deadlineIn(c.Bounds.Near)
	rule := c.Hold(i, d, 0)
	c.Accept(d)
	status := c.AwaitFor(d.OperationID, c.Bounds.Near+c.Bounds.Grace)
	if rule.Count() == 0 {
		c.Skip("a create of this app requests no node task that could be held back")
	}
	c.Require(status.State == adapter.StateFailed,
		"its node tasks were held back beyond the deadline, but the operation ended %q", status.State)
	c.Require(status.Error != nil && status.Error.Code != "", "the failed operation has no error with a code")
	before := i.Begun()
	rule.Lift()
	c.StaysQuiet(i, before, "the deadline and the failure")
}

// deadlinePast dispatches with a deadline of a minute ago. The adapter may refuse it or let it fail
// at once.
func deadlinePast(c *trial.Check) {
	i := c.NewInstance()
	d := c.Dispatch(i, adapter.InstanceCreate)
	d.Deadline = deadlineIn(-time.Minute)
	c.Opened = append(c.Opened, d.OperationID)
	answer := c.Put(d)
	if answer.Status >= 400 && answer.Status < 500 {
		c.StaysUntouched(i, d.OperationID, "a refused dispatch")
		return
	}
	c.Taken(d, answer)
	status := c.AwaitFor(d.OperationID, c.Bounds.Grace)
	c.Require(status.State == adapter.StateFailed,
		"the deadline had passed a minute before, but the operation ended %q", status.State)
	c.StaysQuiet(i, map[string]bool{}, "a deadline a minute ago")
}
