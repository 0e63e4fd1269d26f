package conformance

import (
	"net/http"
	"slices"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

const (
	inRemove  = "member.remove"
	inReplace = "member.replace"
	inRecover = "member.recover"
	inForce   = "PUT /v1/operations/{id}, Force"
)

func leaveClauses() []Clause {
	needs := []string{created}
	return []Clause{
		{ID: "remove.completes", Section: inRemove, Rule: "a removed member is reported removed, and nothing of it is left on its node", Needs: needs,
			Fix: "stop what runs there and end with TEARDOWN, then report the member removed", run: removeCompletes},
		{ID: "remove.others", Section: inRemove, Rule: "a remove leaves the other members alone", Needs: []string{"remove.completes"},
			Fix: "tear down the targets only", run: removeOthers},
		{ID: "remove.forgotten", Section: inRemove, Rule: "a member that was removed is not observed any more", Needs: []string{"remove.completes", "observe.valid"},
			Fix: "forget members that are not in the newest dispatch, and those you removed", run: removeForgotten},
		{ID: "force.redispatch", Section: inForce, Rule: "force with a higher attempt finishes a remove whose node cannot be reached", Needs: []string{"remove.completes", "attempt.higher"},
			Fix: "on force stop waiting, begin anew and pass over nodes whose reachable is false", run: forceRedispatch},
		{ID: "force.at_once", Section: inForce, Rule: "a remove with force from the beginning does not wait for a node that cannot be reached", Needs: []string{"remove.completes"},
			Fix: "with force ask no node for anything whose reachable is false", run: forceAtOnce},
		{ID: "replace.completes", Section: inReplace, Rule: "after a replace the new member is active, the old one removed, and nothing of the old one left", Needs: needs,
			Fix: "bring change.replacementId up, then take the target out and end with TEARDOWN", run: replaceCompletes},
		{ID: "recover.completes", Section: inRecover, Rule: "a recover brings up a failed member whose node was lost", Needs: needs,
			Fix: "bring the target up from nothing and report it active", run: recoverCompletes},
	}
}

// removed runs a remove of a member that may leave.
func (c *check) removed() (*instance, adapter.Member, adapter.Status) {
	c.supports(adapter.MemberRemove)
	i, member := c.spare()
	status := c.carry(i, adapter.MemberRemove, nil, member.ID)
	return i, member, status
}

func removeCompletes(c *check) {
	_, member, status := c.removed()
	c.reported(status, member.ID, adapter.MemberRemoved)
	c.empty(member.ID, "the remove")
}

// empty requires that a node says that nothing of the member is left.
func (c *check) empty(member, after string) {
	left, err := c.platform.Residue(member)
	c.unless(err == nil, "the node could not say what is left: %v", err)
	c.unless(left.Empty(), "after %s %d processes and %d files of member %s are left, such as %v", after, len(left.Processes), left.Files, member, left.Names)
}

func removeOthers(c *check) {
	c.supports(adapter.MemberRemove)
	i, member := c.spare()
	before := i.begun()
	c.carry(i, adapter.MemberRemove, nil, member.ID)
	for _, entry := range i.begunAfter(before) {
		harm := entry.Kind == adapter.TaskTeardown || entry.Kind == adapter.TaskStopProcess
		c.unless(!harm || entry.Member == member.ID, "the remove asked for %s on member %s, which stays", entry.Kind, entry.Member)
	}
}

func removeForgotten(c *check) {
	i, member, _ := c.removed()
	seen, answer := c.observe(i)
	c.unless(answer.status == http.StatusOK, "after the remove the observation was answered %s", answer.say())
	for _, one := range seen.Members {
		c.unless(one.ID != member.ID, "the removed member %s is still observed", member.ID)
	}
}

// lost makes a remove of a member whose node does not answer.
func (c *check) lost() (*instance, adapter.Member, adapter.Dispatch, *standin.Rule) {
	c.supports(adapter.MemberRemove)
	if !slices.Contains(c.description.ContractVersions, "1.1") {
		c.skip("force came with contract 1.1, which the adapter does not speak")
	}
	i, member := c.spare()
	d := c.dispatch(i, adapter.MemberRemove, member.ID)
	rule := c.rule(&standin.Rule{Instance: i.as.ID, Member: member.ID, Fate: standin.Lose, Looks: true})
	return i, member, d, rule
}

// forced is the dispatch with force, in which the member's node is known to be out of reach.
func forced(d adapter.Dispatch, member string) adapter.Dispatch {
	away := false
	d.Members, d.Force = slices.Clone(d.Members), true
	for n := range d.Members {
		if d.Members[n].ID == member {
			d.Members[n].Node.Reachable = &away
		}
	}
	return d
}

func forceRedispatch(c *check) {
	_, member, d, rule := c.lost()
	c.accept(d)
	c.caught(rule, d.OperationID)
	d = forced(d, member.ID)
	d.Attempt = 2
	status := c.accept(d)
	c.unless(status.Attempt == 2, "the answer to attempt 2 says attempt %d", status.Attempt)
	c.reported(c.succeed(d.OperationID), member.ID, adapter.MemberRemoved)
}

func forceAtOnce(c *check) {
	_, member, d, _ := c.lost()
	d = forced(d, member.ID)
	c.accept(d)
	c.reported(c.succeed(d.OperationID), member.ID, adapter.MemberRemoved)
}

func replaceCompletes(c *check) {
	c.supports(adapter.MemberReplace)
	i, old := c.spare()
	fresh := i.grow(old.ComponentKey, 1)[0]
	d := c.dispatch(i, adapter.MemberReplace, old.ID)
	// The desired counts are those after the change: one in, one out.
	after := *i
	after.drop(old.ID)
	d.Instance.Components = slices.Clone(after.as.Components)
	d.Change = c.encode(adapter.ReplaceChange{ReplacementID: fresh.ID})
	c.accept(d)
	status := c.succeed(d.OperationID)
	c.reported(status, fresh.ID, adapter.MemberActive)
	c.reported(status, old.ID, adapter.MemberRemoved)
	c.empty(old.ID, "the replace")
}

func recoverCompletes(c *check) {
	c.supports(adapter.MemberRecover)
	i, member := c.spare()
	if err := c.platform.Wipe(member.ID); err != nil {
		c.notRun("the stand-in node could not be wiped: %v", err)
	}
	at := slices.IndexFunc(i.members, func(m adapter.Member) bool { return m.ID == member.ID })
	i.members[at].Status = string(adapter.MemberFailed)
	c.reported(c.carry(i, adapter.MemberRecover, nil, member.ID), member.ID, adapter.MemberActive)
	left, err := c.platform.Residue(member.ID)
	c.unless(err == nil && (!left.Empty() || c.baseline.total() == 0), "the recover succeeded, and nothing is on the member's node")
}
