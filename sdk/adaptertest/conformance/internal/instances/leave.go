// Package instances holds the clauses on the life of an instance: its members, its versions, its end,
// and what keeps it apart from other tenants' instances.
package instances

import (
	"net/http"
	"slices"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

const (
	inRemove  = "member.remove"
	inReplace = "member.replace"
	inRecover = "member.recover"
	inForce   = "PUT /v1/operations/{id}, Force"
)

// Leave returns the clauses on members that leave, are replaced or recovered.
func Leave() []trial.Clause {
	needs := []string{trial.Created}
	return []trial.Clause{
		{ID: "remove.completes", Section: inRemove, Needs: needs, Run: removeCompletes,
			Rule: "a removed member is reported removed, and nothing of it is left on its node",
			Fix:  "stop what runs there and end with TEARDOWN, then report the member removed"},
		{ID: "remove.others", Section: inRemove, Needs: []string{"remove.completes"}, Run: removeOthers,
			Rule: "a remove leaves the other members alone",
			Fix:  "tear down the targets only"},
		{ID: "remove.several", Section: inRemove, Needs: []string{"remove.completes"}, Run: removeSeveral,
			Rule: "a remove of two members reports both removed, and nothing of either is left on its node",
			Fix:  "remove every target: a component that is scaled down loses several members by one operation"},
		{ID: "remove.forgotten", Section: inRemove,
			Needs: []string{"remove.completes", "observe.valid"}, Run: removeForgotten,
			Rule: "a member that was removed is not observed any more",
			Fix:  "forget members that are not in the newest dispatch, and those you removed"},
		{ID: "force.redispatch", Section: inForce,
			Needs: []string{"remove.completes", "attempt.higher"}, Run: forceRedispatch,
			Rule: "force with a higher attempt finishes a remove whose node cannot be reached",
			Fix:  "on force stop waiting, start again and skip nodes whose reachable is false"},
		{ID: "force.at_once", Section: inForce, Needs: []string{"remove.completes"}, Run: forceAtOnce,
			Rule: "a remove with force from the beginning does not wait for a node that cannot be reached",
			Fix:  "with force request no node task of a node whose reachable is false"},
		{ID: "replace.completes", Section: inReplace, Needs: needs, Run: replaceCompletes,
			Rule: "after a replace the new member is active, the old one removed, and nothing of the old one is left",
			Fix:  "bring change.replacementId up, then stop the target and end with TEARDOWN"},
		{ID: "recover.completes", Section: inRecover, Needs: needs, Run: recoverCompletes,
			Rule: "a recover brings up a failed member whose node was lost",
			Fix:  "bring the target up from nothing and report it active"},
	}
}

// removed carries out a remove of a member that may leave.
func removed(c *trial.Check) (*trial.Instance, adapter.Member, adapter.Status) {
	c.Supports(adapter.MemberRemove)
	i, member := spare(c)
	status := c.Carry(i, adapter.MemberRemove, nil, member.ID)
	return i, member, status
}

func removeCompletes(c *trial.Check) {
	_, member, status := removed(c)
	reported(c, status, member.ID, adapter.MemberRemoved)
	requireEmpty(c, member.ID, "the remove")
}

// requireEmpty requires that the node reports that nothing of the member is left.
func requireEmpty(c *trial.Check, member, after string) {
	left, err := c.Platform.Residue(member)
	c.Require(err == nil, "the node could not report what is left: %v", err)
	c.Require(left.Empty(),
		"after %s %d processes and %d files of member %s are left, such as %v", after, len(left.Processes), left.Files,
		member, left.Names)
}

// removeOthers removes a member and checks that no other one lost a process or was torn down.
func removeOthers(c *trial.Check) {
	c.Supports(adapter.MemberRemove)
	i, member := spare(c)
	before := i.Begun()
	c.Carry(i, adapter.MemberRemove, nil, member.ID)
	for _, entry := range i.BegunAfter(before) {
		harm := entry.Kind == adapter.TaskTeardown || entry.Kind == adapter.TaskStopProcess
		c.Require(!harm || entry.Member == member.ID,
			"the remove requested %s on member %s, which is not a target", entry.Kind, entry.Member)
	}
}

// removeSeveral removes two members by one operation, and checks both.
func removeSeveral(c *trial.Check) {
	c.Supports(adapter.MemberRemove)
	i, members := spares(c)
	status := c.Carry(i, adapter.MemberRemove, nil, members[0].ID, members[1].ID)
	for _, member := range members {
		reported(c, status, member.ID, adapter.MemberRemoved)
		requireEmpty(c, member.ID, "the remove of several")
	}
}

func removeForgotten(c *trial.Check) {
	i, member, _ := removed(c)
	seen, answer := c.Observe(i)
	c.Require(answer.Status == http.StatusOK, "after the remove the observation returned %s", answer.Say())
	for _, one := range seen.Members {
		c.Require(one.ID != member.ID, "the removed member %s is still observed", member.ID)
	}
}

// loseNode begins a remove of a member whose node does not answer.
func loseNode(c *trial.Check) (*trial.Instance, adapter.Member, adapter.Dispatch, *standin.Rule) {
	c.Supports(adapter.MemberRemove)
	if !slices.Contains(c.Description.ContractVersions, "1.1") {
		c.Skip("force needs contract 1.1, which the adapter does not speak")
	}
	i, member := spare(c)
	d := c.Dispatch(i, adapter.MemberRemove, member.ID)
	rule := c.Rule(&standin.Rule{Instance: i.Wire.ID, Member: member.ID, Fate: standin.Lose, Looks: true})
	return i, member, d, rule
}

// forced returns the dispatch with force, in which the member's node is known to be unreachable.
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

func forceRedispatch(c *trial.Check) {
	_, member, d, rule := loseNode(c)
	c.Accept(d)
	c.AwaitCaught(rule, d.OperationID)
	d = forced(d, member.ID)
	d.Attempt = 2
	status := c.Accept(d)
	c.Require(status.Attempt == 2, "the answer to attempt 2 has attempt %d", status.Attempt)
	reported(c, c.Succeed(d.OperationID), member.ID, adapter.MemberRemoved)
}

func forceAtOnce(c *trial.Check) {
	_, member, d, _ := loseNode(c)
	d = forced(d, member.ID)
	c.Accept(d)
	reported(c, c.Succeed(d.OperationID), member.ID, adapter.MemberRemoved)
}

// replaceCompletes replaces a member and checks both: the new one is active, and nothing of the old
// one is left.
func replaceCompletes(c *trial.Check) {
	c.Supports(adapter.MemberReplace)
	i, old := spare(c)
	fresh := i.Grow(old.ComponentKey, 1)[0]
	d := c.Dispatch(i, adapter.MemberReplace, old.ID)
	// The desired counts are those after the change: one in, one out.
	after := *i
	after.Drop(old.ID)
	d.Instance.Components = slices.Clone(after.Wire.Components)
	d.Change = c.Encode(adapter.ReplaceChange{ReplacementID: fresh.ID})
	c.Accept(d)
	status := c.Succeed(d.OperationID)
	reported(c, status, fresh.ID, adapter.MemberActive)
	reported(c, status, old.ID, adapter.MemberRemoved)
	requireEmpty(c, old.ID, "the replace")
}

// recoverCompletes deletes a member behind the adapter's back and recovers it.
func recoverCompletes(c *trial.Check) {
	c.Supports(adapter.MemberRecover)
	i, member := spare(c)
	if err := c.Platform.Wipe(member.ID); err != nil {
		c.NotRun("the stand-in node could not be wiped: %v", err)
	}
	at := slices.IndexFunc(i.Members, func(m adapter.Member) bool { return m.ID == member.ID })
	i.Members[at].Status = string(adapter.MemberFailed)
	reported(c, c.Carry(i, adapter.MemberRecover, nil, member.ID), member.ID, adapter.MemberActive)
	left, err := c.Platform.Residue(member.ID)
	c.Require(err == nil && (!left.Empty() || c.Baseline.Total() == 0),
		"the recover succeeded, but nothing is on the member's node")
}
