package conformance

import (
	"net/http"
	"slices"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

const (
	inAdd    = "members.add"
	inDrain  = "member.drain"
	inCordon = "member.cordon and member.uncordon"
	inLabel  = "member.label"
)

func memberClauses() []Clause {
	needs := []string{created}
	return []Clause{
		{ID: "add.completes", Section: inAdd, Rule: "an add brings its targets up and reports each active", Needs: needs,
			Fix: "bring up the targets, join them, and report each as active in the status", run: addCompletes},
		{ID: "add.targets_only", Section: inAdd, Rule: "an add brings nothing up again that was there before", Needs: []string{"add.completes"},
			Fix: "start processes on the targets only", run: addTargetsOnly},
		{ID: "add.undone", Section: inAdd, Rule: "an add that was canceled leaves nothing of its targets in the adapter's books", Needs: []string{"add.completes", "cancel.running", "observe.valid"},
			Fix: "when an add fails or is canceled, forget its targets", run: addUndone},
		{ID: "drain.completes", Section: inDrain, Rule: "a drain ends with the member drained, and with evidence that nothing runs there", Needs: needs,
			Fix: "report the target as drained, and put what you saw into the evidence", run: drainCompletes},
		{ID: "drain.canceled", Section: inDrain, Rule: "a drain that was canceled has the member back in service", Needs: []string{"drain.completes", "cancel.running"},
			Fix: "on cancel take the member back into service and report it active, before the state is canceled", run: drainCanceled},
		{ID: "cordon.completes", Section: inCordon, Rule: "a member can be cordoned and uncordoned, each twice", Needs: needs,
			Fix: "make both idempotent: what is so already is a success", run: cordonCompletes},
		{ID: "label.completes", Section: inLabel, Rule: "labels can be set, changed and taken away", Needs: needs,
			Fix: "take change.labels as the whole new set", run: labelCompletes},
	}
}

// roomy is the first component that may have one member more than its least, and is then made so.
func (c *check) roomy() string {
	for _, component := range c.app.Components {
		if component.Max > max(component.Min, c.countOf(component, nil)) {
			return component.Key
		}
	}
	c.skip("no component of the app can have more members")
	return ""
}

// spare creates an instance with a member that may leave, and returns that member.
func (c *check) spare() (*instance, adapter.Member) {
	for _, component := range c.app.Components {
		if component.Max > component.Min {
			i, _ := c.create(component.Key)
			at := slices.IndexFunc(i.members, func(m adapter.Member) bool {
				return m.ComponentKey == component.Key && m.Index == i.nextIndex(component.Key)-1
			})
			if at >= 0 {
				return i, i.members[at]
			}
		}
	}
	c.skip("no component of the app can lose a member")
	return nil, adapter.Member{}
}

// reported is what a status says of a member.
func (c *check) reported(status adapter.Status, id string, wanted adapter.MemberStatus) {
	for _, member := range status.Members {
		if member.ID == id {
			c.unless(member.Status == wanted, "the status says that member %s is %q instead of %q", id, member.Status, wanted)
			return
		}
	}
	c.fail("the status says nothing of member %s, which ought to be %s", id, wanted)
}

// added begins an add of one member and returns it with the dispatch, which has not been sent.
func (c *check) added() (*instance, adapter.Member, adapter.Dispatch) {
	c.supports(adapter.MembersAdd)
	key := c.roomy()
	i, _ := c.create()
	member := i.grow(key, 1)[0]
	d := c.dispatch(i, adapter.MembersAdd, member.ID)
	d.Change = c.encode(adapter.AddChange{Components: []adapter.ComponentCount{{Key: key, Count: 1}}})
	return i, member, d
}

func addCompletes(c *check) {
	i, member, d := c.added()
	c.accept(d)
	c.reported(c.succeed(d.OperationID), member.ID, adapter.MemberActive)
	i.serving()
	left, err := c.platform.Residue(member.ID)
	c.unless(err == nil && (!left.Empty() || c.baseline.total() == 0), "the add succeeded, and nothing is on the new member's node")
}

func addTargetsOnly(c *check) {
	i, member, d := c.added()
	before := i.begun()
	c.accept(d)
	c.succeed(d.OperationID)
	for _, entry := range i.begunAfter(before) {
		c.unless(entry.Kind != adapter.TaskStartProcess || entry.Member == member.ID, "the add started a process on member %s, which was there before", entry.Member)
		c.unless(entry.Kind != adapter.TaskTeardown, "the add tore down member %s", entry.Member)
	}
}

func addUndone(c *check) {
	i, member, d := c.added()
	rule := c.hold(i, d, 0)
	c.accept(d)
	c.caught(rule, d.OperationID)
	rule.Close()
	if result := c.resolve(d.OperationID, 1); result.Outcome != adapter.CancelDone {
		c.skip("the adapter says that an add cannot be stopped: %s", result.Message)
	}
	i.drop(member.ID)
	seen, answer := c.observe(i)
	c.unless(answer.status == http.StatusOK, "after an add was canceled the observation was answered %s", answer.say())
	for _, one := range seen.Members {
		c.unless(one.ID != member.ID, "the canceled add's member %s is still observed", member.ID)
	}
}

func drainCompletes(c *check) {
	c.supports(adapter.MemberDrain)
	i, member := c.spare()
	status := c.carry(i, adapter.MemberDrain, nil, member.ID)
	c.reported(status, member.ID, adapter.MemberDrained)
	c.unless(len(status.Evidence) > 0, "the drain succeeded without evidence")
}

func drainCanceled(c *check) {
	c.supports(adapter.MemberDrain)
	i, member := c.spare()
	d := c.dispatch(i, adapter.MemberDrain, member.ID)
	rule := c.rule(&standin.Rule{Instance: i.as.ID, Operation: d.OperationID, Fate: standin.Hold, Looks: true})
	c.accept(d)
	c.caught(rule, d.OperationID)
	rule.Close()
	if result := c.resolve(d.OperationID, 1); result.Outcome != adapter.CancelDone {
		c.skip("the adapter says that the drain cannot be stopped: %s", result.Message)
	}
	c.reported(c.status(d.OperationID), member.ID, adapter.MemberActive)
}

func cordonCompletes(c *check) {
	c.supports(adapter.MemberCordon, adapter.MemberUncordon)
	i, member := c.spare()
	at := slices.IndexFunc(i.members, func(m adapter.Member) bool { return m.ID == member.ID })
	for _, kind := range []adapter.Kind{adapter.MemberCordon, adapter.MemberCordon, adapter.MemberUncordon, adapter.MemberUncordon} {
		c.carry(i, kind, nil, member.ID)
		i.members[at].Cordoned = kind == adapter.MemberCordon
	}
}

func labelCompletes(c *check) {
	c.supports(adapter.MemberLabel)
	i, member := c.spare()
	at := slices.IndexFunc(i.members, func(m adapter.Member) bool { return m.ID == member.ID })
	for _, labels := range []map[string]string{{"zone": "a", "rack": "1"}, {"zone": "b"}, {}} {
		c.carry(i, adapter.MemberLabel, adapter.LabelChange{Labels: labels}, member.ID)
		i.members[at].Labels = labels
	}
}
