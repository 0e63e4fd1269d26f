package conformance

import (
	"encoding/json"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

const inDecommission = "instance.decommission"

func instanceClauses() []Clause {
	return []Clause{
		{ID: "upgrade.completes", Section: "instance.upgrade", Rule: "an instance can be upgraded to another version and goes on serving", Needs: []string{created},
			Fix: "take version and config of the dispatch's instance as the new ones; change.from says what ran before", run: upgradeCompletes},
		{ID: "rollback.completes", Section: "instance.rollback", Rule: "an upgraded instance can be rolled back to exactly what it ran", Needs: []string{"upgrade.completes"},
			Fix: "treat a rollback as an upgrade to change.to", run: rollbackCompletes},
	}
}

func decommissionClauses() []Clause {
	return []Clause{
		{ID: "decommission.clean", Section: inDecommission, Rule: "a decommission reports every member removed and leaves nothing on any node", Needs: []string{created},
			Fix: "stop what runs and end with TEARDOWN of every member; then report each removed", run: decommissionClean},
		{ID: "decommission.repeat", Section: inDecommission, Rule: "a second decommission of what is gone succeeds", Needs: []string{"decommission.clean"},
			Fix: "what is not there needs no teardown: that is a success", run: decommissionRepeat},
		{ID: "decommission.partial", Section: inDecommission, Rule: "a decommission takes down what a failed create has left behind", Needs: []string{"decommission.clean", "attempt.failure"},
			Fix: "make every step of the decommission work on what never came up", run: decommissionPartial},
	}
}

// unborn is asked before the feed's pages are, which rest on it.
func unbornClause() Clause {
	return Clause{
		ID: "decommission.unborn", Section: inDecommission, Rule: "a decommission of an instance that never came up succeeds", Needs: []string{created},
		Fix: "do not require that a create was dispatched before: the platform may never have got that far", run: decommissionUnborn,
	}
}

// move carries an upgrade or a rollback out and looks whether the members still serve.
func (c *check) move(i *instance, kind adapter.Kind, version string) {
	from := adapter.VersionConfig{Version: i.as.Version, Config: i.as.Config}
	i.as.Version = version
	status := c.carry(i, kind, adapter.VersionChange{From: from, To: adapter.VersionConfig{Version: version, Config: i.as.Config}})
	for _, member := range status.Members {
		c.unless(member.Status != adapter.MemberFailed && member.Status != adapter.MemberRemoved, "after the %s member %s is %q", kind, member.ID, member.Status)
	}
	for _, member := range i.members {
		left, err := c.platform.Residue(member.ID)
		c.unless(err == nil && (!left.Empty() || c.baseline.total() == 0), "after the %s nothing is on the node of member %s", kind, member.ID)
	}
}

func upgradeCompletes(c *check) {
	c.supports(adapter.InstanceUpgrade)
	i, _ := c.create()
	c.move(i, adapter.InstanceUpgrade, i.as.Version+".1")
}

func rollbackCompletes(c *check) {
	c.supports(adapter.InstanceUpgrade, adapter.InstanceRollback)
	i, _ := c.create()
	first := i.as.Version
	c.move(i, adapter.InstanceUpgrade, first+".1")
	c.move(i, adapter.InstanceRollback, first)
}

func decommissionClean(c *check) {
	c.supports(adapter.InstanceDecommission)
	i, _ := c.create()
	status := c.carry(i, adapter.InstanceDecommission, nil)
	for _, member := range i.members {
		c.reported(status, member.ID, adapter.MemberRemoved)
		c.empty(member.ID, "the decommission")
	}
}

func decommissionRepeat(c *check) {
	i, _ := c.create()
	c.carry(i, adapter.InstanceDecommission, nil)
	c.carry(i, adapter.InstanceDecommission, nil)
	for _, member := range i.members {
		c.empty(member.ID, "a second decommission")
	}
}

func decommissionUnborn(c *check) {
	c.supports(adapter.InstanceDecommission)
	i := c.instance()
	c.carry(i, adapter.InstanceDecommission, nil)
	for _, member := range i.members {
		c.empty(member.ID, "the decommission")
	}
}

func decommissionPartial(c *check) {
	i, d := c.fresh()
	rule := c.rule(ruleFailing(i, d, c.baseline.total()/2))
	c.accept(d)
	status := c.awaitFor(d.OperationID, c.bounds.Operation+c.bounds.Grace)
	if status.State != adapter.StateFailed {
		c.skip("the create ended %s although its later node tasks failed", status.State)
	}
	rule.Lift()
	c.carry(i, adapter.InstanceDecommission, json.RawMessage(`{}`))
	for _, member := range i.members {
		c.empty(member.ID, "the decommission of what came up by half")
	}
}
