package instances

import (
	"net/http"
	"slices"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/standin"
)

const (
	inAdd    = "members.add"
	inDrain  = "member.drain"
	inCordon = "member.cordon and member.uncordon"
	inLabel  = "member.label"
)

// Member returns the clauses on members that are added, drained, cordoned or labeled.
func Member() []trial.Clause {
	needs := []string{trial.Created}
	return []trial.Clause{
		{ID: "add.completes", Section: inAdd, Needs: needs, Run: addCompletes,
			Rule: "an add brings its targets up and reports each active",
			Fix:  "bring up the targets, join them, and report each as active in the status"},
		{ID: "add.targets_only", Section: inAdd, Needs: []string{"add.completes"}, Run: addTargetsOnly,
			Rule: "an add starts nothing again that was there before",
			Fix:  "start processes on the targets only"},
		{ID: "add.undone", Section: inAdd,
			Needs: []string{"add.completes", "cancel.running", "observe.valid"}, Run: addUndone,
			Rule: "after an add was canceled the adapter keeps nothing of its targets",
			Fix:  "when an add fails or is canceled, forget its targets"},
		{ID: "drain.completes", Section: inDrain, Needs: needs, Run: drainCompletes,
			Rule: "a drain ends with the member drained, and with evidence that nothing runs there",
			Fix:  "report the target as drained, and put what you observed into the evidence"},
		{ID: "drain.canceled", Section: inDrain, Needs: []string{"drain.completes", "cancel.running"},
			Run: drainCanceled, Rule: "after a drain was canceled the member is back in service",
			Fix: "on cancel take the member back into service and report it active, before the state is canceled"},
		{ID: "cordon.completes", Section: inCordon, Needs: needs, Run: cordonCompletes,
			Rule: "a member can be cordoned and uncordoned, each twice",
			Fix:  "make both idempotent: succeed when the member is already in that state"},
		{ID: "label.completes", Section: inLabel, Needs: needs, Run: labelCompletes,
			Rule: "labels can be set, changed and removed",
			Fix:  "take change.labels as the whole new set"},
	}
}

// byRoom returns the app's components, sorted by the difference between maximum and minimum of members, the largest
// first: a component that allows only some numbers of members, because they vote, has a small one.
func byRoom(c *trial.Check) []adapter.Component {
	components := slices.Clone(c.App.Components)
	slices.SortStableFunc(components, func(a, b adapter.Component) int { return (b.Max - b.Min) - (a.Max - a.Min) })
	return components
}

// roomy returns the first component of byRoom that may have one member more than its minimum.
func roomy(c *trial.Check) string {
	for _, component := range byRoom(c) {
		if component.Max > max(component.Min, c.CountOf(component, nil)) {
			return component.Key
		}
	}
	c.Skip("no component of the app can have more members")
	return ""
}

// spare creates an instance with a member that may leave, and returns that member.
func spare(c *trial.Check) (*trial.Instance, adapter.Member) {
	for _, component := range byRoom(c) {
		if component.Max > component.Min {
			i, _ := c.Create(component.Key)
			at := slices.IndexFunc(i.Members, func(m adapter.Member) bool {
				return m.ComponentKey == component.Key && m.Index == i.NextIndex(component.Key)-1
			})
			if at >= 0 {
				return i, i.Members[at]
			}
		}
	}
	c.Skip("no component of the app can lose a member")
	return nil, adapter.Member{}
}

// spares creates an instance with two members of one component that may leave, and returns those.
func spares(c *trial.Check) (*trial.Instance, []adapter.Member) {
	for _, component := range byRoom(c) {
		if component.Max < component.Min+2 {
			continue
		}
		i, _ := c.Create(component.Key, component.Key)
		var of []adapter.Member
		for _, member := range i.Members {
			if member.ComponentKey == component.Key {
				of = append(of, member)
			}
		}
		slices.SortFunc(of, func(a, b adapter.Member) int { return a.Index - b.Index })
		return i, of[len(of)-2:]
	}
	c.Skip("no component of the app can lose two members")
	return nil, nil
}

// reported requires that a status reports a member in this state.
func reported(c *trial.Check, status adapter.Status, id string, wanted adapter.MemberStatus) {
	for _, member := range status.Members {
		if member.ID == id {
			c.Require(member.Status == wanted, "member %s is reported as %q instead of %q", id, member.Status, wanted)
			return
		}
	}
	c.Fail("the status does not report member %s, which must be %s", id, wanted)
}

