package instances

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
	"github.com/gpuaas/app-platform/sdk/adaptertest/conformance/internal/trial"
)

// Each returns the clauses on every member that may leave, in the order of their index: the first one is often the one
// that leads.
func Each() []trial.Clause {
	one := func(group, section, rule, fix string, run func(*trial.Check), needs ...string) trial.Clause {
		return trial.Clause{
			ID: group + ".each", Section: section, Rule: rule, Fix: fix, Run: run,
			Needs: append([]string{trial.Created, group + ".completes", "observe.valid"}, needs...),
		}
	}
	return []trial.Clause{
		one("drain", inDrain, "every member can be drained, also the lowest index, and the instance keeps working",
			"hand leadership over before you drain the leader; refuse with 422 what can never be drained", drainEach),
		one("cordon", inCordon, "every member can be cordoned and uncordoned, also the lowest index",
			"let another member lead while the leader takes no new work", cordonEach),
		one("label", inLabel, "every member can be labeled, also the lowest index",
			"label the target, whatever its index", labelEach),
		one("remove", inRemove, "members can be removed from the lowest index on, and the instance stays as healthy",
			"hand leadership over before you tear the leader down, and make the others follow the new one", removeEach,
			"remove.forgotten"),
		one("replace", inReplace, "the member of the lowest index can be replaced, and the instance stays as healthy",
			"let the replacement or another member lead before you tear the leader down", replaceEach),
		one("recover", inRecover,
			"every member that failed can be recovered, also the lowest index, and the instance stays as healthy",
			"let another member take over from the dead one, and bring it back in the needed role", recoverEach),
	}
}

// crowd creates an instance with at least two members, and one more than the minimum, of the first component of byRoom
// that allows it, and returns the members of that component by index.
func crowd(c *trial.Check) (*trial.Instance, []adapter.Member, adapter.Component) {
	for _, component := range byRoom(c) {
		if component.Max <= component.Min {
			continue
		}
		more := []string{component.Key}
		if component.Min == 0 && component.Max > 1 {
			more = append(more, component.Key)
		}
		i, _ := c.Create(more...)
		of := slices.DeleteFunc(slices.Clone(i.Members), func(m adapter.Member) bool {
			return m.ComponentKey != component.Key
		})
		if len(of) > component.Min {
			slices.SortFunc(of, func(a, b adapter.Member) int { return a.Index - b.Index })
			return i, of, component
		}
	}
	c.Skip("no component of the app can lose a member")
	return nil, nil, adapter.Component{}
}

// tries carries one operation out on a member. A refusal with 422 is an answer too, and tries then returns it: what an
// adapter knows that it cannot do it may refuse, and what it accepts must come to a good end.
func tries(c *trial.Check, d adapter.Dispatch, member adapter.Member) (status adapter.Status, refusal string) {
	answer := c.Put(d)
	if answer.Status == 422 {
		body := c.Refused(fmt.Sprintf("%s of member %d", d.Kind, member.Index), answer, 422)
		return status, fmt.Sprintf("the adapter refuses %s of member %d: %s: %s", d.Kind, member.Index, body.Code,
			body.Message)
	}
	c.Opened = append(c.Opened, d.OperationID)
	c.Taken(d, answer)
	status = c.Await(d.OperationID)
	c.Require(status.State == adapter.StateSucceeded, "%s of member %s %d ended %q: %s", d.Kind, member.ComponentKey,
		member.Index, status.State, trial.Explain(status))
	return status, ""
}

// each calls step for every member, and skips the clause when all were refused.
func each(c *trial.Check, members []adapter.Member, step func(adapter.Member) (refusal string)) {
	var refusals []string
	for _, member := range members {
		if refusal := step(member); refusal != "" {
			refusals = append(refusals, refusal)
		}
	}
	if len(refusals) == len(members) {
		c.Skip("%s", strings.Join(refusals, "; "))
	}
}

// rank orders healths from good to bad.
func rank(health adapter.Health) int {
	return slices.Index([]adapter.Health{
		adapter.Healthy, adapter.Degraded, adapter.HealthUnknown, adapter.Unhealthy,
	}, health)
}

// wellAs waits until the instance is observed to be no worse than this.
func wellAs(c *trial.Check, i *trial.Instance, least adapter.Health, after string) {
	for end := time.Now().Add(c.Bounds.Operation); ; {
		seen, answer := c.Observe(i)
		if answer.Status == 200 && rank(seen.Health) <= rank(least) {
			return
		}
		c.Require(time.Now().Before(end), "%s after %s the instance, which was %s before, was observed as %s",
			c.Bounds.Operation, after, least, answer.Say())
		c.Pause(100 * time.Millisecond)
	}
}

// before returns how well the instance is.
func before(c *trial.Check, i *trial.Instance) adapter.Health {
	seen, answer := c.Observe(i)
	c.Require(answer.Status == 200, "the observation returned %s", answer.Say())
	return seen.Health
}

// loosened is the health that is good enough while a member is out of service.
func loosened(health adapter.Health) adapter.Health {
	if health == adapter.Healthy {
		return adapter.Degraded
	}
	return health
}

// drainEach drains every member but as many as must stay, one after the other: what the first led, another must lead
// when its turn comes.
func drainEach(c *trial.Check) {
	c.Supports(adapter.MemberDrain)
	i, members, component := crowd(c)
	well := loosened(before(c, i))
	each(c, members[:len(members)-max(component.Min, 1)], func(member adapter.Member) string {
		status, refusal := tries(c, c.Dispatch(i, adapter.MemberDrain, member.ID), member)
		if refusal == "" {
			reported(c, status, member.ID, adapter.MemberDrained)
			i.Set(member.ID, func(m *adapter.Member) { m.Status = string(adapter.MemberDrained) })
			wellAs(c, i, well, fmt.Sprintf("the drain of member %d", member.Index))
		}
		return refusal
	})
}

