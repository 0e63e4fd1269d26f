package blocker

import (
	"slices"
	"strings"
	"time"

	"github.com/gpuaas/app-platform/domain/fault"
	"github.com/gpuaas/app-platform/domain/lifecycle"
)

// The times that findings on nodes turn on.
const (
	// NodeSilence is how long an agent may be silent before its node counts as lost, whatever its
	// row still says.
	NodeSilence = 20 * time.Second
	takenWithin = 10 * time.Second // an agent that is heard takes a task within
	taskGrace   = time.Minute      // beyond a task's own time
)

// lost reports whether the node's agent is silent.
func (n Node) lost(now time.Time) bool {
	return n.Status != lifecycle.NodeOnline || now.Sub(n.Seen) > NodeSilence
}

// touched reports whether the open operation acts on the member; without an operation, every member counts.
func (f *Facts) touched(member Member) bool {
	return f.Operation == nil || len(f.Operation.Targets) == 0 || slices.Contains(f.Operation.Targets, member.ID)
}

// lostNodes returns the nodes in the way whose agents are silent, each with the member that lives on it.
func (f *Facts) lostNodes(retired bool) []finding {
	if f.forced() {
		return nil
	}
	var found []finding
	add := func(node Node, member string) {
		known := slices.ContainsFunc(found, func(one finding) bool { return one.subject == node.ID })
		if known || !node.lost(f.Now) || retired != (node.Status == lifecycle.NodeRetired) {
			return
		}
		found = append(found, finding{subject: node.ID, since: node.Seen, next: f.next(),
			words: []string{"node", node.Name, "member", member}})
	}
	for _, member := range f.Members {
		if member.Node != nil && f.touched(member) {
			add(*member.Node, member.Name)
		}
	}
	for _, task := range f.Open {
		add(task.Node, string(task.MemberID))
	}
	return found
}

func nodeRetired(f *Facts) []finding { return f.lostNodes(true) }

func nodeOffline(f *Facts) []finding {
	found := f.lostNodes(false)
	if len(found) > 0 || f.Operation == nil || f.Operation.Step == nil || f.forced() ||
		f.Operation.Step.WaitCode != fault.NodeUnreachable {
		return found
	}
	// The step waits for a node that the caller may not read, or that has come back since.
	return []finding{{since: f.began(), next: f.next(),
		words: []string{"node", strings.TrimPrefix(f.Operation.Step.Message, "waits for the agent of node ")}}}
}

func (f *Facts) allocations(status lifecycle.AllocationStatus) []finding {
	var found []finding
	for _, one := range f.Allocations {
		if one.Status != status {
			continue
		}
		member := ""
		for _, lives := range f.Members {
			if lives.Allocation != nil && *lives.Allocation == one.ID {
				member = lives.Name
			}
		}
		found = append(found, finding{subject: string(one.ID), since: one.Since, next: f.next(),
			words: []string{"allocation", string(one.ID), "member", member}})
	}
	return found
}

func allocationFailed(f *Facts) []finding { return f.allocations(lifecycle.AllocationFailed) }

func allocationLost(f *Facts) []finding { return f.allocations(lifecycle.AllocationReleased) }

func allocationReleasing(f *Facts) []finding {
	stops := f.Instance == nil || f.Instance.Status == lifecycle.InstanceStopping
	if stops || (f.Operation != nil && f.Operation.Kind == lifecycle.InstanceDecommission) {
		return nil
	}
	return f.allocations(lifecycle.AllocationReleasing)
}

func allocationPending(f *Facts) []finding { return f.allocations(lifecycle.AllocationRequested) }

// task names a task in a finding.
func (f *Facts) task(task Task, since time.Time) finding {
	name := words(task.Kind)
	return finding{subject: string(task.ID), since: since, next: f.next(),
		words: []string{"task", name, "node", task.Node.Name, "detail", task.Detail, "probe", task.Name, "adapter",
			f.AdapterName}}
}

func taskNotTaken(f *Facts) []finding {
	var found []finding
	for _, task := range f.Open {
		if task.State == lifecycle.TaskPending && !task.Node.lost(f.Now) && f.Now.Sub(task.Created) > takenWithin {
			found = append(found, f.task(task, task.Created))
		}
	}
	return found
}

func taskOverdue(f *Facts) []finding {
	var found []finding
	for _, task := range f.Open {
		over := task.Started.Add(task.Timeout)
		if task.State == lifecycle.TaskRunning && f.Now.Sub(over) > taskGrace {
			found = append(found, f.task(task, over))
		}
	}
	return found
}

// taskRunning reports the oldest task under way.
func taskRunning(f *Facts) []finding {
	for _, task := range f.Open {
		if !task.Node.lost(f.Now) {
			return []finding{f.task(task, task.Created)}
		}
	}
	return nil
}

func taskFailed(f *Facts) []finding {
	if !f.onAdapter() || len(f.Open) > 0 || len(f.Ended) == 0 || f.Ended[0].Platform {
		return nil
	}
	if last := f.Ended[0]; last.State == lifecycle.TaskFailed || last.State == lifecycle.TaskTimedOut {
		return []finding{f.task(last, last.Ended)}
	}
	return nil
}

// bad returns the members on which the newest of the platform's own tasks of a kind did not end well, each since
// the first such end in a row.
func (f *Facts) bad(kind lifecycle.NodeTaskKind) []finding {
	type place struct{ member, probe string }
	var order []place
	newest, first := make(map[place]Task), make(map[place]Task)
	over := make(map[place]bool)
	for _, task := range f.Ended {
		at := place{string(task.MemberID), task.Name}
		if task.Kind != kind || !task.Platform || over[at] {
			continue
		}
		if task.Good {
			over[at] = true
			continue
		}
		if _, known := newest[at]; !known {
			newest[at] = task
			order = append(order, at)
		}
		first[at] = task
	}
	var found []finding
	for _, at := range order {
		one := f.task(newest[at], first[at].Ended)
		one.subject = at.member
		found = append(found, one)
	}
	return found
}

func residueLeft(f *Facts) []finding { return f.bad(lifecycle.TaskResidue) }

func probeFailing(f *Facts) []finding {
	if f.Operation.Step == nil || f.onAdapter() {
		return nil
	}
	return f.bad(lifecycle.TaskProbe)
}