// added begins an add of one member and returns it with the dispatch, which has not been sent.
func added(c *trial.Check) (*trial.Instance, adapter.Member, adapter.Dispatch) {
	c.Supports(adapter.MembersAdd)
	key := roomy(c)
	i, _ := c.Create()
	member := i.Grow(key, 1)[0]
	d := c.Dispatch(i, adapter.MembersAdd, member.ID)
	d.Change = c.Encode(adapter.AddChange{Components: []adapter.ComponentCount{{Key: key, Count: 1}}})
	return i, member, d
}

func addCompletes(c *trial.Check) {
	i, member, d := added(c)
	c.Accept(d)
	reported(c, c.Succeed(d.OperationID), member.ID, adapter.MemberActive)
	i.Serving()
	left, err := c.Platform.Residue(member.ID)
	c.Require(err == nil && (!left.Empty() || c.Baseline.Total() == 0),
		"the add succeeded, but nothing is on the new member's node")
}

// addTargetsOnly adds a member and checks that on the others no process was started and nothing was
// torn down.
func addTargetsOnly(c *trial.Check) {
	i, member, d := added(c)
	before := i.Begun()
	c.Accept(d)
	c.Succeed(d.OperationID)
	for _, entry := range i.BegunAfter(before) {
		c.Require(entry.Kind != adapter.TaskStartProcess || entry.Member == member.ID,
			"the add started a process on member %s, which was there before", entry.Member)
		c.Require(entry.Kind != adapter.TaskTeardown, "the add tore down member %s", entry.Member)
	}
}

// addUndone cancels an add that is held back: the member is not observed any more. An adapter may
// answer that an add cannot be stopped.
func addUndone(c *trial.Check) {
	i, member, d := added(c)
	rule := c.Hold(i, d, 0)
	c.Accept(d)
	c.AwaitCaught(rule, d.OperationID)
	rule.Close()
	if result := c.Resolve(d.OperationID, 1); result.Outcome != adapter.CancelDone {
		c.Skip("the adapter reports that an add cannot be stopped: %s", result.Message)
	}
	i.Drop(member.ID)
	seen, answer := c.Observe(i)
	c.Require(answer.Status == http.StatusOK, "after an add was canceled the observation returned %s", answer.Say())
	for _, one := range seen.Members {
		c.Require(one.ID != member.ID, "the canceled add's member %s is still observed", member.ID)
	}
}

func drainCompletes(c *trial.Check) {
	c.Supports(adapter.MemberDrain)
	i, member := spare(c)
	status := c.Carry(i, adapter.MemberDrain, nil, member.ID)
	reported(c, status, member.ID, adapter.MemberDrained)
	c.Require(len(status.Evidence) > 0, "the drain succeeded without evidence")
}

// drainCanceled cancels a drain that is held back: the member serves again. An adapter may answer
// that a drain cannot be stopped.
func drainCanceled(c *trial.Check) {
	c.Supports(adapter.MemberDrain)
	i, member := spare(c)
	d := c.Dispatch(i, adapter.MemberDrain, member.ID)
	rule := c.Rule(&standin.Rule{Instance: i.Wire.ID, Operation: d.OperationID, Fate: standin.Hold, Looks: true})
	c.Accept(d)
	c.AwaitCaught(rule, d.OperationID)
	rule.Close()
	if result := c.Resolve(d.OperationID, 1); result.Outcome != adapter.CancelDone {
		c.Skip("the adapter reports that the drain cannot be stopped: %s", result.Message)
	}
	reported(c, c.Status(d.OperationID), member.ID, adapter.MemberActive)
}

func cordonCompletes(c *trial.Check) {
	c.Supports(adapter.MemberCordon, adapter.MemberUncordon)
	i, member := spare(c)
	at := slices.IndexFunc(i.Members, func(m adapter.Member) bool { return m.ID == member.ID })
	for _, kind := range []adapter.Kind{
		adapter.MemberCordon, adapter.MemberCordon, adapter.MemberUncordon, adapter.MemberUncordon,
	} {
		c.Carry(i, kind, nil, member.ID)
		i.Members[at].Cordoned = kind == adapter.MemberCordon
	}
}

func labelCompletes(c *trial.Check) {
	c.Supports(adapter.MemberLabel)
	i, member := spare(c)
	at := slices.IndexFunc(i.Members, func(m adapter.Member) bool { return m.ID == member.ID })
	for _, labels := range []map[string]string{{"zone": "a", "rack": "1"}, {"zone": "b"}, {}} {
		c.Carry(i, adapter.MemberLabel, adapter.LabelChange{Labels: labels}, member.ID)
		i.Members[at].Labels = labels
	}
}
