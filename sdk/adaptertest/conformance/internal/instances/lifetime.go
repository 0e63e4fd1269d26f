package instances

import (
	"encoding/json"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

const inDecommission = "instance.decommission"

// Versions returns the clauses on upgrades and rollbacks.
func Versions() []trial.Clause {
	return []trial.Clause{
		{ID: "upgrade.completes", Section: "instance.upgrade", Needs: []string{trial.Created}, Run: upgradeCompletes,
			Rule: "an instance can be upgraded to another version and keeps serving",
			Fix: "where a task failed, read its error and the log; take version and config of the dispatch's " +
				"instance as the new ones"},
		{ID: "upgrade.changes", Section: "instance.upgrade",
			Needs: []string{"upgrade.completes", "observe.valid"}, Run: upgradeChanges,
			Rule: "an upgrade changes the members",
			Fix: "bring every member to the version and config of the dispatch: write, fetch or restart what they " +
				"depend on"},
		{ID: "rollback.completes", Section: "instance.rollback",
			Needs: []string{"upgrade.completes"}, Run: rollbackCompletes,
			Rule: "an upgraded instance can be rolled back to exactly what it ran",
			Fix:  "treat a rollback as an upgrade to change.to"},
		{ID: "rollback.changes", Section: "instance.rollback",
			Needs: []string{"rollback.completes", "observe.valid"}, Run: rollbackChanges,
			Rule: "a rollback changes the members",
			Fix:  "bring every member back to the version and config of the dispatch, as an upgrade does"},
	}
}

// Decommission returns the clauses on the end of an instance.
func Decommission() []trial.Clause {
	return []trial.Clause{
		{ID: "decommission.clean", Section: inDecommission, Needs: []string{trial.Created}, Run: decommissionClean,
			Rule: "a decommission reports every member removed and leaves nothing on any node",
			Fix:  "stop what runs and end with TEARDOWN of every member; then report each removed"},
		{ID: "decommission.repeat", Section: inDecommission, Needs: []string{"decommission.clean"},
			Run: decommissionRepeat, Rule: "a second decommission of a removed instance succeeds",
			Fix: "what does not exist needs no teardown: end succeeded"},
		{ID: "decommission.partial", Section: inDecommission,
			Needs: []string{"decommission.clean", "attempt.failure"}, Run: decommissionPartial,
			Rule: "a decommission removes what a failed create has left behind",
			Fix:  "make every step of the decommission work on what never started"},
		{ID: "decommission.config", Section: inDecommission,
			Needs: []string{"decommission.clean", "body.config"}, Run: decommissionConfig,
			Rule: "a decommission is carried out although the config breaks the app's schema",
			Fix:  "do not validate the config of what is only removed: what you would no longer start must still end"},
	}
}

// Unborn returns the clause on an instance that never came up. It runs before the clauses on the
// feed's pages, which need it.
func Unborn() trial.Clause {
	return trial.Clause{
		ID: "decommission.unborn", Section: inDecommission, Needs: []string{trial.Created}, Run: decommissionUnborn,
		Rule: "a decommission of an instance that never started succeeds",
		Fix:  "do not require that a create was dispatched before: the platform may not have reached that point",
	}
}

// move carries out an upgrade or a rollback and checks that the members still serve.
func move(c *trial.Check, i *trial.Instance, kind adapter.Kind, version string) {
	from := adapter.VersionConfig{Version: i.Wire.Version, Config: i.Wire.Config}
	i.Wire.Version = version
	status := c.Carry(
		i,
		kind,
		adapter.VersionChange{From: from, To: adapter.VersionConfig{Version: version, Config: i.Wire.Config}},
	)
	for _, member := range status.Members {
		c.Require(member.Status != adapter.MemberFailed && member.Status != adapter.MemberRemoved,
			"after the %s member %s is %q", kind, member.ID, member.Status)
	}
	for _, member := range i.Members {
		left, err := c.Platform.Residue(member.ID)
		c.Require(err == nil && (!left.Empty() || c.Baseline.Total() == 0),
			"after the %s nothing is on the node of member %s", kind, member.ID)
	}
}

func upgradeCompletes(c *trial.Check) {
	c.Supports(adapter.InstanceUpgrade)
	i, _ := c.Create()
	move(c, i, adapter.InstanceUpgrade, i.Wire.Version+".1")
}

func rollbackCompletes(c *trial.Check) {
	c.Supports(adapter.InstanceUpgrade, adapter.InstanceRollback)
	i, _ := c.Create()
	first := i.Wire.Version
	move(c, i, adapter.InstanceUpgrade, first+".1")
	move(c, i, adapter.InstanceRollback, first)
}

func upgradeChanges(c *trial.Check) {
	c.Supports(adapter.InstanceUpgrade)
	i, _ := c.Create()
	changes(c, i, adapter.InstanceUpgrade, i.Wire.Version+".1")
}

func rollbackChanges(c *trial.Check) {
	c.Supports(adapter.InstanceUpgrade, adapter.InstanceRollback)
	i, _ := c.Create()
	first := i.Wire.Version
	move(c, i, adapter.InstanceUpgrade, first+".1")
	changes(c, i, adapter.InstanceRollback, first)
}

// changes moves an instance and requires that something was done to its members: a node task that acts, and a command
// only where an observation does not run the same one to look.
func changes(c *trial.Check, i *trial.Instance, kind adapter.Kind, version string) {
	if c.Baseline.Total() == 0 {
		c.Skip("a create of this app does not change its members either")
	}
	looks, known := c.Looks(i), i.Begun()
	move(c, i, kind, version)
	for _, entry := range i.BegunAfter(known) {
		if entry.Kind != adapter.TaskRun || !looks[string(entry.Spec)] {
			return
		}
	}
	c.Fail("the %s succeeded, but no member was changed: nothing was written, fetched, started, stopped or run", kind)
}

func decommissionClean(c *trial.Check) {
	c.Supports(adapter.InstanceDecommission)
	i, _ := c.Create()
	status := c.Carry(i, adapter.InstanceDecommission, nil)
	for _, member := range i.Members {
		reported(c, status, member.ID, adapter.MemberRemoved)
		requireEmpty(c, member.ID, "the decommission")
	}
}

func decommissionRepeat(c *trial.Check) {
	i, _ := c.Create()
	c.Carry(i, adapter.InstanceDecommission, nil)
	c.Carry(i, adapter.InstanceDecommission, nil)
	for _, member := range i.Members {
		requireEmpty(c, member.ID, "a second decommission")
	}
}

// decommissionConfig decommissions an instance whose config the adapter does not take any more, as when its schema has
// become narrower.
func decommissionConfig(c *trial.Check) {
	wrong, ok := trial.Spoil(c.App.ConfigSchema)
	if !ok {
		c.Skip("the app's config schema accepts every config that was tried")
	}
	i, _ := c.Create()
	i.Wire.Config = c.Encode(wrong)
	c.Carry(i, adapter.InstanceDecommission, nil)
	for _, member := range i.Members {
		requireEmpty(c, member.ID, "the decommission of an instance with such a config")
	}
}

func decommissionUnborn(c *trial.Check) {
	c.Supports(adapter.InstanceDecommission)
	i := c.NewInstance()
	c.Carry(i, adapter.InstanceDecommission, nil)
	for _, member := range i.Members {
		requireEmpty(c, member.ID, "the decommission")
	}
}

// decommissionPartial fails a create in its middle and decommissions what came up by half.
func decommissionPartial(c *trial.Check) {
	i, d := c.Fresh()
	rule := c.Rule(trial.RuleFailing(i, d, c.Baseline.Total()/2))
	c.Accept(d)
	status := c.AwaitFor(d.OperationID, c.Bounds.Operation+c.Bounds.Grace)
	if status.State != adapter.StateFailed {
		c.Skip("the create ended %s although its later node tasks failed", status.State)
	}
	rule.Lift()
	c.Carry(i, adapter.InstanceDecommission, json.RawMessage(`{}`))
	for _, member := range i.Members {
		requireEmpty(c, member.ID, "the decommission of a partly started instance")
	}
}
