package mutant

import (
	"encoding/json"
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
	if d.Kind == adapter.InstanceDecommission &&
		((!known2 && t.broken("decommission.unborn")) || (gone && t.broken("decommission.repeat"))) {
		defer t.disk.mu.Unlock()
		return refuse(http.StatusUnprocessableEntity, "NOT_FOUND", "instance.id", "no such instance")
	}
	held := &record{dispatch: d, hash: hash, generation: 1, puts: 1, status: adapter.Status{
		OperationID: d.OperationID, Attempt: d.Attempt, State: adapter.StateAccepted, Phase: "accepted",
		Members: []adapter.MemberUpdate{},
	}}
	t.disk.operations[d.OperationID] = held
	if d.Attempt <= t.disk.tombstones[d.OperationID] {
		defer t.disk.mu.Unlock()
		held.status.State, held.status.Phase = adapter.StateCanceled, "canceled"
		t.publish(held)
		return reply{http.StatusOK, held.status}
	}
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
	t.disk.instances[d.Instance.ID] = &known{instance: d.Instance, members: d.Members, gone: held != nil && held.gone,
		headless: held != nil && held.headless}
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

// second runs an operation a second time beside the first, when there have been two requests for it.
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
	deaf := t.broken("force.redispatch") && d.Kind == adapter.MemberRemove
	forced := d.Force && !before.Force && !deaf
	ended := held.status.State
	if t.broken("attempt.token") {
		d.Platform = before.Platform
	}
	if t.broken("attempt.deadline") {
		d.Deadline = before.Deadline
	}
	if deaf {
		d.Force, d.Members = before.Force, before.Members
	}
	held.dispatch = d
	if ended.Terminal() || !t.broken("attempt.higher") {
		held.status.Attempt = d.Attempt
	}
	again := ended == adapter.StateFailed && !t.broken("attempt.retry")
	again = again || forced && !ended.Terminal()
	again = again || (ended == adapter.StateSucceeded && t.broken("attempt.ended")) ||
		(ended == adapter.StateCanceled && t.broken("cancel.final"))
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
