package repair

import (
	"fmt"
	"slices"
	"time"

	"github.com/gpuaas/app-platform/domain/ids"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// recoveries is how many recoveries of a member may fail before it is replaced.
const recoveries = 2

// ordinary is the policy for members that an ordinary event has ended, whatever the policy of their instance is.
var ordinary = Policy{Mode: Automatic, Budget: 3, BackOffSeconds: 10}

// Member is a member that is FAILED, or that a repair works on.
type Member struct {
	ID ids.ID
	// Name is its component and number.
	Name string
	// Order is its component's place in the manifest, in which components are brought back.
	Order int
	// Failure is why it was lost; empty for one that failed in an operation, which is left to people.
	Failure lifecycle.MemberFailure
	// NodeUp reports whether its node is ONLINE: its agent reports.
	NodeUp bool
	// Busy reports whether an operation works on it.
	Busy bool
	// Proving reports that the operation has done its work at the adapter and waits for the node's proof: that may
	// need members of later components, as a scheduler's first job needs a worker.
	Proving bool
	// Tries are the repairs of it that began within Window and have ended, oldest first.
	Tries []Try
}

// Try is a repair that has ended.
type Try struct {
	Kind      lifecycle.OperationKind
	Ended     time.Time
	Succeeded bool
}

// Facts are what is decided on.
type Facts struct {
	Now    time.Time
	Policy Policy
	// Begun is how many repairs of the instance began within Window.
	Begun int
	// Members are those that are FAILED or under repair.
	Members []Member
}

// Step is a repair to begin now.
type Step struct {
	Member ids.ID
	Kind   lifecycle.OperationKind
	Reason string
}

// Decision is what to do.
type Decision struct {
	// Steps begin now.
	Steps []Step
	// Stopped says why the platform does nothing more for a member that it would repair; empty while it goes on.
	Stopped string
	// Spent reports that the budget is spent.
	Spent bool
}

// Next decides. Members of the component that comes first in the manifest are brought back first; the others wait until
// the adapter has brought those back, or they have been given up.
func Next(f Facts) Decision {
	var out Decision
	members := slices.Clone(f.Members)
	slices.SortStableFunc(members, func(a, b Member) int { return a.Order - b.Order })
	begun := f.Begun
	for i, one := range members {
		if i > 0 && one.Order != members[i-1].Order && (len(out.Steps) > 0 || waiting(f, members[:i])) {
			break
		}
		step, stopped, spent := f.of(one, begun)
		if step != nil {
			out.Steps = append(out.Steps, *step)
			begun++
		}
		if out.Stopped == "" {
			out.Stopped = stopped
		}
		out.Spent = out.Spent || spent
	}
	if len(out.Steps) > 0 || slices.ContainsFunc(members, func(m Member) bool { return m.Busy }) {
		out.Stopped, out.Spent = "", false // what is under way may help yet
	}
	return out
}

// waiting reports whether a member is still to be brought back by its adapter, or will be tried again.
func waiting(f Facts, members []Member) bool {
	return slices.ContainsFunc(members, func(m Member) bool {
		if m.Busy {
			return !m.Proving
		}
		policy, mine := f.policyFor(m)
		_, stopped, _ := f.of(m, f.Begun)
		return mine && stopped == "" && (!m.NodeUp || f.Now.Before(policy.due(m)))
	})
}

// policyFor returns the policy that holds for a member, and whether the platform repairs it.
func (f Facts) policyFor(m Member) (Policy, bool) {
	if m.Failure == "" {
		return Policy{}, false
	}
	if f.Policy.Mode == Automatic {
		return f.Policy, true
	}
	return ordinary, m.Failure.Rule().Ordinary
}

// of decides on one member.
func (f Facts) of(m Member, begun int) (step *Step, stopped string, spent bool) {
	policy, mine := f.policyFor(m)
	if !mine || m.Busy {
		return nil, "", false
	}
	if said := f.spent(policy, m, begun); said != "" {
		return nil, said, true
	}
	kind := f.kind(m)
	switch {
	case kind == "":
		return nil, m.Name + " cannot be recovered on its node, and this policy replaces no members", false
	case kind == lifecycle.MemberRecover && !m.NodeUp, f.Now.Before(policy.due(m)):
		return nil, "", false // its node may come back, or it is not time yet
	}
	return &Step{Member: m.ID, Kind: kind, Reason: reason(m, kind)}, "", false
}

// spent returns why a budget leaves no further repair; empty while it leaves one. An instance's own policy bounds all
// its repairs within Window; the ordinary policy bounds, for each member, the repairs in a row that did not help.
func (f Facts) spent(policy Policy, m Member, begun int) string {
	if f.Policy.Mode == Automatic && begun >= policy.Budget {
		return fmt.Sprintf("repair has stopped: its budget of %d within an hour is spent, and %s is not repaired",
			policy.Budget, m.Name)
	}
	if f.Policy.Mode != Automatic && m.failed() >= policy.Budget {
		return fmt.Sprintf("repair has stopped: %d recoveries of %s did not help", m.failed(), m.Name)
	}
	return ""
}

// failed counts the repairs without success since the last that had some.
func (m Member) failed() (n int) {
	for _, try := range m.Tries {
		n++
		if try.Succeeded {
			n = 0
		}
	}
	return n
}

// kind chooses between recovery and replacement; empty when neither is possible.
func (f Facts) kind(m Member) lifecycle.OperationKind {
	switch {
	case m.Failure.Rule().FilesSurvive && (m.failed() < recoveries || f.Policy.Mode != Automatic):
		return lifecycle.MemberRecover
	case f.Policy.Mode == Automatic:
		return lifecycle.MemberReplace
	}
	return ""
}

// due is when a member may be tried again: at once the first time, and after a pause that doubles with each try that
// did not help.
func (p Policy) due(m Member) time.Time {
	if len(m.Tries) == 0 {
		return time.Time{}
	}
	pause := time.Duration(p.BackOffSeconds) * time.Second << min(max(m.failed()-1, 0), 6)
	return m.Tries[len(m.Tries)-1].Ended.Add(pause)
}

// reason says why a repair begins. A recovery that did not help is named only where one has failed since the last
// repair that succeeded.
func reason(m Member, kind lifecycle.OperationKind) string {
	text := fmt.Sprintf("%s failed: %s", m.Name, m.Failure.Rule().Text)
	failed := m.Tries[len(m.Tries)-m.failed():]
	recovery := func(try Try) bool { return try.Kind == lifecycle.MemberRecover }
	if kind == lifecycle.MemberReplace && slices.ContainsFunc(failed, recovery) {
		text += "; its recovery did not help"
	}
	return text
}
