package operation

import (
	"slices"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter/contract"
)

// knownInstance is an instance as it was last dispatched, without the members that have left since.
type knownInstance struct {
	operation string
	began     time.Time
	instance  contract.Instance
	members   []contract.Member
	gone      bool
}

// know remembers the instance of a new operation, and forgets old ended operations. The operation is locked.
func (e *Engine) know(op *operation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.knowLocked(op)
	if len(e.operations) > maxOperations {
		e.sweepLocked()
	}
}

// knowLocked takes the members of a dispatch for the truth. Whether their nodes can be reached is
// not remembered: it was so at the dispatch.
func (e *Engine) knowLocked(op *operation) {
	members := slices.Clone(op.dispatch.Members)
	for i := range members {
		members[i].Node.Reachable = nil
	}
	e.instances[op.dispatch.Instance.ID] = &knownInstance{
		operation: op.id, began: op.began, instance: op.dispatch.Instance, members: members,
	}
}

// settle forgets what an operation that has ended took away: its instance when it was
// decommissioned, else the members that left and those that never came to be.
func (e *Engine) settle(op *operation) {
	op.mu.Lock()
	status, dispatch := op.status, op.dispatch
	op.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settleLocked(status, dispatch)
}

func (e *Engine) settleLocked(status contract.Status, dispatch contract.Dispatch) {
	known, ok := e.instances[dispatch.Instance.ID]
	if !ok || !status.State.Terminal() {
		return
	}
	if dispatch.Kind == contract.InstanceDecommission && status.State == contract.StateSucceeded {
		known.gone = true
	}
	var left []string
	for _, member := range status.Members {
		if member.Status == contract.MemberRemoved {
			left = append(left, member.ID)
		}
	}
	if dispatch.Kind == contract.MembersAdd && status.State != contract.StateSucceeded {
		left = append(left, dispatch.Targets...)
	}
	// A new slice: the old one may be in the hands of an observation.
	known.members = slices.DeleteFunc(slices.Clone(known.members),
		func(m contract.Member) bool { return slices.Contains(left, m.ID) })
}

// recallLocked goes through the beginnings and ends of loaded operations in the order in which they
// happened.
func (e *Engine) recallLocked(loaded []*operation) {
	type moment struct {
		at time.Time
		do func()
	}
	var moments []moment
	for _, op := range loaded {
		if op.stillborn { // nothing of it was begun
			continue
		}
		ended := op.touched
		if ended.Before(op.began) { // the clock was set back
			ended = op.began
		}
		moments = append(moments,
			moment{op.began, func() { e.knowLocked(op) }},
			moment{ended, func() { e.settleLocked(op.status, op.dispatch) }})
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return a.at.Compare(b.at) })
	for _, moment := range moments {
		moment.do()
	}
}
