package mutant

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

var (
	errCanceled = errors.New("canceled")
	errForced   = errors.New("begun anew")
	errDeadline = errors.New("the deadline passed")
)

// run is one go at an operation.
type run struct {
	t          *tiny
	held       *record
	d          adapter.Dispatch
	generation int
	nonce      string
	ctx        context.Context
	cancel     context.CancelCauseFunc
	timer      *time.Timer
	done       chan struct{}
}

// begin starts a run, after the one before it has ended. The disk is locked.
func (t *tiny) begin(held *record) {
	before := held.run
	r := &run{t: t, held: held, d: held.dispatch, generation: held.generation, done: make(chan struct{})}
	if t.broken("crash.once") {
		r.nonce = fmt.Sprint(t.incarnation)
	}
	r.ctx, r.cancel = context.WithCancelCause(t.ctx)
	if left := time.Until(held.dispatch.Deadline); left > 0 || !t.broken("deadline.past") {
		if left <= 0 {
			r.cancel(errDeadline)
		}
		r.timer = time.AfterFunc(left, func() { r.cancel(errDeadline) })
	}
	held.run = r
	go func() {
		if before != nil && !t.broken("dispatch.repeat") {
			<-before.done
		}
		r.carry()
	}()
}

func (r *run) setDeadline(at time.Time) {
	r.timer.Stop()
	r.timer = time.AfterFunc(time.Until(at), func() { r.cancel(errDeadline) })
}

// access is the newest token.
func (r *run) access() adapter.Platform {
	r.t.disk.mu.Lock()
	defer r.t.disk.mu.Unlock()
	return r.held.dispatch.Platform
}

// leave says whether a mutant leaves its node task running when it stops.
func (r *run) leave() bool {
	cause := context.Cause(r.ctx)
	return r.t.ctx.Err() != nil || (errors.Is(cause, errCanceled) && r.t.broken("cancel.stops")) ||
		(errors.Is(cause, errDeadline) && r.t.broken("deadline.near"))
}

// carry does the work and writes the end.
func (r *run) carry() {
	defer close(r.done)
	r.set(func(s *adapter.Status) { s.State = adapter.StateRunning })
	err := r.work()
	cause := context.Cause(r.ctx)
	if r.t.ctx.Err() != nil || errors.Is(cause, errForced) {
		return
	}
	r.t.write(func() { r.end(err, cause) })
}

// end writes how the run ended. The disk is locked.
func (r *run) end(err, cause error) {
	status, d := &r.held.status, r.d
	switch {
	case r.held.run != r || status.State.Terminal():
		return
	case err == nil:
		status.State, status.Percent, status.Phase = adapter.StateSucceeded, 100, "done"
	case errors.Is(cause, errCanceled):
		status.State = adapter.StateCanceled
		if d.Kind == adapter.MemberDrain && !r.t.broken("drain.canceled") {
			r.member(d.Targets[0], adapter.MemberActive)
		}
	default:
		status.State = adapter.StateFailed
		status.Error = &adapter.OperationError{
			Code: "FAILED", Message: err.Error(), Owner: adapter.OwnerNode, Retryable: true,
		}
		if errors.Is(cause, errDeadline) {
			status.Error = &adapter.OperationError{
				Code: "DEADLINE_EXCEEDED", Message: "too late", Owner: adapter.OwnerAdapter, Retryable: true,
			}
		} else if r.t.broken("attempt.failure") {
			status.Error.Owner = "somebody"
		}
		if r.t.broken("secret.failure") {
			fmt.Fprintf(r.t.log, "failed with %+v\n", d)
		}
		if r.t.broken("secret.answers") {
			status.Error.Message += " with " + d.Platform.Token
		}
	}
	r.settle(*status)
	if r.t.broken("feed.lossless") && d.Kind == adapter.InstanceCreate && r.t.busy() > 1 {
		r.held.version = 0 // no page will ever show it
		return
	}
	r.t.publish(r.held)
}

// busy is how many operations are under way beside the one that ends, and that one. The disk is locked.
func (t *tiny) busy() int {
	n := 1
	for _, held := range t.disk.operations {
		if !held.status.State.Terminal() {
			n++
		}
	}
	return n
}

// settle forgets what has left. The disk is locked.
func (r *run) settle(status adapter.Status) {
	held := r.t.disk.instances[r.d.Instance.ID]
	if held == nil {
		return
	}
	left := map[string]bool{}
	for _, member := range status.Members {
		left[member.ID] = member.Status == adapter.MemberRemoved &&
			!(r.t.broken("remove.forgotten") && r.d.Kind == adapter.MemberRemove)
	}
	if r.d.Kind == adapter.MembersAdd && status.State != adapter.StateSucceeded && !r.t.broken("add.undone") {
		for _, id := range r.d.Targets {
			left[id] = true
		}
	}
	var members []adapter.Member
	for _, member := range held.members {
		if !left[member.ID] {
			members = append(members, member)
		}
	}
	held.members = members
	held.gone = held.gone || (r.d.Kind == adapter.InstanceDecommission && status.State == adapter.StateSucceeded)
}

// set changes the status and publishes it.
func (r *run) set(change func(*adapter.Status)) {
	r.t.write(func() {
		if r.held.run == r && !r.held.status.State.Terminal() {
			change(&r.held.status)
			r.t.publish(r.held)
		}
	})
}

// member writes what is known of a member into the status. The disk is locked.
func (r *run) member(id string, status adapter.MemberStatus) {
	update := adapter.MemberUpdate{ID: id, Status: status, Health: adapter.HealthUnknown}
	members := append([]adapter.MemberUpdate{}, r.held.status.Members...)
	for n := range members {
		if members[n].ID == id {
			members[n] = update
			r.held.status.Members = members
			return
		}
	}
	r.held.status.Members = append(members, update)
}

// wait waits for d; false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
