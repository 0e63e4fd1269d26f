package adapter

import (
	"slices"
	"time"
)

// knownInstance is an instance as it was last dispatched, without the members that have left since.
type knownInstance struct {
	operation string
	began     time.Time
	instance  Instance
	members   []Member
	gone      bool
}

// know remembers the instance of a new operation, and makes room. The operation is locked.
func (k *Kit) know(op *operation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.knowLocked(op)
	if len(k.operations) > maxOperations {
		k.sweepLocked()
	}
}

// knowLocked takes the members of a dispatch for the truth. Whether their nodes can be reached is
// not remembered: it was so at the dispatch.
func (k *Kit) knowLocked(op *operation) {
	members := slices.Clone(op.dispatch.Members)
	for i := range members {
		members[i].Node.Reachable = nil
	}
	k.instances[op.dispatch.Instance.ID] = &knownInstance{
		operation: op.id, began: op.began, instance: op.dispatch.Instance, members: members,
	}
}

// settle forgets what an operation that has ended took away: its instance when it was
// decommissioned, else the members that left and those that never came to be.
func (k *Kit) settle(op *operation) {
	op.mu.Lock()
	status, dispatch := op.status, op.dispatch
	op.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.settleLocked(status, dispatch)
}

func (k *Kit) settleLocked(status Status, dispatch Dispatch) {
	known, ok := k.instances[dispatch.Instance.ID]
	if !ok || !status.State.Terminal() {
		return
	}
	if dispatch.Kind == InstanceDecommission && status.State == StateSucceeded {
		known.gone = true
	}
	var left []string
	for _, member := range status.Members {
		if member.Status == MemberRemoved {
			left = append(left, member.ID)
		}
	}
	if dispatch.Kind == MembersAdd && status.State != StateSucceeded {
		left = append(left, dispatch.Targets...)
	}
	// A new slice: the old one may be in the hands of an observation.
	known.members = slices.DeleteFunc(slices.Clone(known.members), func(m Member) bool { return slices.Contains(left, m.ID) })
}

// recallLocked goes through the beginnings and ends of loaded operations in the order in which they
// happened.
func (k *Kit) recallLocked(loaded []*operation) {
	type moment struct {
		at time.Time
		do func()
	}
	var moments []moment
	for _, op := range loaded {
		ended := op.touched
		if ended.Before(op.began) { // the clock was set back
			ended = op.began
		}
		moments = append(moments,
			moment{op.began, func() { k.knowLocked(op) }},
			moment{ended, func() { k.settleLocked(op.status, op.dispatch) }})
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return a.at.Compare(b.at) })
	for _, moment := range moments {
		moment.do()
	}
}
