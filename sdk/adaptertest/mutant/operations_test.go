package mutant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gpuaas/app-platform/sdk/adapter"
)

// hashOf is the specification of a dispatch.
func (t *tiny) hashOf(d adapter.Dispatch, body []byte) string {
	for n := range d.Members {
		member := &d.Members[n]
		member.Cordoned, member.Labels, member.Node.Reachable = false, nil, nil
		if !t.broken("dispatch.not_specification") {
			member.Status = ""
		}
	}
	var config, change any
	_ = json.Unmarshal(d.Instance.Config, &config)
	_ = json.Unmarshal(d.Change, &change)
	d.Instance.Config = nil
	if t.broken("dispatch.mismatch") {
		change = nil
	}
	text := fmt.Sprint(d.OperationID, d.Kind, d.Instance, d.Members, d.Targets, config, change)
	if t.broken("dispatch.canonical") {
		var raw struct{ Instance json.RawMessage }
		_ = json.Unmarshal(body, &raw)
		text += string(raw.Instance)
	}
	return text
}

func (t *tiny) dispatch(r *http.Request, body []byte) reply {
	d, bad := t.decode(body)
	if bad != nil {
		return *bad
	}
	var again adapter.Dispatch
	_ = json.Unmarshal(body, &again) // the hash is made of a copy that it may change
	hash := t.hashOf(again, body)
	t.disk.mu.Lock()
	held, knownBefore := t.disk.operations[r.PathValue("id")]
	t.disk.mu.Unlock()
	if !knownBefore {
		if field := t.wrong(d, r.PathValue("id")); field != "" {
			return refuse(http.StatusUnprocessableEntity, "INVALID_ARGUMENT", field, field+" is wrong")
		}
		return t.place(r, d, hash)
	}
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	return t.repeat(held, d, hash)
}

// place makes a new operation and begins it.
func (t *tiny) place(r *http.Request, d adapter.Dispatch, hash string) reply {
	if t.broken("secret.log") {
		fmt.Fprintf(t.log, "dispatch %+v\n", d)
	}
	t.disk.mu.Lock()
	if held, ok := t.disk.operations[d.OperationID]; ok {
		defer t.disk.mu.Unlock()
		return t.repeat(held, d, hash)
	}
	known, known2 := t.disk.instances[d.Instance.ID]
	gone := known2 && known.gone
	if d.Kind == adapter.InstanceDecommission && ((!known2 && t.broken("decommission.unborn")) || (gone && t.broken("decommission.repeat"))) {
		defer t.disk.mu.Unlock()
		return refuse(http.StatusUnprocessableEntity, "NOT_FOUND", "instance.id", "no such instance")
	}
	held := &record{dispatch: d, hash: hash, generation: 1, puts: 1, status: adapter.Status{
		OperationID: d.OperationID, Attempt: d.Attempt, State: adapter.StateAccepted, Phase: "accepted", Members: []adapter.MemberUpdate{},
	}}
	t.disk.operations[d.OperationID] = held
	t.know(d)
	t.publish(held)
	t.begin(held)
	status := held.status
	t.disk.mu.Unlock()
	if t.broken("dispatch.lost_reply") && d.Kind == adapter.InstanceCreate && !wait(r.Context(), 150*time.Millisecond) {
		t.disk.mu.Lock()
		held.run.cancel(errCanceled)
		t.disk.mu.Unlock()
	}
	return reply{http.StatusAccepted, status}
}

// know takes a dispatch for the truth about its instance. The disk is locked.
func (t *tiny) know(d adapter.Dispatch) {
	held := t.disk.instances[d.Instance.ID]
	t.disk.instances[d.Instance.ID] = &known{instance: d.Instance, members: d.Members, gone: held != nil && held.gone}
}

// repeat answers a dispatch of a known operation. The disk is locked.
func (t *tiny) repeat(held *record, d adapter.Dispatch, hash string) reply {
	held.puts++
	ended := held.status.State.Terminal()
	switch {
	case held.hash != hash:
		return refuse(http.StatusConflict, "BODY_MISMATCH", "", "another specification")
	case d.Attempt < held.dispatch.Attempt && !t.broken("attempt.stale"):
		return refuse(http.StatusConflict, "STALE_FENCE", "attempt", "a higher attempt was seen")
	case d.Attempt > held.dispatch.Attempt:
		return t.raise(held, d)
	case held.status.State == adapter.StateSucceeded && t.broken("dispatch.idempotent") && t.incarnation == 1:
		status := held.status
		held.generation++
		t.begin(held)
		return reply{http.StatusOK, status}
	case t.broken("dispatch.concurrent") && held.puts == 4 && held.generation == 1:
		held.generation += 20
		t.begin(held)
	case !ended && t.broken("dispatch.repeat") && held.puts == 2 && held.finished > 0:
		go t.second(held)
	}
	if ended {
		return reply{http.StatusOK, held.status}
	}
	return reply{http.StatusAccepted, held.status}
}

// second runs an operation a second time beside the first, when nobody asks a third time.
func (t *tiny) second(held *record) {
	if !wait(t.ctx, 100*time.Millisecond) {
		return
	}
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	if held.puts == 2 && !held.status.State.Terminal() {
		held.generation += 10
		t.begin(held)
	}
}

// raise takes a higher attempt. The disk is locked.
func (t *tiny) raise(held *record, d adapter.Dispatch) reply {
	before := held.dispatch
	forced := d.Force && !before.Force && !t.broken("force.redispatch")
	ended := held.status.State
	if t.broken("attempt.token") {
		d.Platform = before.Platform
	}
	if t.broken("attempt.deadline") {
		d.Deadline = before.Deadline
	}
	if t.broken("force.redispatch") {
		d.Force, d.Members = before.Force, before.Members
	}
	held.dispatch = d
	if ended.Terminal() || !t.broken("attempt.higher") {
		held.status.Attempt = d.Attempt
	}
	again := ended == adapter.StateFailed && !t.broken("attempt.retry")
	again = again || forced && !ended.Terminal()
	again = again || (ended == adapter.StateSucceeded && t.broken("attempt.ended")) || (ended == adapter.StateCanceled && t.broken("cancel.final"))
	switch {
	case again:
		if held.run != nil {
			held.run.cancel(errForced)
		}
		held.generation = d.Attempt
		held.status.State, held.status.Error, held.canceled, held.finished = adapter.StateAccepted, nil, false, 0
		t.publish(held)
		t.begin(held)
	case ended.Terminal():
		return reply{http.StatusOK, held.status}
	default:
		held.run.setDeadline(d.Deadline)
		t.publish(held)
	}
	return reply{http.StatusAccepted, held.status}
}

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
	return r.t.ctx.Err() != nil || (errors.Is(cause, errCanceled) && r.t.broken("cancel.stops")) || (errors.Is(cause, errDeadline) && r.t.broken("deadline.near"))
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
		status.Error = &adapter.OperationError{Code: "FAILED", Message: err.Error(), Owner: adapter.OwnerNode, Retryable: true}
		if errors.Is(cause, errDeadline) {
			status.Error = &adapter.OperationError{Code: "DEADLINE_EXCEEDED", Message: "too late", Owner: adapter.OwnerAdapter, Retryable: true}
		} else if r.t.broken("attempt.failure") {
			status.Error.Owner = "somebody"
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
		left[member.ID] = member.Status == adapter.MemberRemoved && !r.t.broken("remove.forgotten")
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