func cordonEach(c *trial.Check) {
	c.Supports(adapter.MemberCordon, adapter.MemberUncordon)
	i, members, _ := crowd(c)
	each(c, members, func(member adapter.Member) (refusal string) {
		for _, kind := range []adapter.Kind{adapter.MemberCordon, adapter.MemberUncordon} {
			if _, refusal = tries(c, c.Dispatch(i, kind, member.ID), member); refusal != "" {
				return refusal
			}
			i.Set(member.ID, func(m *adapter.Member) { m.Cordoned = kind == adapter.MemberCordon })
		}
		return ""
	})
}

func labelEach(c *trial.Check) {
	c.Supports(adapter.MemberLabel)
	i, members, _ := crowd(c)
	each(c, members, func(member adapter.Member) string {
		labels := map[string]string{"index": fmt.Sprint(member.Index)}
		d := c.Dispatch(i, adapter.MemberLabel, member.ID)
		d.Change = c.Encode(adapter.LabelChange{Labels: labels})
		_, refusal := tries(c, d, member)
		i.Set(member.ID, func(m *adapter.Member) { m.Labels = labels })
		return refusal
	})
}

// removeEach removes members from the lowest index on, down to the minimum. Then what could be called before must
// still work: that finds an instance whose leader was removed and left no leader.
func removeEach(c *trial.Check) {
	c.Supports(adapter.MemberRemove)
	i, members, component := crowd(c)
	well, works := before(c, i), working(c, i)
	each(c, members[:len(members)-max(component.Min, 1)], func(member adapter.Member) string {
		d := c.Dispatch(i, adapter.MemberRemove, member.ID)
		after := *i
		after.Drop(member.ID)
		d.Instance.Components = after.Wire.Components
		status, refusal := tries(c, d, member)
		if refusal == "" {
			reported(c, status, member.ID, adapter.MemberRemoved)
			requireEmpty(c, member.ID, fmt.Sprintf("the remove of member %d", member.Index))
			i.Drop(member.ID)
			wellAs(c, i, well, fmt.Sprintf("the remove of member %d", member.Index))
		}
		return refusal
	})
	stillWork(c, i, works, "members were removed from the lowest index on")
}

func replaceEach(c *trial.Check) {
	c.Supports(adapter.MemberReplace)
	i, members, _ := crowd(c)
	well, works := before(c, i), working(c, i)
	each(c, members[:1], func(old adapter.Member) string {
		fresh := i.Grow(old.ComponentKey, 1)[0]
		d := c.Dispatch(i, adapter.MemberReplace, old.ID)
		after := *i
		after.Drop(old.ID)
		d.Instance.Components = slices.Clone(after.Wire.Components)
		d.Change = c.Encode(adapter.ReplaceChange{ReplacementID: fresh.ID})
		status, refusal := tries(c, d, old)
		if refusal == "" {
			reported(c, status, fresh.ID, adapter.MemberActive)
			reported(c, status, old.ID, adapter.MemberRemoved)
			i.Drop(old.ID)
			i.Serving()
			wellAs(c, i, well, fmt.Sprintf("the replace of member %d", old.Index))
		}
		return refusal
	})
	stillWork(c, i, works, "the member of the lowest index was replaced")
}

// recoverEach wipes every member in turn and recovers it.
func recoverEach(c *trial.Check) {
	c.Supports(adapter.MemberRecover)
	i, members, _ := crowd(c)
	well, works := before(c, i), working(c, i)
	each(c, members, func(member adapter.Member) string {
		if err := c.Platform.Wipe(member.ID); err != nil {
			c.NotRun("the stand-in node could not be wiped: %v", err)
		}
		i.Set(member.ID, func(m *adapter.Member) { m.Status = string(adapter.MemberFailed) })
		status, refusal := tries(c, c.Dispatch(i, adapter.MemberRecover, member.ID), member)
		if refusal == "" {
			reported(c, status, member.ID, adapter.MemberActive)
			i.Set(member.ID, func(m *adapter.Member) { m.Status = string(adapter.MemberActive) })
			wellAs(c, i, well, fmt.Sprintf("the recovery of member %d", member.Index))
		}
		return refusal
	})
	stillWork(c, i, works, "every member was recovered in turn")
}

// working returns the actions that work now, of those that only read: others might begin work that a remove waits for.
func working(c *trial.Check, i *trial.Instance) (names []string) {
	for _, action := range c.App.Actions {
		if input, ok := c.Input(action); ok && action.Risk == adapter.RiskRead {
			if c.Act(i, action.Name, trial.NewID("key"), input).Status == 200 {
				names = append(names, action.Name)
			}
		}
	}
	return names
}

// stillWork requires that actions work which worked before, and those that wrote on the shared instance. It comes last
// in its clause: an action may begin work.
func stillWork(c *trial.Check, i *trial.Instance, names []string, after string) {
	for _, action := range c.App.Actions {
		input, ok := c.Input(action)
		wrote := action.Risk == adapter.RiskWrite && c.Acted[action.Name]
		if !ok || !wrote && !slices.Contains(names, action.Name) {
			continue
		}
		for end := time.Now().Add(c.Bounds.Operation); ; {
			answer := c.Act(i, action.Name, trial.NewID("key"), input)
			if answer.Status == 200 {
				break
			}
			c.Require(time.Now().Before(end), "%s, and the action %s, which worked before, returned %s", after,
				action.Name, answer.Say())
			c.Pause(200 * time.Millisecond)
		}
	}
}
