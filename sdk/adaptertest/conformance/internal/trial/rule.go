package trial

import (
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

// RuleFailing returns a rule that lets so many acting node tasks of the operation succeed and fails the others.
func RuleFailing(i *Instance, d adapter.Dispatch, skip int) *standin.Rule {
	return &standin.Rule{Instance: i.Wire.ID, Operation: d.OperationID, Fate: standin.Fail, Skip: skip}
}

// Hold holds back the operation's node tasks after so many acting ones.
func (c *Check) Hold(i *Instance, d adapter.Dispatch, skip int) *standin.Rule {
	return c.Rule(&standin.Rule{Instance: i.Wire.ID, Operation: d.OperationID, Fate: standin.Hold, Skip: skip})
}

// Rule adds a rule, which is lifted when the clause ends.
func (c *Check) Rule(r *standin.Rule) *standin.Rule {
	c.rules = append(c.rules, c.Platform.Add(r))
	return r
}

// AwaitCaught waits until the rule holds something back. An operation that ends before then
// requests too little to be held, and the clause does not apply.
func (c *Check) AwaitCaught(r *standin.Rule, id string) {
	for {
		select {
		case <-r.Caught():
			return
		default:
		}
		if status := c.Status(id); status.State.Terminal() {
			c.Skip("the operation ended (%s) before any of its node tasks could be held back", ended(status))
		}
		select {
		case <-r.Caught():
			return
		case <-c.Ctx.Done():
			c.Fail("the operation neither requested a node task nor ended in %s", c.Bounds.Clause)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ended returns the state in which an operation ended, with its error where it has one.
func ended(status adapter.Status) string {
	if status.Error == nil {
		return string(status.State)
	}
	return string(status.State) + ": " + status.Error.Error()
}

// Middle begins a create and returns when its middle is held back.
func (c *Check) Middle() (*Instance, adapter.Dispatch, *standin.Rule) {
	i := c.NewInstance()
	d := c.Dispatch(i, adapter.InstanceCreate)
	rule := c.Hold(i, d, c.Baseline.Total()/2)
	c.Accept(d)
	c.AwaitCaught(rule, d.OperationID)
	return i, d, rule
}
